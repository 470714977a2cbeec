#: --with fio,dmsetup --modules dm_mod --second emmc:fresh
# lvmteam/lvm2 issue 159: while a snapshot is removed all that touch the volume hang; it was left suspended.
export DM_DISABLE_UDEV=1
dmsetup create var --table "0 1048576 linear /dev/simflash1 0"
ext4 /dev/mapper/var
mkdir -p /var; mount -o noinit_itable /dev/mapper/var /var
app journald --directory=/var --rw=write --bs=4k --size=2m --fsync=1 --thinktime=50ms &
sleep 1
dmsetup suspend --nolockfs var
see suspended 4
dmsetup resume var
