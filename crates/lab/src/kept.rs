//! What guests of exact time left, kept in the cache: the same guest would leave the same bytes.

use crate::Error;
use crate::cache::Cache;
use crate::image::hex;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Guests that stay in the cache, unless a run asks for more.
const KEPT: usize = 1000;

const DIRECTORY: &str = "guests";

/// Keeps guests, so that an interrupted run goes on, and a test whose guests are the same as before
/// has their verdict at once.
pub struct Keep<'a> {
    cache: &'a Cache,
    recalled: &'a (dyn Fn() + Sync),
    room: usize,
}

/// All inputs that determine what a guest does and leaves.
pub(crate) struct Everything<'a> {
    /// The initramfs, with what the guest is to do.
    pub initramfs: &'a [u8],
    /// The kernel's file.
    pub kernel: &'a [u8],
    /// Version of QEMU, and its arguments without paths.
    pub machine: &'a str,
}

impl Everything<'_> {
    fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for part in [self.initramfs, self.kernel, self.machine.as_bytes()] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        hex(&digest.finalize())
    }
}

impl<'a> Keep<'a> {
    /// Keeps in `cache`; `recalled` hears of each guest that is not run for that reason.
    pub fn new(cache: &'a Cache, recalled: &'a (dyn Fn() + Sync)) -> Keep<'a> {
        Keep {
            cache,
            recalled,
            room: KEPT,
        }
    }

    /// Makes room for as many guests as a run has, which later runs leave.
    pub fn with_room_for(self, guests: usize) -> Keep<'a> {
        let room = KEPT.max(guests);
        Keep { room, ..self }
    }

    /// The directory of what this guest left, and what `run` gave, which fills it; None if it was
    /// there already. Nothing is kept of a run that fails.
    pub(crate) fn guest<T>(
        &self,
        guest: &Everything,
        run: impl FnOnce(&Path) -> Result<T, Error>,
    ) -> Result<(PathBuf, Option<T>), Error> {
        let mut ran = None;
        let name = format!("{DIRECTORY}/{}", guest.digest());
        let place = self.cache.directory(&name, |directory| {
            ran = Some(run(directory)?);
            Ok(())
        })?;
        if ran.is_none() {
            (self.recalled)();
        }
        let room = self.cache.room(DIRECTORY, self.room)?;
        self.cache.keep_latest(DIRECTORY, "", room)?;
        Ok((place, ran))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A campaign that goes on finds its guests, though a small run came between.
    #[test]
    fn the_cache_holds_as_many_guests_as_a_run_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("cache"));
        let recalled = AtomicUsize::new(0);
        let count = || {
            recalled.fetch_add(1, Ordering::Relaxed);
        };
        let keep = |guests| Keep::new(&cache, &count).with_room_for(guests);
        let run = |keep: &Keep, number: usize| {
            let machine = number.to_string();
            let guest = Everything {
                initramfs: b"",
                kernel: b"",
                machine: &machine,
            };
            keep.guest(&guest, |_| Ok(())).unwrap();
        };
        let campaign = keep(KEPT + 20);
        for number in 0..KEPT + 15 {
            run(&campaign, number);
        }
        run(&keep(1), KEPT + 15);
        assert_eq!(recalled.load(Ordering::Relaxed), 0);
        (0..KEPT + 16).for_each(|number| run(&campaign, number));
        assert_eq!(recalled.load(Ordering::Relaxed), KEPT + 16);
    }

    #[test]
    fn a_guest_runs_once_and_another_runs_too() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("cache"));
        let recalled = AtomicUsize::new(0);
        let count = || {
            recalled.fetch_add(1, Ordering::Relaxed);
        };
        let keep = Keep::new(&cache, &count);
        let ran = Cell::new(0);
        let run = |[initramfs, kernel, machine]: [&str; 3], fails: bool| {
            let guest = Everything {
                initramfs: initramfs.as_bytes(),
                kernel: kernel.as_bytes(),
                machine,
            };
            let done = keep.guest(&guest, |_| {
                ran.set(ran.get() + 1);
                match fails {
                    true => Err(Error::Interrupted),
                    false => Ok(()),
                }
            });
            (done.is_ok(), ran.get())
        };
        let one = ["one", "6.12", "-m 640"];
        assert_eq!(run(one, true), (false, 1));
        assert_eq!(run(one, false), (true, 2));
        assert_eq!(run(one, false), (true, 2));
        assert_eq!(run(["two", "6.12", "-m 640"], false), (true, 3));
        assert_eq!(run(["two", "6.1", "-m 640"], false), (true, 4));
        assert_eq!(run(["two", "6.1", "-m 512"], false), (true, 5));
        assert_eq!(recalled.into_inner(), 1);
    }
}
