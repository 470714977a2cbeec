//! Changes, and what several of them come to.

use crate::knobs::form::Form;
use crate::knobs::{Error, knob};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Change of a knob.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The knob, as on the running system: `/sys/block/sda/queue/scheduler`.
    pub path: PathBuf,
    /// Value before the change.
    pub before: String,
    /// Value after the change; None for a knob that is only recorded, since the kernel will change
    /// it with another one.
    pub value: Option<String>,
    /// Reason, as a phrase for users.
    pub reason: String,
}

/// For people: `/sys/block/sda/queue/scheduler: none -> frontrow`; lists of lines with commas,
/// and with `{:#}` the reason in brackets after it.
impl fmt::Display for Change {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value.as_deref().unwrap_or_default();
        let [path, before, value] =
            [&self.path.to_string_lossy(), self.before.as_str(), value].map(shown);
        write!(out, "{path}: {before} -> {value}")?;
        match out.alternate() {
            true => write!(out, " ({})", self.reason),
            false => Ok(()),
        }
    }
}

/// A value or a path on one line, without what a terminal would act on: it may be a name that
/// somebody has given to have it printed to root.
pub fn shown(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for (number, part) in text.lines().enumerate() {
        line.push_str(if number > 0 { ", " } else { "" });
        for letter in part.chars() {
            match letter {
                ' '..='~' => line.push(letter),
                _ if letter.is_alphanumeric() => line.push(letter),
                _ => line.extend(letter.escape_unicode()),
            }
        }
    }
    line
}

/// Result of restoring a knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Restored {
    /// The old value was written.
    Written,
    /// The knob had the old value already.
    Unchanged,
    /// The knob no longer exists, for example after its device was removed.
    Gone,
    /// Another program has set it since then; its value stays.
    Overruled,
}

/// Origin of a knob's present value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The one from before.
    Before,
    /// Written by this journal, or by the kernel as a consequence.
    Ours,
    /// Written by another program.
    Theirs,
    /// The knob no longer exists.
    Gone,
}

/// Net effect of `changes`: for each knob whose present value differs from that before the first
/// change, that value and the present one.
///
/// # Errors
/// [`Error::Read`].
pub fn net(root: &Path, changes: &[Change]) -> Result<Vec<Change>, Error> {
    let mut net = each_knob_once(changes);
    for change in &mut net {
        change.value = match below(root, &change.path).exists() {
            true => Some(knob::value(root, &change.path)?).filter(|value| *value != change.before),
            false => None,
        };
    }
    net.retain(|change| change.value.is_some());
    Ok(net)
}

/// From what a knob held before its first change to what it was set to by its last; what is
/// remembered stays so, as the kernel may change it at any time.
pub(crate) fn each_knob_once(changes: &[Change]) -> Vec<Change> {
    let mut once: Vec<Change> = Vec::new();
    let mut places = HashMap::new();
    for change in changes {
        let place = *places.entry(&change.path).or_insert(once.len());
        match once.get_mut(place) {
            Some(known) => {
                if known.value.is_some() {
                    known.value.clone_from(&change.value);
                }
                known.reason.clone_from(&change.reason);
            }
            None => once.push(change.clone()),
        }
    }
    once
}

/// Origin of the present value of the knob at `path`, given its `changes`. A crash may have
/// prevented the last one, so the value of any change counts as ours.
pub(crate) fn standing(root: &Path, changes: &[Change], path: &Path) -> Result<Standing, Error> {
    let mut own = changes.iter().filter(|change| change.path == path);
    let holds = match knob::value(root, path) {
        Ok(holds) => holds,
        Err(error) if error.is_gone() => return Ok(Standing::Gone),
        Err(error) => return Err(error),
    };
    let Some(first) = own.next() else {
        return Ok(Standing::Before);
    };
    if first.before == holds {
        return Ok(Standing::Before);
    }
    let is_list = knob::form(path)? == Form::Cgroups;
    let is_ours = |value: &String| *value == holds || is_list && is_what_is_left_of(&holds, value);
    let gave = |change: &Change| change.value.as_ref().is_none_or(is_ours);
    match gave(first) || own.any(gave) {
        true => Ok(Standing::Ours),
        false => Ok(Standing::Theirs),
    }
}

/// Whether a list `holds` nothing but lines of `value`, in their order. The kernel leaves out
/// cgroups that have gone by the time it comes to them, and they may be back by now: a user must not
/// have a list taken for somebody else's by removing and making cgroups.
fn is_what_is_left_of(holds: &str, value: &str) -> bool {
    let mut lines = value.lines();
    holds.lines().all(|held| lines.any(|line| line == held))
}

pub(crate) fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
