//! Holding some cgroups in front of others, changing who, and letting go.

use crate::policy::{self, Grounds, Pace, Parts, Wanted};
use crate::{Cgroup, Error, means};
use knobs::{Change, Home, Journal, Restored, Standing};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

const JOURNAL: &str = "foreground";

/// How often a change is begun anew because a cgroup vanished in the middle of it.
const ATTEMPTS: usize = 16;

/// A scheduler and what comes with it take two; udev may set another in between.
const ROUNDS: usize = 3;

/// Of its time over ten seconds, no app is to stand still for memory more than this on
/// account of a limit: others (systemd-oomd) kill at some multiple of it.
pub(crate) const UNBEARABLE_PERCENT: f64 = 10.0;

/// What is held in front of what. Dropped, it stays in force, and its journal with it;
/// [`release`](crate::release) undoes it from any process.
#[derive(Debug)]
pub struct Hold {
    root: PathBuf,
    parts: Parts,
    journal: Journal,
    /// Of those behind, who goes without a limit.
    spared: BTreeSet<Cgroup>,
    /// Knobs that the kernel has refused to set.
    refused: BTreeSet<PathBuf>,
}

/// One knob's part in a change of [`Hold`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To hold this, for a reason.
    Set {
        /// The knob.
        path: PathBuf,
        /// What it is to hold.
        value: String,
        /// One phrase for people.
        reason: &'static str,
    },
    /// To hold again what it held before.
    PutBack(PathBuf),
}

impl Step {
    fn sets_scheduler(&self) -> bool {
        matches!(self, Step::Set { path, .. } if means::is_scheduler(path))
    }
}

impl Hold {
    /// Nobody is in front yet.
    ///
    /// # Errors
    /// [`Error::Held`] until what was held before is released, or [`Error::Knobs`].
    pub fn begin(root: &Path, parts: Parts) -> Result<Self, Error> {
        let journal = Journal::open(root, Home::Daemon, JOURNAL)?;
        if !journal.changes().is_empty() {
            return Err(Error::Held);
        }
        Ok(Hold {
            root: root.to_owned(),
            parts,
            journal,
            spared: BTreeSet::new(),
            refused: BTreeSet::new(),
        })
    }

    /// Puts `grounds.front` in front of `grounds.behind` instead of whoever was, and gives the
    /// changes that took. Cgroups that do not exist (any more) are left out.
    ///
    /// # Errors
    /// [`Error`]; then some of it may be done, and [`Self::release`] is the way out.
    pub fn change(&mut self, grounds: &Grounds, pace: Pace) -> Result<Vec<Change>, Error> {
        let mut made = Vec::new();
        let mut attempt = 1;
        loop {
            match self.try_change(grounds, pace, &mut made) {
                Err(error) if error.is_vanished() && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
                Ok(()) => return Ok(made),
            }
        }
    }

    fn try_change(
        &mut self,
        grounds: &Grounds,
        pace: Pace,
        made: &mut Vec<Change>,
    ) -> Result<(), Error> {
        let mut any = false;
        for _ in 0..ROUNDS {
            let steps = self.steps(grounds, pace)?;
            for step in &steps {
                made.extend(self.take(step)?);
            }
            any |= !steps.is_empty();
            // Some knobs come with a scheduler.
            if !steps.iter().any(Step::sets_scheduler) {
                break;
            }
        }
        match any {
            true => Ok(self.journal.settle()?),
            false => Ok(()),
        }
    }

    /// What [`Self::change`] would do: only what differs from what is held.
    ///
    /// # Errors
    /// [`Error`].
    pub fn steps(&self, grounds: &Grounds, pace: Pace) -> Result<Vec<Step>, Error> {
        let grounds = existing(&self.root, grounds);
        let wanted = Wanted {
            grounds: &grounds,
            spared: &self.spared,
            parts: self.parts,
            pace,
            refused: &self.refused,
        };
        let wanted = policy::settings(&self.root, &self.journal, &wanted)?;
        let set = wanted.iter().map(|it| it.path.clone());
        let along = wanted.iter().flat_map(|it| means::reset_along(&it.path));
        let mut stays: BTreeSet<PathBuf> = set.chain(along).collect();
        let mut steps = Vec::new();
        for change in self.journal.changes() {
            if stays.insert(change.path.clone()) {
                steps.push(Step::PutBack(change.path.clone()));
            }
        }
        for setting in wanted {
            let differs = self.journal.get(&setting.path)? != setting.value;
            // What somebody else has set since stays.
            if differs && self.journal.standing(&setting.path)? != Standing::Theirs {
                steps.push(Step::Set {
                    path: setting.path,
                    value: setting.value,
                    reason: setting.reason,
                });
            }
        }
        Ok(steps)
    }

    /// Takes one of [`Self::steps`], and gives the change if it made one. After any of them
    /// the process may die: [`release`](crate::release) undoes those that were taken.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn take(&mut self, step: &Step) -> Result<Option<Change>, Error> {
        match step {
            Step::Set {
                path,
                value,
                reason,
            } => {
                self.remember_what_is_reset_by(path)?;
                let known = self.journal.changes().len();
                match self.journal.set(path, value, reason) {
                    Err(knobs::Error::Write { .. }) if means::is_scheduler(path) => {
                        return self.do_without(path);
                    }
                    set => set?,
                }
                Ok(self.journal.changes().get(known).cloned())
            }
            Step::PutBack(path) => self.put_back(path),
        }
    }

    /// The kernel has no such scheduler: the disk keeps the one that it has.
    fn do_without(&mut self, path: &Path) -> Result<Option<Change>, Error> {
        self.refused.insert(path.to_owned());
        self.journal.put_back(path)?;
        Ok(None)
    }

    fn remember_what_is_reset_by(&mut self, path: &Path) -> Result<(), Error> {
        for along in means::reset_along(path) {
            if self.journal.get(&along).is_ok() {
                self.journal
                    .remember(&along, "it is reset with the scheduler")?;
            }
        }
        Ok(())
    }

    fn put_back(&mut self, path: &Path) -> Result<Option<Change>, Error> {
        let held = self.journal.get(path).unwrap_or_default();
        match self.journal.put_back(path)? {
            Restored::Written => Ok(Some(Change {
                path: path.to_owned(),
                before: held,
                value: Some(self.journal.get(path)?),
                reason: "as it was before".to_owned(),
            })),
            Restored::Unchanged | Restored::Gone | Restored::Overruled => Ok(None),
        }
    }

    /// From now on, those of `behind` go without a limit whose tasks stand still for memory
    /// where they have one.
    pub fn spare(&mut self, behind: &[Cgroup]) {
        self.spared.retain(|cgroup| cgroup.exists(&self.root));
        let changes = self.journal.changes().iter();
        let changed: BTreeSet<_> = changes.map(|it| it.path.as_path()).collect();
        for cgroup in behind {
            let is_limited = changed.contains(cgroup.knob("memory.high").as_path());
            if is_limited && cgroup.memory_stall_percent(&self.root) >= UNBEARABLE_PERCENT {
                self.spared.insert(cgroup.clone());
            }
        }
    }

    /// Who goes without a limit.
    pub fn spared(&self) -> impl Iterator<Item = &Cgroup> {
        self.spared.iter()
    }

    /// The changes in force.
    pub fn changes(&self) -> &[Change] {
        self.journal.changes()
    }

    /// Knobs that somebody else has set since, and that are left as they are.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn overruled(&self) -> Result<Vec<PathBuf>, Error> {
        let paths: BTreeSet<_> = self.changes().iter().map(|it| it.path.clone()).collect();
        let mut overruled = Vec::new();
        for path in paths {
            if self.journal.standing(&path)? == Standing::Theirs {
                overruled.push(path);
            }
        }
        Ok(overruled)
    }

    /// Undoes everything.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn release(self) -> Result<Vec<(Change, Restored)>, Error> {
        Ok(self.journal.restore()?)
    }
}

/// Puts `grounds.front` in front of `grounds.behind`, and gives the changes, which outlive
/// this process. If anything fails, everything is as before.
///
/// # Errors
/// [`Error`]; [`Error::Held`] until what was held before is released.
pub fn hold(root: &Path, grounds: &Grounds, parts: Parts) -> Result<Vec<Change>, Error> {
    let mut hold = Hold::begin(root, parts)?;
    match hold.change(grounds, Pace::Settled) {
        Ok(changes) => Ok(changes),
        Err(error) => {
            hold.release()?;
            Err(error)
        }
    }
}

/// Undoes what was held, in this process or another one.
///
/// # Errors
/// [`Error::Knobs`].
pub fn release(root: &Path) -> Result<Vec<(Change, Restored)>, Error> {
    restore(root, JOURNAL)
}

/// Undoes what the journal `name` has, if there is one.
pub(crate) fn restore(root: &Path, name: &str) -> Result<Vec<(Change, Restored)>, Error> {
    match Journal::exists(root, Home::Daemon, name) {
        true => Ok(Journal::open(root, Home::Daemon, name)?.restore()?),
        false => Ok(Vec::new()),
    }
}

/// The changes in force.
///
/// # Errors
/// [`Error::Knobs`].
pub fn changes(root: &Path) -> Result<Vec<Change>, Error> {
    Ok(Journal::peek(root, Home::Daemon, JOURNAL)?)
}

/// `grounds` without what has vanished.
fn existing(root: &Path, grounds: &Grounds) -> Grounds {
    let existing = |cgroups: &[Cgroup]| -> Vec<Cgroup> {
        let there = cgroups.iter().filter(|cgroup| cgroup.exists(root));
        there.cloned().collect()
    };
    let visible = grounds.visible.iter();
    Grounds {
        front: existing(&grounds.front),
        visible: visible
            .filter(|it| it.cgroup.exists(root))
            .cloned()
            .collect(),
        behind: existing(&grounds.behind),
    }
}
