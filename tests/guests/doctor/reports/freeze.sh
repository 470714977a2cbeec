#: --with fio
# A snapshot tool freezes the file system for five seconds; apps that write hang.
app editor --directory=/mnt --rw=write --bs=4k --size=2m --fsync=1 --thinktime=100ms &
( while :; do echo 1 >> /mnt/log; sleep 0.1; done ) &
# The doctor is on its way for some seconds before it watches.
( sleep 2; while :; do as agent fsfreeze --freeze /mnt; sleep 4; as agent fsfreeze --unfreeze /mnt; sleep 1; done ) &
see freeze 6
sleep 1
