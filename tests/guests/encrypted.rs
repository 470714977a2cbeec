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
frontrow bench /mnt --workload m1,m4 --load idle,writer --seeds 1 --yes --json
"#;

/// Total times in ms of M1 and M4, each alone and beside the writer.
fn totals_ms(policy: &str) -> [[f64; 2]; 2] {
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
    let total_ms = |workload, load| {
        let mut rows = result["rows"].as_array().unwrap().iter();
        let wanted = [workload, load, "total_ms"];
        let row = rows.find(|row| ["workload", "load", "metric"].map(|it| &row[it]) == wanted);
        row.unwrap()["value"].as_f64().unwrap()
    };
    ["m1", "m4"].map(|workload| ["idle", "writer"].map(|load| total_ms(workload, load)))
}

#[test]
fn an_encrypted_volume_without_its_write_thread_is_as_quick_as_a_plain_one() {
    let [[m1_alone, m1], [m4_alone, m4]] = totals_ms("frontrow");
    let [[_, m1_stock], [_, m4_stock]] = totals_ms("mq-deadline");
    assert!(m1 < 0.3 * m1_stock, "M1 {m1} ms, stock {m1_stock}");
    assert!(m4 < m4_stock, "M4 {m4} ms, stock {m4_stock}");
    assert!(
        m1 < 2.0 * m1_alone && m4 < 2.0 * m4_alone,
        "{m1_alone} {m4_alone}"
    );
}
