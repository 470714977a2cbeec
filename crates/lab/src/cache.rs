//! What is made once and kept: unpacked packages and built modules.

use crate::Error;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// `$XDG_CACHE_HOME/frontrow`, else `~/.cache/frontrow`. Anything in it may be
/// deleted at any time when no lab runs; it is made again.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The user's cache.
    pub fn of_user() -> Result<Cache, Error> {
        let set = |name| {
            env::var_os(name)
                .filter(|it| !it.is_empty())
                .map(PathBuf::from)
        };
        let base = set("XDG_CACHE_HOME")
            .or_else(|| set("HOME").map(|home| home.join(".cache")))
            .ok_or_else(|| {
                Error::Usage("set HOME or XDG_CACHE_HOME: the lab keeps kernels there".to_owned())
            })?;
        Ok(Cache::at(base.join("frontrow")))
    }

    /// A cache in `root`.
    pub fn at(root: PathBuf) -> Cache {
        Cache { root }
    }

    /// The directory `name`, filled by `make` when it is not there yet. Another
    /// process that wants the same waits, and what is half made is never seen:
    /// it is filled under another name and renamed.
    pub fn directory(
        &self,
        name: &str,
        make: impl FnOnce(&Path) -> Result<(), Error>,
    ) -> Result<PathBuf, Error> {
        let place = self.root.join(name);
        if place.is_dir() {
            return Ok(place);
        }
        let parent = place.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).map_err(Error::file(parent))?;
        let _lock = lock(&with_ending(&place, ".lock"))?;
        if place.is_dir() {
            return Ok(place);
        }
        let unfinished = with_ending(&place, ".unfinished");
        remove(&unfinished)?;
        fs::create_dir(&unfinished).map_err(Error::file(&unfinished))?;
        make(&unfinished)?;
        fs::rename(&unfinished, &place).map_err(Error::file(&place))?;
        Ok(place)
    }
}

/// The lock is held until the file is closed.
fn lock(path: &Path) -> Result<File, Error> {
    let file = File::create(path).map_err(Error::file(path))?;
    file.lock().map_err(Error::file(path))?;
    Ok(file)
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn remove(directory: &Path) -> Result<(), Error> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::file(directory)(error))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_made_once() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::at(root.path().to_owned());
        let make = |dir: &Path| fs::write(dir.join("file"), "1").map_err(Error::file(dir));
        let place = cache.directory("kernels/6.12", make).unwrap();
        assert!(place.join("file").is_file());
        let again = cache.directory("kernels/6.12", |_| panic!("made twice"));
        assert_eq!(again.unwrap(), place);
    }

    #[test]
    fn what_failed_half_way_is_not_there() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::at(root.path().to_owned());
        let fail = |dir: &Path| {
            fs::write(dir.join("half"), "").unwrap();
            Err(Error::Interrupted)
        };
        assert!(cache.directory("tools", fail).is_err());
        let make = |dir: &Path| {
            assert!(!dir.join("half").exists());
            Ok(())
        };
        assert!(cache.directory("tools", make).is_ok());
    }

    #[test]
    fn two_at_once_make_it_once() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::at(root.path().to_owned());
        let made = std::sync::atomic::AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let make = |_: &Path| {
                        made.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                        Ok(())
                    };
                    cache.directory("one", make).unwrap();
                });
            }
        });
        assert_eq!(made.into_inner(), 1);
    }
}
