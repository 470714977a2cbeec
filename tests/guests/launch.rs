//! `frontrow launch` as root uses it, in a guest: recorded by IOPro, loaded with the file
//! system's own blocks, loaded again after an eviction, brought up to date when files have changed,
//! and from a packed image.

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
frontrow launch record --json --tries 0 --name cat -- busybox md5sum $files > /tmp/record
sed '/^{/,$!d' /tmp/record
cold; before=$(reads); busybox cat $files > /dev/null; demand=$(($(reads) - before))
cold; before=$(reads); frontrow launch --name cat -- busybox cat $files > /dev/null
echo "{ \"demand\": $demand, \"loaded\": $(($(reads) - before)) }"
# The files of an app that runs are open: their inodes stay in memory.
cold; busybox stat $files > /dev/null; frontrow launch resume --json cat
before=$(reads); busybox cat $files > /dev/null
echo "{ \"left\": $(($(reads) - before)) }"
frontrow launch resume --json cat
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
fn root_records_by_iopro_loads_metadata_resumes_and_keeps_the_profile_up_to_date() {
    let said = succeeds(&mut exec(&["--memory", "512"], SCRIPT));
    let values = said.values();
    let [recorded, reads, evicted, resumed, warm, old, new] = &values[..] else {
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
    assert_eq!(number(&evicted["missing_pages"]), 24 * 15, "{evicted}");
    assert_eq!(number(&resumed["left"]), 0, "{resumed}: all is in memory");
    assert_eq!(number(&warm["missing_pages"]), 0, "{warm}");
    assert_eq!(old["dropped"].as_array().unwrap().len(), 6, "{old}");
    assert_eq!(new["dropped"].as_array().unwrap().len(), 0, "{new}");
    assert_eq!(new["valid_pages"], recorded["pages"]);
}

/// For each packer: files of which an app reads some, in an image that is mounted as a Snap is. The
/// image gets another loop device after the recording, as it may at each boot.
const PACKED: &str = r#"
export HOME=/tmp
mkdir tree app
for i in $(seq 96); do
    mkdir tree/$i
    tail -c +$((i * 9973)) /bin/busybox | head -c 90000 > tree/$i/file
done
reads() { set -- $(cat /sys/block/simflash0/stat); echo $1; }
sectors() { set -- $(cat /sys/block/simflash0/stat); echo $3; }
cold() { sync; echo 3 > /proc/sys/vm/drop_caches; echo 3 > /proc/sys/vm/drop_caches; }
files=$(for i in $(seq 7 11 300); do echo app/$((i % 97 + (i % 97 == 0)))/file; done)
for packer in $packers; do
    mksquashfs tree app.img -comp $packer -no-progress -quiet -processors 1 >&2 || exit
    mount -o loop,ro -t squashfs app.img app || exit
    frontrow launch record --json --tries 0 --name $packer -- busybox md5sum $files > /tmp/record
    sed '/^{/,$!d' /tmp/record
    cold; before=$(sectors); busybox cat $files | md5sum > /tmp/sum
    demand=$(($(sectors) - before))
    umount app; losetup -d /dev/loop0; losetup /dev/loop3 app.img
    mount -o ro -t squashfs /dev/loop3 app || exit
    frontrow launch plan --json $packer
    cold; before=$(sectors); frontrow launch --name $packer -- busybox sleep 5
    loaded=$(($(sectors) - before)); before=$(reads)
    busybox cat $files | md5sum | cmp - /tmp/sum || exit
    echo "{ \"demand\": $demand, \"loaded\": $loaded, \"left\": $(($(reads) - before)) }"
    umount app; losetup -d /dev/loop3; rm app.img
done
"#;

#[test]
fn a_packed_apps_image_is_read_and_its_files_are_unpacked_ahead() {
    is_unpacked_ahead(&["xz"]);
}

#[test]
#[ignore = "the same for two more packers: make stress-guests"]
fn a_packed_apps_files_are_unpacked_ahead_whatever_the_packer() {
    is_unpacked_ahead(&["lzo", "zstd"]);
}

fn is_unpacked_ahead(packers: &[&str]) {
    let with = ["--memory", "512", "--with", "mksquashfs", "--modules"];
    let script = format!("packers='{}'\n{PACKED}", packers.join(" "));
    let said = succeeds(&mut exec(
        &[&with[..], &["loop,squashfs"]].concat(),
        &script,
    ));
    let values = said.values();
    assert_eq!(
        values.len(),
        3 * packers.len(),
        "{values:?}\n{}",
        said.stderr
    );
    for packer in values.chunks(3) {
        let [recorded, plan, read] = packer else {
            panic!("{packer:?}")
        };
        let number = |value: &Value| value.as_u64().unwrap();
        assert_eq!(number(&recorded["files"]), 28, "27 files and the image");
        // The blocks of the image's own tables are its pages, too.
        assert_eq!(number(&recorded["metadata_pages"]), 0, "{recorded}");
        assert_eq!(plan["valid_pages"], recorded["pages"]);
        assert_eq!(plan["unplaced"].as_array().unwrap().len(), 27, "{plan}");
        let image_bytes = number(&plan["devices"][0]["bytes"]);
        assert!(image_bytes > 27 * 20_000, "{plan}");
        // The loop device's readahead reads more than the app needs; loading does not.
        let loaded_bytes = number(&read["loaded"]) * 512;
        assert!(loaded_bytes >= image_bytes, "{read} {plan}");
        assert!(number(&read["loaded"]) <= number(&read["demand"]), "{read}");
        assert_eq!(
            number(&read["left"]),
            0,
            "{read}: all is unpacked in memory"
        );
    }
}
