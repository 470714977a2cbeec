//! Restoring untrusted snapshots. Whatever a snapshot contains, its restore ends, and leaves a
//! private file or nothing, and no other files. `make stress` repeats this more often
//! (FUZZ_ROUNDS).

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use sys::random::Random;

const ROUNDS: u64 = 16;

static NEVER: AtomicBool = AtomicBool::new(false);

/// Other tests run in this process.
const RIGHTS_STAY: layout::snapshot::Confine<'static> = &|_| Ok(());

/// The layout of a small file system, unpacked, and the comment of its snapshot.
fn layout(directory: &Path) -> (Vec<u8>, Vec<u8>) {
    let (image, saved) = (directory.join("image"), directory.join("saved"));
    File::create(&image).unwrap().set_len(8 << 20).unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let made = Command::new("mke2fs")
        .env("PATH", format!("{path}:/usr/sbin:/sbin"))
        .args(["-q", "-F", "-t", "ext4"])
        .arg(&image)
        .status()
        .expect("this test needs mke2fs (Debian: apt-get install e2fsprogs)");
    assert!(made.success());
    layout::snapshot::save(&image, &saved, RIGHTS_STAY, &NEVER).unwrap();
    assert_eq!(saved.metadata().unwrap().mode() & 0o777, 0o600);
    let mut gzip = GzDecoder::new(File::open(&saved).unwrap());
    let comment = gzip.header().unwrap().comment().unwrap().to_vec();
    let mut layout = Vec::new();
    gzip.read_to_end(&mut layout).unwrap();
    fs::remove_file(image).unwrap();
    fs::remove_file(saved).unwrap();
    (layout, comment)
}

/// Changes bytes of the header, the tables, the superblock or anywhere in the layout, or its end.
fn changed(layout: &[u8], random: &mut Random) -> Vec<u8> {
    let mut layout = layout.to_vec();
    for _ in 0..1 + random.index(8) {
        let within = [72, 4096, 1 << 17, layout.len()][random.index(4)].min(layout.len());
        let at = random.index(within);
        layout[at] = [0, 0xff, random.index(256) as u8][random.index(3)];
    }
    if random.index(4) == 0 {
        layout.truncate(random.index(layout.len()));
    }
    layout
}

#[test]
fn whatever_a_snapshot_holds_restoring_it_ends_and_leaves_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let (layout, comment) = layout(directory.path());
    let hostile = directory.path().join("hostile");
    let target = directory.path().join("target");
    let rounds = std::env::var("FUZZ_ROUNDS").ok();
    let rounds = rounds.map_or(ROUNDS, |it| it.parse().unwrap());
    let (mut laid_out, mut refused) = (0, 0);
    for round in 0..rounds {
        let mut random = Random::new(round);
        let content = match round {
            // Round 0 has the layout without a change.
            0 => layout.clone(),
            _ => changed(&layout, &mut random),
        };
        let mut gzip = GzBuilder::new()
            .comment(comment.clone())
            .write(File::create(&hostile).unwrap(), Compression::fast());
        gzip.write_all(&content).unwrap();
        gzip.finish().unwrap();
        match layout::snapshot::restore(&hostile, &target, &mut |_, _| {}, RIGHTS_STAY, &NEVER) {
            Ok(restored) => {
                let metadata = target.metadata().unwrap();
                assert_eq!(metadata.mode() & 0o777, 0o600, "round {round}");
                let bytes = restored.filesystem.size_bytes;
                assert_eq!(metadata.len(), bytes, "round {round}");
                fs::remove_file(&target).unwrap();
                laid_out += 1;
            }
            Err(_) => refused += 1,
        }
        let names = fs::read_dir(directory.path()).unwrap().flatten();
        let names: Vec<_> = names.map(|it| it.file_name()).collect();
        assert_eq!(names, ["hostile"], "round {round}");
    }
    assert!(laid_out > 0 && refused > 0, "{laid_out} and {refused}");
}
