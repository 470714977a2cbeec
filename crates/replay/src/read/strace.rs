//! Reader of strace's output (strace(1)), best with `-f -ttt -T -y`: `-y` names the file of each
//! descriptor. A call may be split into two lines, if another thread's line came between.

mod aio;
mod call;
mod clock;
mod line;
mod mappings;
mod processes;

use self::clock::Clock;
use self::line::What;
use self::processes::Processes;
use super::Threads;
use crate::account::Fate;
use crate::calls::Calls;
use std::collections::HashMap;

/// Most calls that are in progress at once; there are no more threads than this.
const UNFINISHED_LIMIT: usize = 1 << 16;

/// Whether a trace that begins with this line has the format.
pub(super) fn is_line(line: &str) -> bool {
    let Ok(line) = line::parse(line) else {
        return false;
    };
    match line.what {
        What::Call(text) => line::is_call(text),
        What::Unfinished(text) => line::is_call(&format!("{text} = ")),
        What::Resumed { .. } | What::Remark => true,
    }
}

/// Reads a trace line by line.
#[derive(Default)]
pub(super) struct Reader {
    threads: Threads,
    unfinished: HashMap<String, (u64, String)>,
    /// The begin of a line into which strace wrote a message of its own, up to the message.
    interrupted: Option<String>,
    processes: Processes,
    clock: Clock,
}

impl Reader {
    /// # Errors
    /// A sentence that says why it is not a line of strace.
    pub(super) fn take(&mut self, line: &str) -> Result<(), String> {
        if let Some(begun) = self.interrupted.take() {
            if line::is_rest(line) {
                return self.take_whole(&(begun + line));
            }
            self.processes.event(&interrupted());
        }
        if let Some(begun) = line::before_message(line) {
            self.interrupted = Some(begun.to_owned());
            return Ok(());
        }
        self.take_whole(line)
    }

    fn take_whole(&mut self, line: &str) -> Result<(), String> {
        let line = line::parse(line)?;
        if line.what == What::Remark {
            self.clock.pass(line.time);
            return Ok(());
        }
        let time_ns = self.clock.at(line.time)?;
        match line.what {
            What::Remark => Ok(()),
            What::Call(text) => self.call(line.thread, time_ns, text),
            What::Unfinished(text) => {
                if self.unfinished.len() >= UNFINISHED_LIMIT {
                    return Err("more calls are under way than there can be threads".to_owned());
                }
                let begun = (time_ns, text.to_owned());
                if self
                    .unfinished
                    .insert(line.thread.to_owned(), begun)
                    .is_some()
                {
                    self.processes.event(&unfinished());
                }
                Ok(())
            }
            What::Resumed { name, text } => {
                // A call without its begin began before strace was attached.
                let Some((time_ns, begun)) = self.unfinished.remove(line.thread) else {
                    let what = format!("{name}, whose begin is not in the trace");
                    self.processes.event(&Fate::left_out(what));
                    return Ok(());
                };
                if !begun.starts_with(name) {
                    return Err(format!("{name} goes on, and {begun} was under way"));
                }
                self.call(line.thread, time_ns, &(begun + text))
            }
        }
    }

    fn call(&mut self, thread: &str, time_ns: u64, text: &str) -> Result<(), String> {
        let call = call::parse(text)?;
        let lane = self.threads.number(thread, "");
        let fate = self
            .processes
            .call((thread, lane), time_ns, &call, &mut self.threads)?;
        self.processes.event(&fate);
        Ok(())
    }

    /// Number of calls so far.
    pub(super) fn count(&self) -> usize {
        self.processes.count()
    }

    pub(super) fn finish(mut self) -> Calls {
        for _ in 0..self.unfinished.len() {
            self.processes.event(&unfinished());
        }
        if self.interrupted.is_some() {
            self.processes.event(&interrupted());
        }
        if let Some(note) = self.clock.note() {
            self.processes.note(note);
        }
        self.processes.finish()
    }
}

fn interrupted() -> Fate {
    Fate::left_out("cut by a message of strace")
}

fn unfinished() -> Fate {
    Fate::left_out("unfinished at the end")
}

#[cfg(test)]
mod tests;
