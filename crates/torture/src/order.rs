//! A backlog of background writes, then all other classes at once: dispatches must be in the order
//! of the class table.

use crate::failure::require;
use crate::load::start_writeback;
use crate::trace::{Class, Dispatch, Events, Tracing};
use crate::volume::Volume;
use crate::{Failure, Outcome, TestBed};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::Duration;
use sys::device::{PAGE_BYTES, Pages};
use sys::random::Random;

const BACKLOG_PAGES: usize = 8192;
const AWAITED_PAGES: usize = 256;
const DIRECT_PAGES: usize = 1024;

/// Number of threads that read with O_DIRECT, and of those that write.
const THREADS: usize = 4;
/// Together they take less of the device than a single action does (`LONG_NS` in frontrow.h).
const REQUESTS: usize = 20;

/// Time in µs for which more urgent classes may pass over a class. After it the class gets every
/// other dispatch (`deadline_ms` in queue.c).
const SYNC_WRITE_DEADLINE_US: u64 = 100_000;
const BOOSTED_DEADLINE_US: u64 = 50_000;

/// At most one request in this many may be issued late.
const ISSUED_LATE_ONE_IN: usize = 20;

/// A pause that forgives a process all that it has used (`USED_MOST_NS` in frontrow.h).
const PAUSE: Duration = Duration::from_millis(1500);

/// Number of attempts: with a slow CPU and a fast device, work may be done before a request has to
/// wait.
const TRIES: u64 = 5;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    let volume = Volume::make(bed)?;
    let mut outcome = Ok(());
    for attempt in 0..TRIES {
        let events = trace(bed.seed + attempt, volume.path())?;
        outcome = in_order(&events)?.was_a_test(&events.dispatches);
        if outcome.is_ok() {
            break;
        }
    }
    volume.unmount()?;
    outcome
}

fn trace(seed: u64, directory: &Path) -> Outcome<Events> {
    let backlog = made(directory, "backlog", BACKLOG_PAGES)?;
    let awaited = made(directory, "awaited", AWAITED_PAGES)?;
    drop(made(directory, "direct", DIRECT_PAGES)?);
    // Otherwise its requests would be dispatched as long ones.
    thread::sleep(PAUSE);
    dirty(&backlog, BACKLOG_PAGES)?;
    dirty(&awaited, AWAITED_PAGES)?;
    let tracing = Tracing::start()?;
    let failed = || Failure::io("work on files in", directory);
    start_writeback(&backlog).map_err(failed())?;
    start_writeback(&awaited).map_err(failed())?;
    let outcomes: Vec<Outcome<()>> = thread::scope(|scope| {
        let mut threads = Vec::new();
        for thread in 0..2 * THREADS {
            let seed = seed + thread as u64;
            let writes = thread % 2 == 0;
            threads.push(scope.spawn(move || direct(directory, seed, writes)));
        }
        threads.push(scope.spawn(|| awaited.sync_all().map_err(failed())));
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|it| it.unwrap_or_else(|_| Err(Failure::new("a thread died"))))
            .collect()
    });
    outcomes.into_iter().collect::<Outcome<()>>()?;
    backlog.sync_all().map_err(failed())?;
    tracing.finish()
}

/// Makes a file with all its blocks on the device.
fn made(directory: &Path, name: &str, pages: usize) -> Outcome<File> {
    let path = directory.join(name);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .map_err(Failure::io("make", &path))?;
    dirty(&file, pages)?;
    file.sync_all().map_err(Failure::io("sync", &path))?;
    Ok(file)
}

fn dirty(file: &File, pages: usize) -> Outcome<()> {
    file.write_all_at(&vec![3; pages * PAGE_BYTES], 0)
        .map_err(Failure::io("write", Path::new("a file")))
}

/// Makes direct requests one after another, which are synchronous.
fn direct(directory: &Path, seed: u64, writes: bool) -> Outcome<()> {
    let path = directory.join("direct");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(&path)
        .map_err(Failure::io("open", &path))?;
    let mut random = Random::new(seed);
    let mut buffer = Pages::zeroed(4 * PAGE_BYTES);
    for _ in 0..REQUESTS {
        let at = (random.index(DIRECT_PAGES - 4) * PAGE_BYTES) as u64;
        match writes {
            true => file.write_all_at(&buffer, at),
            false => file.read_exact_at(&mut buffer, at),
        }
        .map_err(Failure::io("use", &path))?;
    }
    Ok(())
}

fn in_order(events: &Events) -> Outcome<Passed> {
    issued_as_dispatched(events)?;
    let dispatches = &events.dispatches;
    let mut passed_over = Passed::default();
    for (index, chosen) in dispatches.iter().enumerate() {
        match most_urgent_queued(events, index) {
            Some(waiting) if waiting.class < chosen.class => {
                passed_over.judge(chosen, &waiting)?;
            }
            _ => passed_over.in_order(chosen),
        }
    }
    Ok(passed_over)
}

/// Checks that blktrace's order is the scheduler's. A task may lose the CPU between the two events,
/// so single requests are issued late, or after the end of the trace. The others keep their order.
fn issued_as_dispatched(events: &Events) -> Outcome<()> {
    let dispatched: Vec<_> = events.dispatches.iter().map(|it| it.sector).collect();
    let late = out_of_order(&dispatched, &events.issued_sectors);
    require(late * ISSUED_LATE_ONE_IN <= dispatched.len(), || {
        format!(
            "the block layer issued {late} of {} requests in another order than the scheduler dispatched them",
            dispatched.len()
        )
    })?;
    require(!events.inserted_sectors.is_empty(), || {
        "blktrace would show no inserted requests".to_owned()
    })
}

/// Smallest number of `dispatched` to remove so that the others are in the order of `issued`. Those
/// that are not in `issued` count as removed.
fn out_of_order(dispatched: &[u64], issued: &[u64]) -> usize {
    let mut places: BTreeMap<u64, VecDeque<usize>> = BTreeMap::new();
    for (place, sector) in issued.iter().enumerate() {
        places.entry(*sector).or_default().push_back(place);
    }
    // Smallest last place of an ascending sequence, for each length.
    let mut last_places: Vec<usize> = Vec::new();
    for sector in dispatched {
        let Some(place) = places.get_mut(sector).and_then(VecDeque::pop_front) else {
            continue;
        };
        let length = last_places.partition_point(|last| *last < place);
        match last_places.get_mut(length) {
            Some(last) => *last = place,
            None => last_places.push(place),
        }
    }
    dispatched.len() - last_places.len()
}

/// The most urgent request that was queued when the one at `index` was dispatched. The order of the
/// trace is that of the scheduler's lock, so no clock is needed.
fn most_urgent_queued(events: &Events, index: usize) -> Option<Dispatch> {
    let chosen = &events.dispatches[index];
    let later = events.dispatches[index + 1..].iter();
    later
        .filter(|it| in_its_class_since(events, it).is_some_and(|line| line < chosen.line))
        .min_by_key(|it| it.class)
        .copied()
}

/// Line of the trace from which a request was in the class of its dispatch. A promoted request
/// counts from the last promotion before its dispatch, since the trace does not name the promoted
/// requests. Without one it was promoted as it was inserted.
fn in_its_class_since(events: &Events, it: &Dispatch) -> Option<usize> {
    let inserted = it.inserted_line?;
    let before = |line: &&usize| **line < it.line;
    let promoted = match it.class {
        Class::Boosted => events.promotion_lines.iter().rfind(before),
        _ => None,
    };
    Some(promoted.map_or(inserted, |line| inserted.max(*line)))
}

/// Dispatches that passed over a more urgent request.
#[derive(Default)]
struct Passed {
    in_order: usize,
    async_bytes: u64,
    other_bytes: u64,
    last_was_overdue: bool,
    last_was_async: bool,
}

impl Passed {
    fn in_order(&mut self, chosen: &Dispatch) {
        self.last_was_overdue = false;
        self.last_was_async = false;
        if chosen.class < Class::Async {
            self.in_order += 1;
            self.other_bytes += chosen.bytes;
        }
    }

    /// Checks that `chosen` was allowed to precede `waiting`: by the guaranteed share, or because
    /// it was overdue.
    fn judge(&mut self, chosen: &Dispatch, waiting: &Dispatch) -> Outcome<()> {
        let deadline_us = match chosen.class {
            Class::SyncRead | Class::SyncWrite => SYNC_WRITE_DEADLINE_US,
            Class::Boosted => BOOSTED_DEADLINE_US,
            Class::Async | Class::Discard => 0,
            _ => return Err(Failure::new(format!("{chosen:?} without a foreground"))),
        };
        let is_async = chosen.class >= Class::Async;
        let overdue = !is_async && chosen.age_us > deadline_us;
        let allowed = match is_async {
            true => !self.last_was_async,
            false => overdue && !self.last_was_overdue,
        };
        require(allowed, || {
            format!("{chosen:?} was dispatched while {waiting:?} was queued")
        })?;
        self.async_bytes += if is_async { chosen.bytes } else { 0 };
        (self.last_was_async, self.last_was_overdue) = (is_async, overdue);
        Ok(())
    }

    /// Checks that all classes were dispatched, and that background writes got only their share.
    fn was_a_test(&self, dispatches: &[Dispatch]) -> Outcome<()> {
        for class in [
            Class::SyncRead,
            Class::SyncWrite,
            Class::Boosted,
            Class::Async,
        ] {
            require(dispatches.iter().any(|it| it.class == class), || {
                format!("no request of class {class:?} was dispatched")
            })?;
        }
        require(self.in_order >= THREADS * REQUESTS, || {
            format!("only {} urgent requests went in order", self.in_order)
        })?;
        require(self.async_bytes <= self.other_bytes / 2, || {
            format!(
                "background writes got {} bytes beside {} bytes of what was more urgent",
                self.async_bytes, self.other_bytes
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dispatch(class: Class, inserted_line: usize, line: usize) -> Dispatch {
        Dispatch {
            class,
            at_us: 1000,
            age_us: 10,
            bytes: 4096,
            sector: 8,
            line,
            inserted_line: Some(inserted_line),
        }
    }

    fn events(dispatches: &[Dispatch], promotion_lines: &[usize]) -> Events {
        Events {
            dispatches: dispatches.to_vec(),
            promotion_lines: promotion_lines.to_vec(),
            ..Events::default()
        }
    }

    #[test]
    fn a_write_before_a_queued_read_is_found_out() {
        let wrong = [
            dispatch(Class::SyncWrite, 0, 2),
            dispatch(Class::SyncRead, 1, 3),
        ];
        let waiting = most_urgent_queued(&events(&wrong, &[]), 0).unwrap();
        assert_eq!(waiting.class, Class::SyncRead);
        assert!(Passed::default().judge(&wrong[0], &waiting).is_err());
    }

    #[test]
    fn a_read_that_came_later_was_not_passed_over() {
        let right = [
            dispatch(Class::SyncWrite, 0, 1),
            dispatch(Class::SyncRead, 2, 3),
        ];
        assert_eq!(most_urgent_queued(&events(&right, &[]), 0), None);
    }

    #[test]
    fn a_request_is_passed_over_from_its_promotion_on() {
        let both = [dispatch(Class::Async, 0, 3), dispatch(Class::Boosted, 1, 5)];
        let before = most_urgent_queued(&events(&both, &[2, 6]), 0);
        assert_eq!(before, Some(both[1]));
        assert_eq!(most_urgent_queued(&events(&both, &[2, 4]), 0), None);
    }

    #[test]
    fn only_what_is_issued_late_is_out_of_order() {
        assert_eq!(out_of_order(&[8, 16, 24, 8], &[8, 16, 24, 8]), 0);
        assert_eq!(out_of_order(&[8, 16, 24, 32], &[16, 24, 32, 8]), 1);
        assert_eq!(out_of_order(&[8, 16, 24], &[24, 16, 8]), 2);
        assert_eq!(out_of_order(&[8, 8], &[8, 16]), 1);
    }

    #[test]
    fn the_share_and_what_is_overdue_may_pass_one_at_a_time() {
        let read = dispatch(Class::SyncRead, 0, 9);
        let share = dispatch(Class::Async, 1, 2);
        let mut passed = Passed::default();
        passed.judge(&share, &read).unwrap();
        assert!(passed.judge(&share, &read).is_err());
        let overdue = Dispatch {
            age_us: 60_000,
            ..dispatch(Class::Boosted, 1, 2)
        };
        let mut passed = Passed::default();
        passed.judge(&overdue, &read).unwrap();
        assert!(passed.judge(&overdue, &read).is_err());
    }
}
