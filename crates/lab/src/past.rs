//! The image that an aged device begins each run with: made once, and kept in the cache.

use crate::Error;
use crate::cache::Cache;
use crate::image::hex;
use crate::sources::Sources;
use record::Device;
use replay::Config;
use replay::history::{self, History};
use sha2::{Digest, Sha256};
use std::fs;
use std::sync::atomic::AtomicBool;

/// Hears how far ageing is: pages written, and all there will be.
pub type Ageing<'a> = &'a dyn Fn(u64, u64);

/// Its place in the guest's image.
pub const PATH: &str = "/flash_image";

/// All guests find the same device; their seeds shift what they do with it.
const SEED: u64 = 1;

/// Most images in the cache: for a few profiles, and for changes of the core.
const KEPT: usize = 8;

const DIRECTORY: &str = "flash";
const FILE: &str = "image";

/// An image, if the device is aged.
pub(crate) struct Past(Option<Vec<u8>>);

impl Past {
    /// Image of an aged `device`; it is made if it is not in the cache, until `stop` becomes true.
    pub(crate) fn of(
        cache: &Cache,
        device: &Device,
        ageing: Ageing,
        stop: &AtomicBool,
    ) -> Result<Past, Error> {
        let Some(aged) = &device.aged else {
            return Ok(Past(None));
        };
        let history = History {
            filled_percent: aged.filled_percent,
            overwritten_percent: aged.overwritten_percent,
        };
        let place = cache.directory(&format!("{DIRECTORY}/{}", key(device, &history)?), |dir| {
            let image = play(device, &history, ageing, stop)?;
            let path = dir.join(FILE);
            fs::write(&path, image).map_err(Error::file(&path))
        })?;
        cache.keep_latest(DIRECTORY, "", KEPT)?;
        let path = place.join(FILE);
        let image = fs::read(&path).map_err(Error::file(&path))?;
        Ok(Past(Some(image)))
    }

    /// Path of the image in a guest.
    pub(crate) fn path(&self) -> Option<String> {
        self.0.as_ref().map(|_| PATH.to_owned())
    }

    /// Additional memory in MiB: the file, and 16 bytes for each page in the device, of which the
    /// file has 4. So the experiment has as much memory as with a new device.
    pub(crate) fn memory_mib(&self) -> u64 {
        let bytes = self.0.as_ref().map_or(0, Vec::len) as u64;
        (5 * bytes).div_ceil(1 << 20)
    }

    pub(crate) fn into_bytes(self) -> Option<Vec<u8>> {
        self.0
    }
}

fn play(
    device: &Device,
    history: &History,
    ageing: Ageing,
    stop: &AtomicBool,
) -> Result<Vec<u8>, Error> {
    let failed = |error: replay::Error| match error {
        replay::Error::Interrupted => Error::Interrupted,
        other => Error::Usage(format!("device {} cannot be aged: {other}", device.name)),
    };
    let config = Config::of_profile(&device.simflash).map_err(|error| failed(error.into()))?;
    let aged = history
        .play(&config, SEED, &mut |done, all| ageing(done, all), stop)
        .map_err(failed)?;
    Ok(aged.image.to_bytes())
}

/// Whatever the image is a function of; the core in this program is the one of its own sources.
fn key(device: &Device, history: &History) -> Result<String, Error> {
    let mut digest = Sha256::new();
    digest.update(format!(
        "{} {SEED} {history:?} {:?}",
        history::VERSION,
        device.simflash
    ));
    for (path, content) in Sources::embedded().flash()?.files {
        if path.starts_with("ftl/") {
            digest.update(path);
            digest.update((content.len() as u64).to_le_bytes());
            digest.update(content);
        }
    }
    Ok(hex(&digest.finalize())[..16].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicU64, Ordering};

    fn small() -> Device {
        let mut device = Sources::embedded().device("emmc").unwrap();
        device.simflash.insert("capacity_mib".to_owned(), 64);
        device.simflash.insert("spare_percent".to_owned(), 7);
        device.aged = Some(record::Aged {
            filled_percent: 80,
            overwritten_percent: 100,
        });
        device
    }

    fn of(cache: &Cache, device: &Device, heard: &AtomicU64) -> Past {
        let ageing = |_, _| {
            heard.fetch_add(1, Ordering::Relaxed);
        };
        Past::of(cache, device, &ageing, &AtomicBool::new(false)).unwrap()
    }

    #[test]
    fn an_image_is_made_once_and_by_what_it_depends_on() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::at(root.path().to_owned());
        let heard = AtomicU64::new(0);
        let first = of(&cache, &small(), &heard).into_bytes().unwrap();
        let steps = heard.swap(0, Ordering::Relaxed);
        assert!(steps > 0);
        let again = of(&cache, &small(), &heard);
        assert_eq!(
            (again.into_bytes(), heard.load(Ordering::Relaxed)),
            (Some(first), 0)
        );
        let mut slower = small();
        slower.simflash.insert("erase_ns".to_owned(), 9_000_000);
        of(&cache, &slower, &heard);
        assert!(heard.load(Ordering::Relaxed) > 0);
    }

    #[test]
    fn a_new_device_has_none() {
        let mut device = small();
        device.aged = None;
        let cache = Cache::at("/nonexistent".into());
        let past = of(&cache, &device, &AtomicU64::new(0));
        assert_eq!((past.path(), past.memory_mib()), (None, 0));
    }

    #[test]
    fn a_device_that_cannot_be_so_full_is_refused_by_name() {
        let root = tempfile::tempdir().unwrap();
        let device = Device {
            simflash: BTreeMap::from([("latency".to_owned(), 3)]),
            ..small()
        };
        let cache = Cache::at(root.path().to_owned());
        let ended = Past::of(&cache, &device, &|_, _| (), &AtomicBool::new(false));
        let said = ended.err().unwrap().to_string();
        assert!(said.contains("emmc") && said.contains("latency"), "{said}");
    }
}
