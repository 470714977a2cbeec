//! `frontrow launch` as root uses it, in a guest: recorded by IOPro, loaded with the file
//! system's own blocks, and brought up to date when files have changed.

use crate::harness::{exec, succeeds};
use serde_json::Value;

/// An app that reads 24 files in as many directories, of which the last six are then replaced.
const SCRIPT: &str = r#"
export HOME=/tmp
mkdir d x
for i in $(seq 24); do mkdir d/$i x/$i; head -c 60000 /bin/busybox > d/$i/file; done
reads() { set -- $(cat /sys/block/simflash0/stat); echo $1; }
cold() { sync; echo 3 > /proc/sys/vm/drop_caches; echo 3 > /proc/sys/vm/drop_caches; }
files=$(for i in $(seq 24); do echo d/$i/file; done)
frontrow launch record --json --name cat -- busybox cat $files > /tmp/record
sed '/^{/,$!d' /tmp/record
cold; before=$(reads); busybox cat $files > /dev/null; demand=$(($(reads) - before))
cold; before=$(reads); frontrow launch --name cat -- busybox cat $files > /dev/null
echo "{ \"demand\": $demand, \"loaded\": $(($(reads) - before)) }"
for i in $(seq 19 24); do cp d/$i/file x/$i/; mv x/$i/file d/$i/file; done
sync
frontrow launch plan --json cat
cold; frontrow launch --name cat -- busybox cat $files > /dev/null
for second in $(seq 20); do
    frontrow launch plan --json cat > /tmp/plan
    grep -q '"dropped": \[\]' /tmp/plan && break
    sleep 1
done
cat /tmp/plan
"#;

#[test]
fn root_records_by_iopro_loads_metadata_and_keeps_the_profile_up_to_date() {
    let said = succeeds(&mut exec(&["--memory", "512"], SCRIPT));
    let values = said.values();
    let [recorded, reads, old, new] = &values[..] else {
        panic!("{values:?}\n{}", said.stderr);
    };
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!(recorded["source"], "iopro", "{}", said.stderr);
    assert_eq!(number(&recorded["files"]), 24);
    assert_eq!(number(&recorded["pages"]), 24 * 15);
    // A directory's block for each file, and inodes.
    assert!(number(&recorded["metadata_pages"]) >= 24, "{recorded}");
    // By demand each directory is read by itself; loaded, neighbours are one request.
    assert!(
        number(&reads["loaded"]) + 12 <= number(&reads["demand"]),
        "{reads}"
    );
    assert_eq!(old["dropped"].as_array().unwrap().len(), 6, "{old}");
    assert_eq!(new["dropped"].as_array().unwrap().len(), 0, "{new}");
    assert_eq!(new["valid_pages"], recorded["pages"]);
}
