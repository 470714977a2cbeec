#: --with fio
# bugs.launchpad.net/bugs/570805, and what came of it: dpkg syncs each of the many files that it unpacks; a browser's database stalls.
( cd /mnt; i=0; while :; do i=$((i + 1)); as dpkg dd if=/dev/zero of=/mnt/new$((i % 400)) bs=64k count=4 conv=fsync; done ) &
app firefox --directory=/mnt --rw=write --bs=4k --size=2m --fdatasync=1 --thinktime=200ms &
see dpkg 4
