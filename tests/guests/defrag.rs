//! `frontrow defrag --check` on a file system that it can only look at, in a guest of the stock
//! kernel. That one has no f2fs, and loading its btrfs takes a minute of a host's time.

use crate::harness::Left;

/// Two files that grow in turns.
const SCRIPT: &str = r#"
cd /
umount /mnt || exit
mkfs.xfs -q -f /dev/simflash0 || exit
mount -t xfs /dev/simflash0 /mnt || exit
for at in 0 1 2 3 4 5 6 7; do
    for file in a b; do
        dd if=/dev/zero of=/mnt/$file bs=64k count=1 seek=$at conv=notrunc oflag=direct \
            2> /dev/null || exit
    done
done
sync
frontrow defrag --check --json /mnt > /out/xfs.json || exit
frontrow defrag --all /mnt/a > /out/xfs.moved 2> /out/xfs.error
echo $? > /out/xfs.exit
umount /mnt || exit
"#;

#[test]
fn xfs_is_checked_and_left_as_it_is() {
    let with = ["--with", "mkfs.xfs", "--modules", "xfs"];
    let left = Left::by(&[&["--device", "zero"], &with[..]].concat(), SCRIPT);
    let report = left.json("xfs.json");
    assert_eq!(report["filesystem"], "xfs");
    assert_eq!(report["all"]["files"], 2, "{report:#}");
    let fragmented = report["fragmented"].as_array().unwrap();
    assert_eq!(fragmented.len(), 2, "{report:#}");
    for file in fragmented {
        assert!(file["dof_l"].as_f64().unwrap() >= 4.0, "{file:#}");
        assert!(file["read"]["as_it_lies_ns"].as_u64().unwrap() > 0);
    }
    // Its places are the device's, so the device is asked which dies files are on.
    assert!(report["unspread"].is_array(), "{report:#}");
    assert_eq!(left.text("xfs.exit"), "3");
    let said = left.text("xfs.error");
    assert!(said.contains("only ext4 can swap extents"), "{said}");
}
