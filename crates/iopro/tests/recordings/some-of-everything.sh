# SPDX-License-Identifier: GPL-2.0-only
# Some of everything that goes through the storage stack, and little of it.
frontrow iopro record -o /out/recording.iopro -- sh -c '
dd if=/dev/zero of=big bs=64k count=48 2>/dev/null &
for i in 1 2 3 4; do dd if=/dev/zero of=f$i bs=4k count=2 conv=fsync 2>/dev/null; done
wait
mv f1 g1; truncate -s 4096 f2; rm f3
sync
echo 3 > /proc/sys/vm/drop_caches
cat big f4 > /dev/null
cat big > /dev/null
dd if=big of=direct bs=64k count=4 iflag=direct oflag=direct 2>/dev/null
dd if=/dev/zero of=unwritten bs=4k count=3 2>/dev/null
'
