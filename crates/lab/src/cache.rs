//! Cache of unpacked packages and built modules.

use crate::Error;
use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

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
            note_use(&place)?;
            return Ok(place);
        }
        // It is held until the file is closed.
        let lock = self.lock_file(name)?;
        lock.lock().map_err(Error::file(&place))?;
        if place.is_dir() {
            return Ok(place);
        }
        let unfinished = with_ending(&place, UNFINISHED);
        remove(&unfinished)?;
        fs::create_dir(&unfinished).map_err(Error::file(&unfinished))?;
        make(&unfinished)?;
        fs::rename(&unfinished, &place).map_err(Error::file(&place))?;
        Ok(place)
    }

    /// The file `name`, made if it is not there, for locks.
    pub fn lock_file(&self, name: &str) -> Result<File, Error> {
        let path = with_ending(&self.root.join(name), LOCK);
        let parent = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(parent).map_err(Error::file(parent))?;
        File::create(&path).map_err(Error::file(&path))
    }

    /// Number of entries that `parent` has room for: `asked`, or as many as an earlier caller asked for.
    pub fn room(&self, parent: &str, asked: usize) -> Result<usize, Error> {
        let path = with_ending(&self.root.join(parent), ROOM);
        // It is held until the file is closed.
        let lock = self.lock_file(parent)?;
        lock.lock().map_err(Error::file(&path))?;
        let earlier = match fs::read_to_string(&path) {
            Ok(text) => text.trim().parse().unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => 0,
            Err(error) => return Err(Error::file(&path)(error)),
        };
        if asked > earlier {
            fs::write(&path, asked.to_string()).map_err(Error::file(&path))?;
        }
        Ok(asked.max(earlier))
    }

    /// Removes the directories in `parent` whose names begin with `prefix`, but
    /// for the `count` that were used last.
    pub fn keep_latest(&self, parent: &str, prefix: &str, count: usize) -> Result<(), Error> {
        let parent = self.root.join(parent);
        let mut used = Vec::new();
        for entry in fs::read_dir(&parent).map_err(Error::file(&parent))? {
            let entry = entry.map_err(Error::file(&parent))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Another process may just have removed or renamed it.
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            let is_made = metadata.is_dir() && !name.ends_with(UNFINISHED);
            if is_made && name.starts_with(prefix) {
                let time = metadata.modified().map_err(Error::file(entry.path()))?;
                used.push((time, entry.path()));
            }
        }
        used.sort();
        for (_, place) in used.iter().rev().skip(count) {
            remove(place)?;
            // Nobody waits for what was made long ago; a lock that stays is empty.
            let _ = fs::remove_file(with_ending(place, LOCK));
        }
        Ok(())
    }
}

const LOCK: &str = ".lock";
const ROOM: &str = ".room";
const UNFINISHED: &str = ".unfinished";

/// A directory's own time is that of its last use.
fn note_use(place: &Path) -> Result<(), Error> {
    File::open(place)
        .and_then(|directory| directory.set_modified(SystemTime::now()))
        .map_err(Error::file(place))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Removes a directory, or a link, that may be there.
pub fn remove(directory: &Path) -> Result<(), Error> {
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
    fn of_many_the_ones_used_last_are_kept() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::at(root.path().to_owned());
        let use_of = |name: &str| cache.directory(name, |_| Ok(())).unwrap();
        let old = SystemTime::UNIX_EPOCH;
        for (name, age_s) in [("m/a-1", 4), ("m/a-2", 3), ("m/a-3", 2), ("m/b-1", 5)] {
            let time = old - std::time::Duration::from_secs(age_s);
            let directory = File::open(use_of(name)).unwrap();
            directory.set_modified(time).unwrap();
        }
        use_of("m/a-1");
        cache.keep_latest("m", "a-", 2).unwrap();
        let kept = |name: &str| root.path().join(name).exists();
        assert!(kept("m/a-1") && kept("m/a-3") && kept("m/b-1"));
        assert!(!kept("m/a-2") && !kept("m/a-2.lock"));
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
