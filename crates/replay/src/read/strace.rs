//! What strace prints (strace(1)) with `-f -ttt -T`, and better with `-y`, which names the file
//! behind each descriptor. One call may be in two lines, where another thread's came between.

mod call;
mod line;
mod processes;

use self::line::Line;
use self::processes::Processes;
use super::Threads;
use crate::calls::Calls;
use std::collections::HashMap;

/// Calls that began and were printed in part; there are no more threads than this.
const UNFINISHED_LIMIT: usize = 1 << 16;

/// Whether a trace that begins with this line is one.
pub(super) fn is_line(line: &str) -> bool {
    line::parse(line).is_ok()
}

/// Takes a line after the other.
#[derive(Default)]
pub(super) struct Reader {
    threads: Threads,
    unfinished: HashMap<String, (u64, String)>,
    processes: Processes,
}

impl Reader {
    /// # Errors
    /// Why it is no line of strace's.
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
                // Without its begin, it began before strace did.
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

    /// Calls so far.
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
