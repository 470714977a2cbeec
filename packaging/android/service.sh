# SPDX-License-Identifier: GPL-2.0-only
# Run by KernelSU or Magisk at each boot. Before the disk gets the scheduler, a mark is left that goes
# once the phone has run for two minutes: after a boot that broke off, the next ones do without.
MODDIR=${0%/*}
FRONTROW=$MODDIR/system/bin/frontrow
LOG=/data/adb/frontrow/log

mkdir -p "${LOG%/*}"
exec > "$LOG" 2>&1
until [ "$(getprop sys.boot_completed)" = 1 ]; do
	sleep 1
done
DISK=$(readlink -f /dev/block/by-name/userdata)
"$FRONTROW" sched enable --at-boot --module "$MODDIR/frontrow_iosched.ko" "$DISK" || exit
{ sleep 120; "$FRONTROW" sched settled; } &
exec "$FRONTROW" fg daemon
