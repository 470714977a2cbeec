#: --with fio
# bugzilla.samba.org 10678 and others: a backup that reads many small files; a shell that lists its own is slow.
for i in $(seq 60); do mkdir /mnt/d$i; for j in $(seq 25); do echo $i > /mnt/d$i/$j; done; done
dd if=/dev/zero of=/mnt/own bs=1M count=48 2> /dev/null
for i in $(seq 30); do dd if=/dev/zero of=/mnt/d$i/large bs=256k count=4; done 2> /dev/null
cold
( cd /; while :; do for i in $(seq 60); do as rsync cat /mnt/d$i/* > /dev/null; done; echo 3 > /proc/sys/vm/drop_caches; done ) &
app shell --filename=/mnt/own --rw=randread --bs=16k --size=48m --thinktime=50ms --fadvise_hint=random &
see manyfiles 4
