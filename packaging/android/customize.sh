# SPDX-License-Identifier: GPL-2.0-only
# Sourced by the installer of KernelSU or Magisk, which defines abort, ui_print and set_perm.
[ "$ARCH" = arm64 ] || abort "! This package is for arm64, and this phone is $ARCH"
[ "$(uname -r)" = "@RELEASE@" ] ||
	ui_print "! Built for kernel @RELEASE@; this one is $(uname -r). If the kernel refuses the module, /data/adb/frontrow/log says so after a reboot, and the phone goes on without it"
set_perm "$MODPATH/system/bin/frontrow" 0 0 0755
ui_print "- After a reboot: su -c frontrow sched status"
