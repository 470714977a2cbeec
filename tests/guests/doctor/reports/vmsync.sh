#: --with fio
# github.com/openzfs/zfs/issues/10110: a virtual machine with a write-back cache syncs what it has dirtied; a log on the same disk stands still.
( cd /; while :; do as qemu dd if=/dev/zero of=/mnt/image bs=1M count=96 conv=notrunc,fsync; sleep 0.3; done ) &
app logger --directory=/mnt --rw=write --bs=4k --size=2m --fdatasync=1 --thinktime=100ms &
see vmsync 4
