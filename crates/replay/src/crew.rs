//! Threads that play a trace in real time, each operation when it is due.

use crate::schedule::{Pace, Schedule, Steps};
use crate::{Error, Stopwatch};
use device::Pages;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// Of each thread's memory: larger reads and writes go in pieces.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// Threads where the pace does not say how many operations may be under way.
const OPEN_THREADS: u32 = 64;

/// How often a waiting thread looks at the flag that ends it all.
const LOOK: Duration = Duration::from_millis(100);

/// Later than this counts as late.
const LATE_NS: u64 = 1_000_000;

/// What is known of an operation that has ended.
pub(crate) struct Done {
    /// Whose times it adds to.
    pub(crate) kind: usize,
    /// Pages that it moved.
    pub(crate) pages: u64,
}

/// What all operations came to.
pub(crate) struct Sum {
    /// By [`Done::kind`].
    pub(crate) watches: Vec<Stopwatch>,
    pub(crate) operations: u64,
    /// Issued more than 1 ms after they were due.
    pub(crate) late_operations: u64,
    /// The most that one was late.
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

/// What is to be played.
pub(crate) struct Crew<'a, S> {
    pub(crate) trace: &'a S,
    pub(crate) pace: Pace,
    pub(crate) stop: &'a AtomicBool,
}

impl<S: Steps + Sync> Crew<'_, S> {
    /// Plays all of it once; `perform` is called with an operation's index, by many threads.
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
    /// A thread's: takes operations that are due until all are done or something fails.
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

    /// The next operation once it is due, and when that was found; `None` at the end.
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
