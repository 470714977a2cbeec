//! Users make and remove cgroups while lists name them. A list is accepted with the cgroups that
//! exist, and removed cgroups are freed.

use crate::failure::require;
use crate::load::Load;
use crate::test_bed::{is_debug_kernel, read};
use crate::volume::Volume;
use crate::{Failure, Outcome, TestBed};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use sys::random::Random;

const WRITES: u32 = 2000;
const WRITES_DEBUG: u32 = 400;

/// Number of cgroups that are made and removed, which exceeds the kernel's limit of a list.
const VOLATILE: usize = 64;
const NAMED: usize = 12;

const CGROUPS: &str = "/sys/fs/cgroup";
/// A cgroup that is not removed.
const LASTING: &str = "/torture-lasting";

/// Lists, with the share that precedes each cgroup.
const LISTS: [(&str, &str); 3] = [("foreground", ""), ("background", ""), ("visible", "30 ")];

/// Longest time until a removed cgroup that was referenced is freed.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    let volume = Volume::make(bed)?;
    fs::create_dir_all(directory(LASTING)).map_err(Failure::io("make", &directory(LASTING)))?;
    let load = Load::start(volume.path(), bed.seed);
    let dying = dying_cgroups()?;
    let stop = AtomicBool::new(false);
    let removed = AtomicU64::new(0);
    let written = thread::scope(|scope| {
        let users: Vec<_> = (0..2)
            .map(|user| {
                let (stop, removed) = (&stop, &removed);
                scope.spawn(move || come_and_go(user, stop, removed))
            })
            .collect();
        let written = write_lists(bed, &removed);
        stop.store(true, Ordering::Relaxed);
        users.into_iter().fold(written, |outcome, user| {
            let panicked = |_| Err(Failure::new("a user panicked"));
            outcome.and(user.join().unwrap_or_else(panicked))
        })
    });
    written?;
    load.goes_on(1)?;
    load.end()?;
    for (list, _) in LISTS {
        bed.set(&format!("iosched/{list}"), "none")?;
    }
    for index in 0..VOLATILE {
        remove(&volatile(index))?;
    }
    remove(LASTING)?;
    volume.unmount()?;
    are_given_back(dying)
}

fn directory(cgroup: &str) -> PathBuf {
    Path::new(CGROUPS).join(cgroup.trim_start_matches('/'))
}

fn volatile(index: usize) -> String {
    format!("/torture-{index}")
}

/// Makes or removes random cgroups until `stop` is set.
fn come_and_go(user: u64, stop: &AtomicBool, removed: &AtomicU64) -> Outcome<()> {
    let mut random = Random::new(user);
    while !stop.load(Ordering::Relaxed) {
        let cgroup = volatile(random.index(VOLATILE));
        match fs::create_dir(directory(&cgroup)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                remove(&cgroup)?;
                removed.fetch_add(1, Ordering::Relaxed);
            }
            made => made.map_err(Failure::io("make", &directory(&cgroup)))?,
        }
    }
    Ok(())
}

/// Removes a cgroup; another user may have done so first.
fn remove(cgroup: &str) -> Outcome<()> {
    match fs::remove_dir(directory(cgroup)) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Failure::io("remove", &directory(cgroup))(error))
        }
        _ => Ok(()),
    }
}

fn write_lists(bed: &TestBed, removed: &AtomicU64) -> Outcome<()> {
    let mut random = Random::new(bed.seed);
    let mut incomplete = 0;
    let writes = match is_debug_kernel() {
        true => WRITES_DEBUG,
        false => WRITES,
    };
    for _ in 0..writes * bed.rounds {
        let (list, share) = LISTS[random.index(LISTS.len())];
        let list = format!("iosched/{list}");
        let mut lines: Vec<_> = (0..NAMED)
            .map(|_| format!("{share}{}", volatile(random.index(VOLATILE))))
            .collect();
        let lasting = format!("{share}{LASTING}");
        lines.insert(random.index(NAMED + 1), lasting.clone());
        bed.set(&list, &lines.join("\n"))?;
        let held = bed.get(&list)?;
        require(held.lines().any(|line| line == lasting), || {
            format!("{list} took '{lines:?}' and holds '{held}'")
        })?;
        incomplete += u32::from(held.lines().count() < lines.len());
    }
    // A list without any existing cgroup is an error.
    let answer = bed.try_set("iosched/foreground", "/torture-nowhere");
    let error = answer.err().and_then(|error| error.raw_os_error());
    require(error == Some(libc::ENOENT), || {
        format!("a cgroup that never was is answered with {error:?}")
    })?;
    // Otherwise the races were not tested.
    require(
        removed.load(Ordering::Relaxed) > 100 && incomplete > 10,
        || format!("{removed:?} cgroups were removed and {incomplete} lists were incomplete"),
    )
}

fn dying_cgroups() -> Outcome<u64> {
    let stat = read("/sys/fs/cgroup/cgroup.stat")?;
    let mut lines = stat.lines();
    let dying = lines.find_map(|line| line.strip_prefix("nr_dying_descendants "));
    let dying = dying.and_then(|dying| dying.parse().ok());
    dying.ok_or_else(|| Failure::new("cgroup.stat does not count the dying"))
}

fn are_given_back(dying: u64) -> Outcome<()> {
    let step = Duration::from_millis(100);
    let mut waited = Duration::ZERO;
    while dying_cgroups()? > dying {
        require(waited < PATIENCE, || {
            "cgroups that were removed are still held".to_owned()
        })?;
        thread::sleep(step);
        waited += step;
    }
    Ok(())
}
