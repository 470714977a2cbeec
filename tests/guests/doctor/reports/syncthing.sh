#: --with fio
# github.com/syncthing/syncthing/issues/2992: four threads hash many photos; music stops.
for i in 0 1 2 3; do dd if=/dev/zero of=/mnt/photos$i bs=1M count=48; done 2> /dev/null
dd if=/dev/zero of=/mnt/music bs=1M count=48 2> /dev/null
cold
app syncthing --filename=/mnt/photos0:/mnt/photos1:/mnt/photos2:/mnt/photos3 --rw=randread --bs=128k --size=192m --numjobs=4 --thread --fadvise_hint=random --group_reporting &
app spotify --filename=/mnt/music --rw=randread --bs=64k --size=48m --thinktime=50ms --fadvise_hint=random &
( cd /; while :; do echo 1 > /proc/sys/vm/drop_caches; sleep 0.5; done ) &
: TWO=1
see syncthing 4
