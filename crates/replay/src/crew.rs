//! Threads that play a trace in real time, each operation when it is due.

use crate::schedule::{Pace, Schedule, Steps};
use crate::{Error, Stopwatch};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};
use sys::device::Pages;

/// Size of each thread's buffer; larger reads and writes are done in pieces.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// Number of threads for [`Pace::Open`], and the most for [`Pace::Mixed`].
const OPEN_THREADS: u32 = 64;

/// Interval at which a waiting thread checks the stop flag.
const LOOK: Duration = Duration::from_millis(100);

/// An operation that is issued later than this after it was due counts as late.
const LATE_NS: u64 = 1_000_000;

/// Result of an operation that has ended.
pub(crate) struct Done {
    /// Index in [`Sum::watches`] of the stopwatch that its time goes to.
    pub(crate) kind: usize,
    /// Number of pages that it moved.
    pub(crate) pages: u64,
}

/// Totals of all operations.
pub(crate) struct Sum {
    /// Stopwatches by [`Done::kind`].
    pub(crate) watches: Vec<Stopwatch>,
    pub(crate) operations: u64,
    /// Number of operations that were issued more than 1 ms after they were due.
    pub(crate) late_operations: u64,
    /// Largest delay of an operation, in nanoseconds.
    pub(crate) latest_ns: u64,
}

impl Sum {
    pub(crate) fn new(kinds: usize) -> Self {
        Sum {
            watches: (0..kinds).map(|_| Stopwatch::new()).collect(),
            operations: 0,
            late_operations: 0,
            latest_ns: 0,
        }
    }
}

/// A trace and the way to play it.
pub(crate) struct Crew<'a, S> {
    pub(crate) trace: &'a S,
    pub(crate) pace: Pace,
    pub(crate) stop: &'a AtomicBool,
}

impl<S: Steps + Sync> Crew<'_, S> {
    /// Plays the whole trace once. Many threads call `perform` with the index of an operation.
    pub(crate) fn play(
        &self,
        sum: Sum,
        perform: &(impl Fn(usize, &mut Pages) -> Result<Done, Error> + Sync),
    ) -> Result<Sum, Error> {
        let threads = match self.pace {
            Pace::Closed { depth } => depth,
            Pace::Open => OPEN_THREADS,
            Pace::Mixed { .. } => OPEN_THREADS.min(self.trace.lanes()),
        };
        let run = Run {
            perform,
            stop: self.stop,
            begun: Instant::now(),
            state: Mutex::new(State {
                schedule: Schedule::new(self.trace, self.pace),
                sum,
                failure: None,
            }),
            changed: Condvar::new(),
        };
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| run.work());
            }
        });
        let state = run.state.into_inner().unwrap_or_else(|it| it.into_inner());
        state.failure.map_or(Ok(state.sum), Err)
    }
}

struct State<'a, S> {
    schedule: Schedule<'a, S>,
    sum: Sum,
    failure: Option<Error>,
}

struct Run<'a, S, P> {
    perform: &'a P,
    stop: &'a AtomicBool,
    begun: Instant,
    state: Mutex<State<'a, S>>,
    changed: Condvar,
}

impl<'a, S, P> Run<'a, S, P>
where
    S: Steps,
    P: Fn(usize, &mut Pages) -> Result<Done, Error>,
{
    /// Body of a thread: performs operations that are due until all are done or one fails.
    fn work(&self) {
        let mut buffer = Pages::zeroed(PIECE_BYTES);
        while let Some((index, issued_ns)) = self.next() {
            let outcome = (self.perform)(index, &mut buffer);
            let now_ns = self.now_ns();
            let mut state = self.lock();
            match outcome {
                Ok(done) => state.sum.watches[done.kind].add(now_ns - issued_ns, done.pages),
                Err(error) => {
                    state.failure.get_or_insert(error);
                }
            }
            state.sum.operations += 1;
            state.schedule.complete(index, now_ns);
            drop(state);
            self.changed.notify_all();
        }
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<'a, S>> {
        self.state.lock().unwrap_or_else(|it| it.into_inner())
    }

    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }

    /// The next operation once it is due, and the time at which that was found; `None` at the end.
    fn next(&self) -> Option<(usize, u64)> {
        let mut state = self.lock();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                state.failure.get_or_insert(Error::Interrupted);
            }
            if state.failure.is_some() || state.schedule.is_over() {
                return None;
            }
            let now_ns = self.now_ns();
            let patience = match state.schedule.peek() {
                Some((due_ns, index)) if due_ns <= now_ns => {
                    state.schedule.issue();
                    let late_ns = if due_ns == 0 { 0 } else { now_ns - due_ns };
                    state.sum.late_operations += u64::from(late_ns > LATE_NS);
                    state.sum.latest_ns = state.sum.latest_ns.max(late_ns);
                    return Some((index, now_ns));
                }
                Some((due_ns, _)) => LOOK.min(Duration::from_nanos(due_ns - now_ns)),
                None => LOOK,
            };
            let waited = self.changed.wait_timeout(state, patience);
            state = waited.unwrap_or_else(|it| it.into_inner()).0;
        }
    }
}
