#: --with fio
# openzfs/zfs issue 12662 (EventStoreDB): msync of a small mapped file takes seconds now and then; here a scavenge writes meanwhile.
app eventstore --filename=/mnt/checkpoint --ioengine=mmap --rw=randwrite --bs=4k --size=64k --fsync=1 --thinktime=20ms &
( while :; do as scavenge dd if=/dev/zero of=/mnt/chunk bs=1M count=96 conv=notrunc; done ) &
see mapped 4
