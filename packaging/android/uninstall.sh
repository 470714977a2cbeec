# SPDX-License-Identifier: GPL-2.0-only
# Run at the boot that removes the package, when nothing of it was started.
rm -rf /data/adb/frontrow
