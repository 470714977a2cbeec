#: --with fio
# influxdata/influxdb pull request 8872: queries read mapped files and stall in page faults while a compaction reads the same disk.
for i in $(seq 40); do dd if=/dev/zero of=/mnt/tsm$i bs=1M count=4; done 2> /dev/null
dd if=/dev/zero of=/mnt/index bs=1M count=64 2> /dev/null
cold
echo 1024 > /sys/block/simflash0/queue/read_ahead_kb
app influxd --filename=/mnt/index --ioengine=mmap --rw=randread --bs=4k --size=64m --thinktime=20ms --fadvise_hint=random &
( while :; do as compact cat /mnt/tsm* > /dev/null; echo 1 > /proc/sys/vm/drop_caches; done ) &
see faults 4
