//! Reader of strace's output (strace(1)) with `-f -ttt -T`. With `-y` strace also names the file of
//! each descriptor. A call may be split into two lines, if another thread's line came between.

mod call;
mod line;
mod processes;

use self::line::Line;
use self::processes::Processes;
use super::Threads;
use crate::calls::Calls;
use std::collections::HashMap;

/// Most calls that are in progress at once; there are no more threads than this.
const UNFINISHED_LIMIT: usize = 1 << 16;

/// Whether a trace that begins with this line has the format.
pub(super) fn is_line(line: &str) -> bool {
    line::parse(line).is_ok()
}

/// Reads a trace line by line.
#[derive(Default)]
pub(super) struct Reader {
    threads: Threads,
    unfinished: HashMap<String, (u64, String)>,
    processes: Processes,
}

impl Reader {
    /// # Errors
    /// A sentence that says why it is not a line of strace.
    pub(super) fn take(&mut self, line: &str) -> Result<(), String> {
        match line::parse(line)? {
            Line::Remark => Ok(()),
            Line::Call {
                thread,
                time_ns,
                text,
            } => self.call(thread, time_ns, text),
            Line::Unfinished {
                thread,
                time_ns,
                text,
            } => {
                if self.unfinished.len() >= UNFINISHED_LIMIT {
                    return Err("more calls are under way than there can be threads".to_owned());
                }
                let begun = (time_ns, text.to_owned());
                self.unfinished.insert(thread.to_owned(), begun);
                Ok(())
            }
            Line::Resumed { thread, name, text } => {
                // A call without its begin began before strace was attached.
                let Some((time_ns, begun)) = self.unfinished.remove(thread) else {
                    self.processes.leave_out(name);
                    return Ok(());
                };
                if !begun.starts_with(name) {
                    return Err(format!("{name} goes on, and {begun} was under way"));
                }
                self.call(thread, time_ns, &(begun + text))
            }
        }
    }

    fn call(&mut self, thread: &str, time_ns: u64, text: &str) -> Result<(), String> {
        let call = call::parse(text)?;
        let lane = self.threads.number(thread);
        self.processes.call(thread, lane, time_ns, &call)
    }

    /// Number of calls so far.
    pub(super) fn count(&self) -> usize {
        self.processes.count()
    }

    pub(super) fn finish(mut self) -> Calls {
        for _ in 0..self.unfinished.len() {
            self.processes.leave_out("unfinished at the end");
        }
        self.processes.finish()
    }
}

#[cfg(test)]
mod tests;
