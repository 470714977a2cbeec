#: --with fio --second usb-stick-slow
# github.com/mcdope/pam_usb/issues/57: an old disk is copied to a slow one; who types sudo waits, as its module syncs everything.
ext4 /dev/simflash1
mkdir -p /stick; mount -o noinit_itable /dev/simflash1 /stick
echo 96000000 > /proc/sys/vm/dirty_bytes; echo 48000000 > /proc/sys/vm/dirty_background_bytes
app rsync --filename=/stick/copy --rw=write --bs=1m --size=64m --fallocate=none &
( cd /mnt; while :; do echo pad > pad; as sudo sync; sleep 0.5; done ) &
see pamusb 5
