//! Rows of guests that are done, kept so that an interrupted run can go on.

use crate::Error;
use crate::cache::Cache;
use crate::image::hex;
use record::Row;
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;

/// Guests whose rows stay in the cache.
const KEPT: usize = 1000;

const DIRECTORY: &str = "guests";
const FILE: &str = "rows.json";

/// All inputs that determine a guest's rows.
pub(crate) struct Everything<'a> {
    /// The initramfs, with what the guest is to do.
    pub image: &'a [u8],
    /// The kernel's file.
    pub kernel: &'a Path,
    /// The guest's memory.
    pub memory_mib: u64,
    /// Version of QEMU.
    pub qemu: &'a str,
}

impl Everything<'_> {
    fn digest(&self) -> Result<String, Error> {
        let kernel = fs::read(self.kernel).map_err(Error::file(self.kernel))?;
        let mut digest = Sha256::new();
        for part in [self.image, &kernel, self.qemu.as_bytes()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        digest.update(self.memory_mib.to_le_bytes());
        Ok(hex(&digest.finalize()))
    }
}

/// The rows that a guest with the same everything had, or those of `run`, which are kept.
pub(crate) fn rows(
    cache: &Cache,
    guest: &Everything,
    run: impl FnOnce() -> Result<Vec<Row>, Error>,
) -> Result<Vec<Row>, Error> {
    let place = cache.directory(&format!("{DIRECTORY}/{}", guest.digest()?), |dir| {
        let path = dir.join(FILE);
        fs::write(&path, serde_json::to_vec(&run()?)?).map_err(Error::file(&path))
    })?;
    cache.keep_latest(DIRECTORY, "", KEPT)?;
    let path = place.join(FILE);
    Ok(serde_json::from_slice(
        &fs::read(&path).map_err(Error::file(&path))?,
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_runs_once_and_another_runs_too() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("cache"));
        let kernel = dir.path().join("vmlinuz");
        fs::write(&kernel, "kernel").unwrap();
        let guest = |image: &'static str| Everything {
            image: image.as_bytes(),
            kernel: &kernel,
            memory_mib: 640,
            qemu: "8.2",
        };
        assert!(rows(&cache, &guest("one"), || Err(Error::Interrupted)).is_err());
        assert!(rows(&cache, &guest("one"), || Ok(Vec::new())).is_ok());
        assert!(rows(&cache, &guest("one"), || panic!("it ran twice")).is_ok());
        assert!(rows(&cache, &guest("two"), || Err(Error::Interrupted)).is_err());
    }
}
