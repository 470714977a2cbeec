#: --with fio
# etcd-io/etcd issues 6753 and 13587: small synchronous writes (here O_DSYNC) take seconds while something else writes to the disk.
app etcd --filename=/mnt/wal --rw=write --bs=4k --size=4m --sync=dsync --thinktime=20ms &
( while :; do as restic dd if=/dev/zero of=/mnt/restore bs=1M count=96 conv=notrunc; done ) &
see dsync 4
