//! `frontrow defrag --check` on file systems that it can only look at, in a guest of the stock
//! kernel (which has no f2fs).

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Two files that grow in turns.
const SCRIPT: &str = r#"
cd /
umount /mnt || exit
for kind in xfs btrfs; do
    mkfs.$kind -q -f /dev/simflash0 || exit
    mount -t $kind /dev/simflash0 /mnt || exit
    for at in 0 1 2 3 4 5 6 7; do
        for file in a b; do
            dd if=/dev/zero of=/mnt/$file bs=64k count=1 seek=$at conv=notrunc oflag=direct \
                2> /dev/null || exit
        done
    done
    sync
    frontrow defrag --check --json /mnt > /out/$kind.json || exit
    frontrow defrag --all /mnt/a > /out/$kind.moved 2> /out/$kind.error
    echo $? > /out/$kind.exit
    umount /mnt || exit
done
"#;

#[test]
fn xfs_and_btrfs_are_checked_and_left_as_they_are() {
    let out = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args([
            "lab",
            "exec",
            "--device",
            "zero",
            "--with",
            "mkfs.xfs,mkfs.btrfs",
        ])
        .args(["--modules", "xfs,btrfs", "--out"])
        .arg(out.path())
        .args(["--", "sh", "-c", SCRIPT])
        .current_dir(CHECKOUT)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    for kind in ["xfs", "btrfs"] {
        let report = fs::read(out.path().join(format!("{kind}.json")));
        let report: Value = serde_json::from_slice(&report.unwrap()).unwrap();
        assert_eq!(report["filesystem"], kind);
        assert_eq!(report["all"]["files"], 2, "{report:#}");
        let fragmented = report["fragmented"].as_array().unwrap();
        assert_eq!(fragmented.len(), 2, "{report:#}");
        for file in fragmented {
            assert!(file["dof_l"].as_f64().unwrap() >= 4.0, "{file:#}");
            assert!(file["read"]["as_it_lies_ns"].as_u64().unwrap() > 0);
        }
        // Which dies a file is on can be asked where its places are the device's.
        assert_eq!(report["unspread"].is_array(), kind == "xfs", "{report:#}");
        refused(out.path(), kind);
    }
}

fn refused(out: &Path, kind: &str) {
    let text = |name: &str| fs::read_to_string(out.join(format!("{kind}.{name}"))).unwrap();
    assert_eq!(text("exit").trim(), "3");
    assert!(
        text("error").contains("only ext4 can swap extents"),
        "{}",
        text("error")
    );
}
