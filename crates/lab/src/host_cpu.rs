//! A CPU of the host for a guest of exact time.
//!
//! QEMU's main loop and its CPU take turns at each timer there. On one CPU of the host that is a
//! switch; on two it is a wake-up of the other, which costs a sixth of a trial's CPU time.

use crate::Error;
use crate::cache::Cache;
use rustix::thread::{CpuSet, sched_getaffinity};
use std::fs::{File, TryLockError};

/// Most CPUs that a set of the kernel's holds.
const MOST: usize = CpuSet::MAX_CPU;

/// A CPU that no other guest has while this lives.
pub(crate) struct HostCpu {
    number: usize,
    _lock: File,
}

impl HostCpu {
    /// One that is free; None if each that this process may use has a guest.
    pub fn free(cache: &Cache) -> Result<Option<HostCpu>, Error> {
        let allowed = sched_getaffinity(None).unwrap_or_default();
        for number in (0..MOST).filter(|it| allowed.is_set(*it)) {
            let file = cache.lock_file(&format!("cpus/{number}"))?;
            match file.try_lock() {
                Ok(()) => {
                    return Ok(Some(HostCpu {
                        number,
                        _lock: file,
                    }));
                }
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(_)) => return Ok(None),
            }
        }
        Ok(None)
    }

    /// The set that has this CPU alone.
    pub fn set(&self) -> CpuSet {
        let mut set = CpuSet::new();
        set.set(self.number);
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_guest_has_a_cpu_of_its_own_as_long_as_there_are_some() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().join("cache"));
        let there = sched_getaffinity(None).unwrap().count() as usize;
        let taken: Vec<HostCpu> = (0..there)
            .map(|_| HostCpu::free(&cache).unwrap().unwrap())
            .collect();
        assert!(HostCpu::free(&cache).unwrap().is_none());
        drop(taken);
        let again = HostCpu::free(&cache).unwrap().unwrap();
        assert_eq!(again.set().count(), 1);
    }
}
