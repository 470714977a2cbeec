#: --with fio --second usb-stick
# github.com/namjaejeon/linux-exfat-oot/issues/36: with the mount option discard, large files that are deleted hold up who saves.
ext4 -E discard /dev/simflash1
mkdir -p /stick; mount -o noinit_itable,discard /dev/simflash1 /stick
i=0; while [ $i -lt 24 ]; do dd if=/dev/zero of=/stick/film$i bs=1M count=16; i=$((i + 1)); done 2> /dev/null
cold
( cd /; i=0; while :; do as cleaner rm -f /stick/film$i; i=$((i + 1)); as cleaner dd if=/dev/zero of=/stick/film$i bs=1M count=1; sleep 0.2; done ) &
app editor --directory=/stick --rw=write --bs=4k --size=2m --fdatasync=1 --thinktime=100ms &
see trim 4
