//! The package for KernelSU and Magisk: its script at boot, in a guest that has Android's directories.
//! Those run it in busybox's shell as well.

use crate::harness::{exec, succeeds};

const SERVICE: &str = include_str!("../../packaging/android/service.sh");

/// Leaves nothing of the lab's own that a phone has not: the scheduler, and `/run`.
const SCRIPT: &str = r#"
package=/data/adb/modules/frontrow
mkdir -p /system /dev/block/by-name $package/system/bin
echo ro.build.version.sdk=36 > /system/build.prop
ln -s /dev/simflash0 /dev/block/by-name/userdata
printf '#!/bin/busybox sh\necho 1\n' > /bin/getprop
chmod 755 /bin/getprop
ln -s "$(command -v frontrow)" $package/system/bin/frontrow
cp /modules/frontrow_iosched.ko $package
cat > $package/service.sh <<'END'
SERVICE
END
cd /
echo none > /sys/block/simflash0/queue/scheduler
rmmod frontrow_iosched
umount -l /run
rmdir /run

scheduler() { sed 's/.*\[\(.*\)\].*/\1/' /sys/block/simflash0/queue/scheduler; }
await() { for i in $(seq 300); do "$@" && return; usleep 100000; done; cat /data/adb/frontrow/log; exit 1; }
is_up() { frontrow fg status --json | grep -q '"daemon":true'; }
mark() { test -e /data/adb/frontrow/starting && echo mark || echo none; }

busybox sh $package/service.sh &
service=$!
await is_up
echo "starting: $(scheduler) $(mark)"
sleep 125
echo "settled: $(scheduler) $(mark)"
ls -d /run 2> /dev/null

kill $service
wait
frontrow sched disable > /dev/null
echo 'of a boot that broke off' > /data/adb/frontrow/starting
busybox sh $package/service.sh
echo "after a crash: $(scheduler) $(mark)"
cat /data/adb/frontrow/log
"#;

#[test]
fn the_package_of_phones_enables_the_scheduler_and_does_without_after_a_crash() {
    let script = SCRIPT.replace("SERVICE", SERVICE);
    let said = succeeds(&mut exec(&["--policy", "frontrow"], &script)).stdout;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[..3],
        [
            "starting: frontrow mark",
            "settled: frontrow none",
            "after a crash: none mark"
        ],
        "{said}"
    );
    assert!(lines[3].contains("frontrow sched enable"), "{said}");
}
