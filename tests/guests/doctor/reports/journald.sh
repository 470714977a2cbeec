#: --with fio
# systemd/systemd issue 20473: journald's own syncs take long and its watchdog kills it, while a container's program logs to a file at full speed.
dd if=/dev/zero of=/mnt/system.journal bs=1M count=8 2> /dev/null; cold
app journald --filename=/mnt/system.journal --ioengine=mmap --rw=write --bs=4k --size=8m --fsync=16 --thinktime=100ms &
( while :; do as conmon dd if=/dev/zero of=/mnt/json.log bs=64k count=1600; done ) &
see journald 4
