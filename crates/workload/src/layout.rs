//! The seeded file layout: small files and directories that are made before anything else. Each
//! seed thus allocates inodes and blocks elsewhere.

use crate::Error;
use crate::content;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;
use sys::device::PAGE_BYTES;
use sys::random::Random;

/// Makes the seed's files under `directory`, which must exist.
pub(crate) fn create(directory: &Path, seed: u64) -> Result<(), Error> {
    let mut random = Random::for_purpose(seed, "layout");
    let content = content::uniform(16 * PAGE_BYTES, &mut random);
    for folder in 0..random.between(2, 6) {
        let folder = directory.join(format!("layout-{folder}"));
        fs::create_dir(&folder).map_err(|source| Error::io("make", &folder, source))?;
        for file in 0..random.between(4, 16) {
            let path = folder.join(format!("file-{file}"));
            let bytes = random.between(1, content.len() as u64) as usize;
            fs::write(&path, &content[..bytes])
                .map_err(|source| Error::io("write", &path, source))?;
        }
    }
    Ok(())
}

/// Writes back all dirty pages of the file system of `directory` (syncfs(2)).
pub(crate) fn settle(directory: &Path) -> Result<(), Error> {
    let open = fs::File::open(directory).map_err(|source| Error::io("open", directory, source))?;
    // SAFETY: the descriptor belongs to `open`, which outlives the call.
    match unsafe { libc::syncfs(open.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(Error::io(
            "write back",
            directory,
            std::io::Error::last_os_error(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(seed: u64) -> Vec<(String, u64)> {
        let directory = tempfile::tempdir().unwrap();
        create(directory.path(), seed).unwrap();
        let mut files = Vec::new();
        for folder in fs::read_dir(directory.path()).unwrap() {
            for file in fs::read_dir(folder.unwrap().path()).unwrap() {
                let file = file.unwrap();
                let name = file
                    .path()
                    .strip_prefix(directory.path())
                    .unwrap()
                    .display()
                    .to_string();
                files.push((name, file.metadata().unwrap().len()));
            }
        }
        files.sort();
        files
    }

    #[test]
    fn a_seed_is_a_layout() {
        assert_eq!(listing(1), listing(1));
        assert_ne!(listing(1), listing(2));
    }
}
