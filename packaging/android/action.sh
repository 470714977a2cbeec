# SPDX-License-Identifier: GPL-2.0-only
# Run by the Action button: what it does now, and what it said at boot.
FRONTROW=${0%/*}/system/bin/frontrow
"$FRONTROW" sched status
"$FRONTROW" fg status
cat /data/adb/frontrow/log
