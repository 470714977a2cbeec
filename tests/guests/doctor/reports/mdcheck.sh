#: --with fio,dmsetup --modules dm_mod,md_mod,raid1 --second usb-stick
# A RAID1 is being checked at full speed; a chat program syncs its database on it.
export DM_DISABLE_UDEV=1
dmsetup create a --table "0 1048576 linear /dev/simflash1 0"
dmsetup create b --table "0 1048576 linear /dev/simflash1 1048576"
echo md_home > /sys/module/md_mod/parameters/new_array
at=/sys/block/md_home/md
echo raid1 > $at/level; echo 2 > $at/raid_disks; echo none > $at/metadata_version
cat /sys/block/dm-0/dev > $at/new_dev; cat /sys/block/dm-1/dev > $at/new_dev
for d in 0 1; do echo 524288 > $at/dev-dm-$d/size; echo $d > $at/dev-dm-$d/slot; done
echo 524288 > $at/component_size
echo active > $at/array_state
ls $at >&2; cat $at/array_state $at/sync_action >&2
echo idle > $at/sync_action
echo frozen > $at/sync_action; echo 0 > $at/resync_start
ext4 /dev/md_home
mkdir -p /home; mount -o noinit_itable /dev/md_home /home
dd if=/dev/zero of=/home/cache bs=1M count=32 2> /dev/null; cold
# Slow enough to go on while the doctor watches.
echo 16000 > /proc/sys/dev/raid/speed_limit_max; echo 16000 > /proc/sys/dev/raid/speed_limit_min
echo idle > $at/sync_action; echo check > $at/sync_action
app pidgin --directory=/home --rw=write --bs=4k --size=2m --fsync=1 --thinktime=200ms &
app viewer --filename=/home/cache --rw=randread --bs=16k --size=32m --thinktime=50ms &
: TWO=1
see mdcheck 4
cat /proc/mdstat > /out/mdcheck.mdstat
