//! The profile's format: written profiles are read, and other bytes are refused.

use launch::Identity;
use launch::profile::{
    Error, Measured, Metadata, PAGE_BYTES, PARTS, Pages, Profile, ProfiledFile, Store, StoreError,
    Timing,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use xxhash_rust::xxh64::xxh64;

fn pages() -> impl Strategy<Value = Vec<Pages>> {
    let range = (1..200_u64, 1..60_u64);
    proptest::collection::vec(range, 1..20).prop_map(|ranges| {
        let mut end = 0;
        let mut all = Vec::new();
        for (gap, count) in ranges {
            let first = end + gap;
            all.push(Pages { first, count });
            end = first + count;
        }
        all
    })
}

prop_compose! {
    fn file()(
        parts in proptest::collection::vec("[a-z .é]{1,9}[a-z]", 1..5),
        numbers in any::<(u64, u64, u32, i64, u32)>(),
        slack in 0..10_000_u64,
        pages in pages(),
        first_needs in any::<[u8; 20]>(),
    ) -> ProfiledFile {
        let (device, inode, generation, mtime_s, mtime_ns) = numbers;
        let end = pages.last().map_or(0, Pages::end);
        ProfiledFile {
            path: PathBuf::from(format!("/{}", parts.join("/"))),
            identity: Identity {
                device, inode, generation,
                size_bytes: (end - 1) * PAGE_BYTES + 1 + slack,
                mtime_s, mtime_ns,
            },
            late: late(&pages, first_needs),
            pages,
        }
    }
}

/// Divides ranges among the parts: as a whole, or the first page apart from the others.
fn late(pages: &[Pages], parts: [u8; 20]) -> [Vec<Pages>; PARTS - 1] {
    let mut late: [Vec<Pages>; PARTS] = Default::default();
    for (range, part) in pages.iter().zip(parts) {
        let first = if part < 128 { range.count } else { 1 };
        late[usize::from(part) % PARTS].push(Pages {
            count: first,
            ..*range
        });
        if first < range.count {
            let (first, count) = (range.first + first, range.count - first);
            late[(usize::from(part) + 1) % PARTS].push(Pages { first, count });
        }
    }
    late.each_ref()[1..]
        .iter()
        .map(|it| (*it).clone())
        .collect::<Vec<_>>()
        .try_into()
        .unwrap()
}

prop_compose! {
    fn profile()(
        command in ".{0,40}",
        recorded_s in any::<u64>(),
        runs in any::<u32>(),
        timing in prop_oneof![Just(Timing::Before), Just(Timing::Beside), Just(Timing::Never)],
        measured in proptest::option::of(any::<[u64; 3]>()),
        mut files in proptest::collection::vec(file(), 0..12),
        has_metadata in any::<bool>(),
        blocks in pages(),
    ) -> Profile {
        let mut paths = BTreeSet::new();
        files.retain(|file| paths.insert(file.path.clone()));
        let device = files.first().map(|file| file.identity.device);
        let metadata = device.filter(|_| has_metadata).map(|device| Metadata { device, pages: blocks });
        let measured = measured.map(|[demand_us, before_us, beside_us]| Measured { demand_us, before_us, beside_us });
        let metadata = metadata.into_iter().collect();
        Profile { command, recorded_s, runs, timing, measured, files, metadata }
    }
}

/// The bytes with a correct checksum.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(xxh64(&bytes, 0).to_le_bytes());
    bytes
}

proptest! {
    #[test]
    fn what_was_written_is_read(profile in profile()) {
        prop_assert_eq!(Profile::decode(&profile.encode()).unwrap(), profile);
    }

    #[test]
    fn no_byte_can_be_changed_or_cut_off(profile in profile(), place in any::<prop::sample::Index>(), bits in 1..=255_u8) {
        let mut bytes = profile.encode();
        let place = place.index(bytes.len());
        prop_assert!(Profile::decode(&bytes[..place]).is_err());
        bytes[place] ^= bits;
        prop_assert!(Profile::decode(&bytes).is_err());
    }

    /// Bytes with a forged checksum are refused, or are a profile that encodes to the same bytes.
    #[test]
    fn hostile_bytes_are_refused_or_mean_what_they_say(
        profile in profile(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut bytes = profile.encode();
        bytes.truncate(bytes.len() - 8);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        let bytes = sealed(bytes);
        if let Ok(profile) = Profile::decode(&bytes) {
            prop_assert_eq!(profile.encode(), bytes);
        }
    }

    #[test]
    fn anything_at_all_is_read_without_a_crash(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Profile::decode(&body);
        let _ = Profile::decode(&sealed([&b"FRLAUNCH\x03\0"[..], &body].concat()));
    }

    /// Each page is in one part only, the one that needs it first.
    #[test]
    fn the_parts_are_the_profile(profile in profile()) {
        let each = |file: &ProfiledFile, pages: &[Pages]| {
            let path = file.path.clone();
            let pages: Vec<u64> = pages.iter().flat_map(|it| it.first..it.end()).collect();
            pages.into_iter().map(move |page| (path.clone(), page))
        };
        let mut seen = BTreeSet::new();
        for (number, part) in profile.parts().iter().enumerate() {
            prop_assert!(part.iter().all(|it| !it.pages.is_empty()));
            let pages: Vec<_> = part.iter().flat_map(|it| each(it, &it.pages)).collect();
            for page in &pages {
                prop_assert!(seen.insert(page.clone()), "{:?} is in two parts", page);
            }
            if number > 0 {
                let late = profile.files.iter().flat_map(|it| each(it, &it.late[number - 1]));
                prop_assert_eq!(pages, late.collect::<Vec<_>>());
            }
        }
        let all = profile.files.iter().flat_map(|it| each(it, &it.pages));
        prop_assert_eq!(seen, all.collect());
    }

    /// A profile of the version before has no measured starts.
    #[test]
    fn what_version_3_wrote_is_read(profile in profile()) {
        let profile = Profile { measured: None, ..profile };
        let mut bytes = profile.encode();
        bytes.truncate(bytes.len() - 8);
        let text = profile.command.len();
        let numbers = [profile.recorded_s, profile.runs.into(), profile.timing as u64];
        // Each number takes a byte for seven bits.
        let length = |number: u64| (64 - (number | 1).leading_zeros() as usize).div_ceil(7);
        let at = 10 + 1 + text + usize::from(text > 127);
        let measured = at + numbers.map(length).iter().sum::<usize>();
        prop_assert_eq!(bytes.remove(measured), 0);
        bytes[8] = 3;
        prop_assert_eq!(Profile::decode(&sealed(bytes)).unwrap(), profile);
    }

    #[test]
    fn the_intersection_is_what_both_have(one in pages(), other in pages()) {
        let has = |all: &[Pages], page| all.iter().any(|it| (it.first..it.end()).contains(&page));
        let of = |pages: &[Pages]| Profile {
            command: String::new(), recorded_s: 0, runs: 1, timing: Timing::Before, measured: None,
            files: vec![ProfiledFile {
                path: "/a".into(),
                identity: Identity { device: 1, inode: 1, generation: 0, size_bytes: 1 << 40, mtime_s: 0, mtime_ns: 0 },
                pages: pages.to_vec(),
                late: Default::default(),
            }],
            metadata: Vec::new(),
        };
        let both = of(&one).intersection(&of(&other));
        let common = both.files.first().map_or(&[][..], |file| &file.pages);
        let end = one.last().unwrap().end().max(other.last().unwrap().end());
        for page in 0..end {
            prop_assert_eq!(has(common, page), has(&one, page) && has(&other, page));
        }
        prop_assert_eq!(both.runs, 2);
        let canonical = Profile::decode(&both.encode());
        prop_assert_eq!(canonical.unwrap(), both);
    }
}

/// Decodes a profile with this body.
fn of_body(body: &[u8]) -> Result<Profile, Error> {
    Profile::decode(&sealed([&b"FRLAUNCH\x03\0"[..], body].concat()))
}

fn hostile(body: &[u8]) -> Error {
    of_body(body).unwrap_err()
}

#[test]
fn huge_counts_take_no_memory() {
    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let files = [&[0, 0, 1, 0][..], &huge].concat();
    assert_eq!(
        hostile(&files),
        Error::Nonsense("a count is larger than the profile")
    );
    assert_eq!(
        hostile(&huge),
        Error::Nonsense("a count is larger than the profile")
    );
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    for path in ["etc/passwd", "/usr/../etc/passwd", "", "/a\0b", "/./.."] {
        let mut body = vec![0, 0, 1, 0, 1, 0, path.len() as u8];
        body.extend(path.as_bytes());
        body.extend([1, 1, 0, 100, 0, 0, 1, 0, 1, 0, 0, 0]);
        assert_eq!(
            hostile(&body),
            Error::Nonsense("a path is not an absolute one without .."),
            "{path:?}"
        );
    }
}

#[test]
fn pages_beyond_the_end_are_refused() {
    // A file of one byte has a page 0 and no page 1.
    let body = |gap| {
        [
            &[0, 0, 1, 0, 1, 0, 2][..],
            b"/a",
            &[1, 1, 0, 1, 0, 0, 1, gap, 1, 0, 0, 0, 0],
        ]
        .concat()
    };
    assert!(of_body(&body(0)).is_ok());
    assert_eq!(
        hostile(&body(1)),
        Error::Nonsense("a page is beyond the end of its file")
    );
}

#[test]
fn a_page_is_needed_first_by_one_part_and_is_in_the_profile() {
    // The file has two pages; page 1 is in the profile.
    let body = |second: &[u8], last: &[u8]| {
        let pages = [1, 1, 0, 255, 63, 0, 0, 1, 1, 1];
        [
            &[0, 0, 1, 0, 1, 0, 2][..],
            b"/a",
            &pages,
            second,
            &[0],
            last,
            &[0],
        ]
        .concat()
    };
    let (page_0, page_1, none) = ([1, 0, 1], [1, 1, 1], [0]);
    let late = of_body(&body(&none, &page_1)).unwrap().files.remove(0).late;
    assert_eq!(late, [vec![], vec![], vec![Pages { first: 1, count: 1 }]]);
    for (second, last) in [(&page_0[..], &none[..]), (&page_1, &page_1)] {
        assert_eq!(
            hostile(&body(second, last)),
            Error::Nonsense("a part needs a page of another or of none")
        );
    }
}

#[test]
fn metadata_of_another_device_or_of_one_twice_are_refused() {
    let file = [
        &[0, 0, 1, 0, 1, 0, 2][..],
        b"/a",
        &[1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0],
    ]
    .concat();
    let of = |devices: &[u8]| {
        let each = devices.iter().flat_map(|&device| [device, 1, 7, 2]);
        let metadata: Vec<u8> = [devices.len() as u8].into_iter().chain(each).collect();
        [&file[..], &metadata].concat()
    };
    let good = of_body(&of(&[1])).unwrap();
    let pages = vec![Pages { first: 7, count: 2 }];
    assert_eq!(good.metadata, [Metadata { device: 1, pages }]);
    assert_eq!(
        hostile(&of(&[2])),
        Error::Nonsense("none of its files is on a device of it")
    );
    assert_eq!(
        hostile(&of(&[1, 1])),
        Error::Nonsense("a device is in it twice")
    );
}

#[test]
fn a_file_that_is_there_twice_is_refused() {
    let file = [1, 1, 0, 1, 0, 0, 1, 0, 1, 0, 0, 0];
    let first = [&[0, 2][..], b"/a", &file].concat();
    let second = |suffix: &[u8]| [&[2, suffix.len() as u8][..], suffix, &file].concat();
    let body = |suffix| [&[0, 0, 1, 0, 2][..], &first, &second(suffix), &[0]].concat();
    assert_eq!(of_body(&body(b"b")).unwrap().files.len(), 2);
    assert_eq!(
        hostile(&body(b"")),
        Error::Nonsense("a file is in it twice")
    );
}

#[test]
fn another_version_is_named() {
    let bytes = sealed(b"FRLAUNCH\x07\0....".to_vec());
    assert_eq!(Profile::decode(&bytes).unwrap_err(), Error::Version(7));
}

fn empty() -> Profile {
    Profile {
        command: "app".to_owned(),
        recorded_s: 1,
        runs: 1,
        timing: Timing::Before,
        measured: None,
        files: Vec::new(),
        metadata: Vec::new(),
    }
}

#[test]
fn a_store_keeps_profiles_and_tells_why_one_is_not_used() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(directory.path().join("launch"));
    let missing = store.read("app").unwrap_err().to_string();
    assert!(
        missing.contains("frontrow launch record -- app"),
        "{missing}"
    );

    let path = store.write("app", &empty()).unwrap();
    assert_eq!(store.read("app").unwrap(), empty());
    assert_eq!(fs::read_dir(store.directory()).unwrap().count(), 1);

    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(store.read("app"), Err(StoreError::NotOwn { .. })));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, "something else").unwrap();
    assert!(matches!(store.read("app"), Err(StoreError::Bad { .. })));
    for name in ["", "..", "../app", "a/b", ".hidden"] {
        assert!(
            matches!(store.read(name), Err(StoreError::Name(_))),
            "{name}"
        );
    }
}

/// An attacker who may write to the directory could guess names with the next process id, and have
/// links there.
#[test]
fn no_name_that_could_be_guessed_is_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::at(directory.path().to_owned());
    let precious = directory.path().join("precious");
    std::fs::write(&precious, "precious").unwrap();
    for name in [
        format!("app.part-{}", std::process::id()),
        "app.partial".to_owned(),
        "app.profile".to_owned(),
    ] {
        std::os::unix::fs::symlink(&precious, directory.path().join(name)).unwrap();
    }
    store.write("app", &empty()).unwrap();
    assert_eq!(std::fs::read(&precious).unwrap(), b"precious");
    assert!(!directory.path().join("app.profile").is_symlink());
}
