#: --with fio
# ValveSoftware/steam-for-linux issues 6073 and 8152: an update patches a game's files, many threads read and write them; all else stands still.
dd if=/dev/zero of=/mnt/game bs=1M count=128 2> /dev/null
dd if=/dev/zero of=/mnt/video bs=1M count=64 2> /dev/null; cold
app steam --filename=/mnt/game --rw=randrw --rwmixread=60 --bs=256k --size=128m --numjobs=12 --thread --fadvise_hint=random &
app browser --filename=/mnt/video --rw=randread --bs=32k --size=64m --thinktime=20ms --fadvise_hint=random &
see steam 4
