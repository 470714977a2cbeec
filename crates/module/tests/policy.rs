//! Policies by their names in experiments.

use module::sched::policy::apply;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;

fn guest() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, value) in [
        ("proc/sys/kernel/random/boot_id", "boot-1"),
        ("proc/sys/kernel/osrelease", "6.12"),
        (
            "sys/block/simflash0/queue/scheduler",
            "[mq-deadline] none frontrow",
        ),
        ("sys/block/simflash0/diskseq", "1"),
        ("sys/block/simflash0/queue/nr_requests", "4"),
        ("sys/block/simflash0/queue/wbt_lat_usec", "2000"),
        ("sys/block/simflash0/queue/iosched/boost", "all"),
    ] {
        fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
        fs::write(root.path().join(path), format!("{value}\n")).unwrap();
    }
    fs::create_dir_all(root.path().join("sys/class/block")).unwrap();
    symlink(
        "../../block/simflash0",
        root.path().join("sys/class/block/simflash0"),
    )
    .unwrap();
    root
}

fn queue(root: &Path) -> [String; 4] {
    ["scheduler", "nr_requests", "wbt_lat_usec", "iosched/boost"].map(|attribute| {
        let path = root.join("sys/block/simflash0/queue").join(attribute);
        fs::read_to_string(path).unwrap().trim().to_owned()
    })
}

#[test]
fn a_stock_policy_sets_the_scheduler_and_nothing_else() {
    let root = guest();
    apply(root.path(), "simflash0", "kyber").unwrap();
    assert_eq!(queue(root.path()), ["kyber", "4", "2000", "all"]);
}

#[test]
fn frontrow_brings_its_tags_and_what_promotes() {
    let root = guest();
    let changes = apply(root.path(), "simflash0", "frontrow:meta").unwrap();
    assert_eq!(queue(root.path()), ["frontrow", "512", "0", "meta"]);
    assert_eq!(changes.len(), 4);

    apply(root.path(), "simflash0", "frontrow").unwrap();
    assert_eq!(queue(root.path()), ["frontrow", "512", "0", "all"]);
}

#[test]
fn a_policy_leaves_nothing_of_the_one_before() {
    let root = guest();
    apply(root.path(), "simflash0", "frontrow:none").unwrap();
    apply(root.path(), "simflash0", "none").unwrap();
    assert_eq!(queue(root.path()), ["none", "4", "2000", "all"]);
}

#[test]
fn an_unknown_name_changes_nothing() {
    let root = guest();
    for policy in ["deadline", "frontrow:colour", "frontrow-meta", ""] {
        assert!(apply(root.path(), "simflash0", policy).is_err(), "{policy}");
    }
    let before = ["[mq-deadline] none frontrow", "4", "2000", "all"];
    assert_eq!(queue(root.path()), before);
}
