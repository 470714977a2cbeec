//! The scheduler below dm-crypt, on a volume without its write thread: fsyncs and truncates beside a
//! writer, as `frontrow bench` measures them in the guest.

use crate::harness::{exec, succeeds};
use serde_json::Value;

/// The null cipher, since a processor that encrypts for real does so far faster than a disk writes.
const ENCRYPTED: &str = r#"
cd /
umount /mnt
sectors=$(cat /sys/block/simflash0/size)
table="0 $sectors crypt cipher_null-ecb - 0 /dev/simflash0 0 1 no_write_workqueue"
DM_DISABLE_UDEV=1 dmsetup create volume --table "$table"
/bin/mke2fs -q -F -t ext4 -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 /dev/dm-0
mount -t ext4 -o noinit_itable /dev/dm-0 /mnt
frontrow bench /mnt --workload m1,m4 --load idle,writer --seeds 1..3 --yes --json
"#;

/// The mean fsync of M1 in ms, alone and beside the writer, and M4 as a whole beside it: the middle of
/// three seeds, as one fsync that meets a commit doubles a mean.
fn times_ms(policy: &str) -> [f64; 3] {
    let guest = [
        "--policy",
        policy,
        "--device",
        "emmc:fresh",
        "--memory",
        "640",
    ];
    let parts = [
        "--with",
        "dmsetup",
        "--modules",
        "dm_mod,dm_crypt,crypto_null,ecb",
    ];
    let said = succeeds(&mut exec(&[guest.as_slice(), &parts].concat(), ENCRYPTED)).stdout;
    let result: Value = serde_json::from_str(&said).unwrap();
    let cells = [
        ["m1", "idle", "fsync_mean_ms"],
        ["m1", "writer", "fsync_mean_ms"],
        ["m4", "writer", "total_ms"],
    ];
    cells.map(|wanted| {
        let rows = result["rows"].as_array().unwrap().iter();
        let found = rows.filter(|row| ["workload", "load", "metric"].map(|it| &row[it]) == wanted);
        let mut values: Vec<f64> = found.map(|it| it["value"].as_f64().unwrap()).collect();
        assert_eq!(values.len(), 3, "{wanted:?}");
        values.sort_by(f64::total_cmp);
        values[1]
    })
}

/// Totals would have the kernel's write throttle in them. Before a worker was held to 10 ms of writes
/// that name no file, M4 took ×2.3 of stock.
#[test]
fn an_encrypted_volume_without_its_write_thread_is_as_quick_as_a_plain_one() {
    let [alone, beside, m4] = times_ms("frontrow");
    let [_, stock, m4_stock] = times_ms("mq-deadline");
    assert!(beside < 2.0 * alone, "fsync {beside} ms, alone {alone}");
    assert!(beside < 0.3 * stock, "fsync {beside} ms, stock {stock}");
    assert!(m4 < 1.5 * m4_stock, "M4 {m4} ms, stock {m4_stock}");
}
