#: --with fio
# util-linux/util-linux issue 1929: each week programs freeze while fstrim runs.
dd if=/dev/zero of=/mnt/old bs=1M count=200 2> /dev/null; sync
( while :; do as fstrim fstrim /mnt; rm -f /mnt/old; dd if=/dev/zero of=/mnt/old bs=1M count=1 2> /dev/null; done ) &
app firefox --directory=/mnt --rw=write --bs=4k --size=2m --fdatasync=1 --thinktime=100ms &
see fstrim 4
