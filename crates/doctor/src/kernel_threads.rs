//! Threads of the kernel that use disks, and what they do it for.

/// What a thread of the kernel uses a disk for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// It writes for a file system, for whoever changed something there.
    FileSystem,
    /// It passes on what others read and write, for whom it cannot be told.
    Carrier,
    /// It does this of its own accord; the words follow "because of NAME, which".
    Own(&'static str),
}

/// Name for the discards of a file system, whichever thread submits them.
pub const DISCARDS: &str = "discards";

/// Parts of names, and what they work for; the first one that fits decides.
const WORK: [(&str, Work); 25] = [
    (
        "ext4lazyinit",
        Work::Own("fills the inode tables of a new file system"),
    ),
    ("_resync", Work::Own("reads or writes all of a RAID")),
    ("_reshape", Work::Own("reshapes a RAID")),
    (
        "kcopyd",
        Work::Own("copies blocks for a snapshot or another mapped volume"),
    ),
    ("btrfs-scrub", Work::Own("scrubs a Btrfs")),
    ("btrfs-balance", Work::Own("balances a Btrfs")),
    ("f2fs_gc", Work::Own("collects garbage of F2FS")),
    (
        DISCARDS,
        Work::Own("tell the disk which blocks deleted files had"),
    ),
    ("f2fs_discard", Work::Own("discards free blocks of F2FS")),
    ("bch-gc", Work::Own("collects garbage of bcache")),
    (
        "bcache_writebac",
        Work::Own("writes bcache's cache to the disk behind it"),
    ),
    ("kswapd", Work::Own("frees memory")),
    ("khugepaged", Work::Own("makes large pages")),
    ("jbd2/", Work::FileSystem),
    ("xfsaild", Work::FileSystem),
    ("xfs-", Work::FileSystem),
    ("btrfs-", Work::FileSystem),
    ("f2fs_", Work::FileSystem),
    ("flush-", Work::FileSystem),
    ("txg_sync", Work::FileSystem),
    ("bch-", Work::FileSystem),
    ("loop", Work::Carrier),
    ("dmcrypt", Work::Carrier),
    ("kcryptd", Work::Carrier),
    ("md", Work::Carrier),
];

/// What the thread with this name works for. A worker's name ends with its work, as
/// `kworker/0:1-kcopyd`; without it, it passes something on.
pub fn work(name: &str) -> Work {
    let is_worker = name.starts_with("kworker/");
    let job = match name.split_once(['-', '+']) {
        Some((_, job)) if is_worker => job,
        _ if is_worker => return Work::Carrier,
        _ => name,
    };
    let known = WORK.iter().find(|it| match it.0.starts_with('_') {
        true => job.ends_with(it.0),
        false => job.starts_with(it.0),
    });
    known.map_or(Work::Carrier, |it| it.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_known_by_its_work_and_others_by_their_names() {
        assert!(matches!(work("kworker/0:1-kcopyd"), Work::Own(_)));
        assert!(matches!(work("md_home_resync"), Work::Own(_)));
        assert!(matches!(work("ext4lazyinit"), Work::Own(_)));
        assert_eq!(work("jbd2/sda1-8"), Work::FileSystem);
        assert_eq!(work("kworker/u8:3+flush-8:0"), Work::FileSystem);
        for name in ["kworker/u8:3", "kworker/u9:0-loop0", "md0_raid1"] {
            assert_eq!(work(name), Work::Carrier, "{name}");
        }
    }
}
