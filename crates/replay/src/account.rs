//! The account of a trace: each event that was read is played or left out, and is counted once.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Calls whose descriptor is a file's in no way that a disk would notice.
pub(crate) const NO_FILE: &str = "of a descriptor that is no file's";

/// What becomes of an event of a trace: of a system call, or of a request of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is played as it was.
    Played,
    /// It is played in another form.
    Changed {
        /// Kind of the event, and how it is played.
        how: Cow<'static, str>,
        /// Number of its reads, writes and flushes of data that are not played.
        lost: u64,
    },
    /// It is not played.
    LeftOut {
        /// Kind of the event, or the reason.
        what: Cow<'static, str>,
        /// Number of its reads, writes and flushes of data; 0 if a disk would not notice it.
        lost: u64,
    },
}

impl Fate {
    /// Played in another form; nothing of it is lost.
    pub fn changed(how: impl Into<Cow<'static, str>>) -> Self {
        let how = how.into();
        Fate::Changed { how, lost: 0 }
    }

    /// Not played, and no read, write or flush of data.
    pub fn left_out(what: impl Into<Cow<'static, str>>) -> Self {
        Fate::lost(what, 0)
    }

    /// Not played, though it is `lost` reads, writes or flushes of data.
    pub fn lost(what: impl Into<Cow<'static, str>>, lost: u64) -> Self {
        let what = what.into();
        Fate::LeftOut { what, lost }
    }
}

/// Number of events of a trace by what became of them. `played_events` and the sum of `left_out` are
/// `read_events`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Number of events in the trace: system calls, or requests of a device.
    pub read_events: u64,
    /// Number of events that are played, the changed ones among them.
    pub played_events: u64,
    /// Number of events that are played in another form, by kind and form.
    pub changed: BTreeMap<String, u64>,
    /// Number of events that are not played, by kind or reason.
    pub left_out: BTreeMap<String, u64>,
    /// Number of reads, writes and flushes that are played.
    pub played_data_operations: u64,
    /// Number of reads, writes and flushes of data that are not played.
    pub left_out_data_operations: u64,
    /// How the trace was understood where it does not say all; a sentence each.
    pub notes: Vec<String>,
}

impl Account {
    /// Counts an event. `data` is the number of reads, writes and flushes that are played for it.
    pub fn count(&mut self, fate: &Fate, data: u64) {
        self.read_events += 1;
        let (counts, kind, lost) = match fate {
            Fate::Played => {
                self.played_events += 1;
                self.played_data_operations += data;
                return;
            }
            Fate::Changed { how, lost } => {
                self.played_events += 1;
                self.played_data_operations += data;
                (&mut self.changed, how, lost)
            }
            Fate::LeftOut { what, lost } => (&mut self.left_out, what, lost),
        };
        self.left_out_data_operations += lost;
        add(counts, kind, 1);
    }

    /// Counts `count` events that are not played.
    pub fn leave_out(&mut self, what: &str, count: u64, lost: u64) {
        if count > 0 {
            self.read_events += count;
            self.left_out_data_operations += lost;
            add(&mut self.left_out, what, count);
        }
    }

    /// Moves `count` played events to those that are left out because the caller wants it so.
    pub fn unplay(&mut self, what: &str, count: u64) {
        if count > 0 {
            self.played_events = self.played_events.saturating_sub(count);
            self.played_data_operations = self.played_data_operations.saturating_sub(count);
            add(&mut self.left_out, what, count);
        }
    }

    /// Adds the account of another trace.
    pub fn merge(&mut self, other: Account) {
        self.read_events += other.read_events;
        self.played_events += other.played_events;
        self.played_data_operations += other.played_data_operations;
        self.left_out_data_operations += other.left_out_data_operations;
        for (kind, count) in &other.changed {
            add(&mut self.changed, kind, *count);
        }
        for (kind, count) in &other.left_out {
            add(&mut self.left_out, kind, *count);
        }
        for note in other.notes {
            self.note(note);
        }
    }

    /// Adds a note once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Share of the reads, writes and flushes that are not played, in percent; 0 without any.
    pub fn left_out_percent(&self) -> f64 {
        let lost = self.left_out_data_operations as f64;
        match lost + self.played_data_operations as f64 {
            0.0 => 0.0,
            all => 100.0 * lost / all,
        }
    }
}

fn add(counts: &mut BTreeMap<String, u64>, kind: &str, count: u64) {
    match counts.get_mut(kind) {
        Some(sum) => *sum += count,
        None => {
            counts.insert(kind.to_owned(), count);
        }
    }
}
