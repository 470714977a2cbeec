//! A recording in a thread of its own, while the program does something else.

use super::{Error, Request, Summary, record};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Interval at which `start` checks whether the recording has begun.
const POLL: Duration = Duration::from_millis(10);

/// A recording in a thread of its own, until [`Background::finish`].
#[derive(Debug)]
pub struct Background {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Summary, Error>>,
}

impl Background {
    /// Begins a recording; everything that happens after the return is recorded.
    ///
    /// # Errors
    /// As [`record()`], if it did not begin.
    pub fn start(request: Request) -> Result<Background, Error> {
        let stop = Arc::new(AtomicBool::new(false));
        let begun = Arc::new(AtomicBool::new(false));
        let (theirs, told) = (Arc::clone(&stop), Arc::clone(&begun));
        let thread = thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || {
                let mut begins = |_| told.store(true, Ordering::Relaxed);
                record(&request, &theirs, &mut begins).map(|(summary, closing)| {
                    drop(closing);
                    summary
                })
            })
            .map_err(Error::System)?;
        let running = Background { stop, thread };
        while !begun.load(Ordering::Relaxed) {
            if running.thread.is_finished() {
                running.finish()?;
                return Err(Error::System(io::ErrorKind::Other.into()));
            }
            thread::sleep(POLL);
        }
        Ok(running)
    }

    /// Ends the recording; all programs are detached when it returns.
    ///
    /// # Errors
    /// As [`record()`].
    pub fn finish(self) -> Result<Summary, Error> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(Error::System(io::ErrorKind::Other.into())))
    }
}
