//! Images among the files of a profile: a Snap's files lie in a file that a loop device makes a
//! block device of.
//!
//! A recorder in the kernel sees which blocks of the loop device the start reads, and the profile
//! has these as pages of the image. They are loaded like those of any other file, in the order of
//! the disk below. A file system that packs its files (squashfs) then unpacks them from memory.

use crate::profile::{Profile, ProfiledFile};
use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use sys::device::{LOOP_MAJOR, backings};

/// Files of a profile that are images of mounted file systems.
pub struct Images {
    all: HashSet<PathBuf>,
    /// Those whose pages in memory a loop device uses, and that this user may read.
    useful: HashSet<PathBuf>,
}

impl Images {
    /// The images of `profile`.
    pub fn of(profile: &Profile) -> Images {
        Images::below(Path::new("/"), profile)
    }

    fn below(root: &Path, profile: &Profile) -> Images {
        let mut images = Images {
            all: HashSet::new(),
            useful: HashSet::new(),
        };
        let mut devices = profile.files.iter().map(|it| it.identity.device);
        if !devices.any(|device| libc::major(device) == LOOP_MAJOR) {
            return images;
        }
        let paths: HashSet<&Path> = profile.files.iter().map(|it| it.path.as_path()).collect();
        for backing in backings(root) {
            if !paths.contains(backing.file.as_path()) {
                continue;
            }
            if !backing.direct && File::open(&backing.file).is_ok() {
                images.useful.insert(backing.file.clone());
            }
            images.all.insert(backing.file);
        }
        images
    }

    /// Whether the file is an image.
    pub fn has(&self, file: &ProfiledFile) -> bool {
        self.all.contains(&file.path)
    }

    /// The files in the order in which they are to be opened, and loaded together: part after part
    /// of the start, and of each part the images first. A file in an image is opened from the
    /// image's blocks.
    pub fn steps(&self, profile: &Profile) -> Vec<Vec<ProfiledFile>> {
        let of_part = |part: Vec<ProfiledFile>| {
            let (mut images, files): (Vec<_>, Vec<_>) =
                part.into_iter().partition(|it| self.has(it));
            images.retain(|it| self.useful.contains(&it.path));
            [images, files]
        };
        let steps = profile.parts().into_iter().flat_map(of_part);
        steps.filter(|it| !it.is_empty()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use crate::profile::{PAGE_BYTES, Pages, Timing};
    use std::fs;

    fn file(path: &Path, major: u32, late: bool) -> ProfiledFile {
        let pages = vec![Pages { first: 0, count: 1 }];
        ProfiledFile {
            path: path.to_owned(),
            identity: Identity {
                device: libc::makedev(major, 3),
                inode: 1,
                generation: 0,
                size_bytes: PAGE_BYTES,
                mtime_s: 0,
                mtime_ns: 0,
            },
            late: [
                if late { pages.clone() } else { Vec::new() },
                vec![],
                vec![],
            ],
            pages,
        }
    }

    #[test]
    fn images_come_first_in_their_part_and_those_of_no_use_not_at_all() {
        let root = tempfile::tempdir().unwrap();
        let image = |name: &str, dio: &str| {
            let path = root.path().join(name);
            fs::write(&path, "image").unwrap();
            let at = root.path().join(format!("sys/block/loop-{name}/loop"));
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("backing_file"), path.as_os_str().as_encoded_bytes()).unwrap();
            fs::write(at.join("offset"), "0\n").unwrap();
            fs::write(at.join("dio"), dio).unwrap();
            path
        };
        let (early, late, direct) = (image("early", "0"), image("late", "0"), image("past", "1"));
        let (first, second) = (Path::new("/snap/a"), Path::new("/snap/b"));
        let mut profile = Profile {
            command: "app".to_owned(),
            recorded_s: 0,
            runs: 1,
            timing: Timing::Before,
            measured: None,
            files: vec![
                file(first, LOOP_MAJOR, false),
                file(&early, 8, false),
                file(&direct, 8, false),
                file(second, LOOP_MAJOR, true),
                file(&late, 8, true),
            ],
            metadata: Vec::new(),
        };
        let steps = |profile: &Profile| -> Vec<Vec<PathBuf>> {
            let steps = Images::below(root.path(), profile).steps(profile);
            let paths = |step: &Vec<ProfiledFile>| step.iter().map(|it| it.path.clone()).collect();
            steps.iter().map(paths).collect()
        };
        let expected = [&early, first, &late, second].map(|it: &Path| vec![it.to_owned()]);
        assert_eq!(steps(&profile), expected);
        profile
            .files
            .retain(|it| it.identity.device >> 8 != u64::from(LOOP_MAJOR));
        assert_eq!(steps(&profile)[0].len(), 2, "nothing is on a loop device");
    }
}
