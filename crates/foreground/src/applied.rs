//! Applies a policy's settings to the kernel's knobs, changes them with the foreground, and undoes them.

use crate::policy::{self, Pace, Parts, Roles, Wanted};
use crate::{Cgroup, Error, bfq};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use sys::knobs::{Change, Home, Journal, Restored, Standing};

const JOURNAL: &str = "foreground";

/// Most attempts of a change; one fails if a cgroup is removed meanwhile.
const ATTEMPTS: usize = 16;

/// Most rounds of a change. Knobs that appear with a scheduler need a second round, and udev may
/// change the scheduler in between.
const ROUNDS: usize = 3;

/// Largest part of the last ten seconds, in percent, that a limited app may stall for memory
/// (`memory.pressure`). systemd-oomd kills at a multiple of it.
pub(crate) const UNBEARABLE_PERCENT: f64 = 10.0;

/// The settings in force for the present foreground. Dropping the value leaves them and their journal
/// in place; [`release`](crate::release) undoes them from any process.
#[derive(Debug)]
pub struct AppliedPolicy {
    root: PathBuf,
    parts: Parts,
    journal: Journal,
    /// Background cgroups that get no memory limit.
    spared: BTreeSet<Cgroup>,
    /// Scheduler attributes that the kernel refused to write, since it lacks BFQ.
    refused: BTreeSet<PathBuf>,
    /// Whether a disk may change to BFQ now.
    may_switch: bool,
}

/// A change of one knob by [`AppliedPolicy`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write a value.
    Set {
        /// Path of the knob.
        path: PathBuf,
        /// The value to write.
        value: String,
        /// One phrase for users.
        reason: &'static str,
    },
    /// Write the value of before.
    PutBack(PathBuf),
}

impl Step {
    fn sets_scheduler(&self) -> bool {
        matches!(self, Step::Set { path, .. } if bfq::is_scheduler(path))
    }
}

impl AppliedPolicy {
    /// Opens the journal; no knob is changed yet.
    ///
    /// # Errors
    /// [`Error::AlreadyApplied`] until earlier settings are released, or [`Error::Knobs`].
    pub fn begin(root: &Path, parts: Parts) -> Result<Self, Error> {
        let journal = Journal::open(root, Home::Daemon, JOURNAL)?;
        if !journal.changes().is_empty() {
            return Err(Error::AlreadyApplied);
        }
        Ok(AppliedPolicy {
            root: root.to_owned(),
            parts,
            journal,
            spared: BTreeSet::new(),
            refused: BTreeSet::new(),
            may_switch: true,
        })
    }

    /// Sets whether disks may change to BFQ. Those that have changed keep it.
    pub fn allow_switch(&mut self, may_switch: bool) {
        self.may_switch = may_switch;
    }

    /// The changes of disks' schedulers in force.
    pub fn switches(&self) -> impl Iterator<Item = &Change> {
        let changes = self.journal.changes().iter();
        changes.filter(|it| bfq::is_scheduler(&it.path))
    }

    /// Undoes all changes but those of schedulers, and of what a scheduler resets.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn keep_schedulers_only(&mut self) -> Result<Vec<(Change, Restored)>, Error> {
        let along = self.switches().flat_map(|it| bfq::reset_along(&it.path));
        let stays: BTreeSet<_> = along.collect();
        let is_kept = |path: &Path| bfq::is_scheduler(path) || stays.contains(path);
        let changes = sys::knobs::net(&self.root, self.journal.changes())?;
        let mut restored = Vec::new();
        for change in changes.into_iter().rev().filter(|it| !is_kept(&it.path)) {
            let outcome = self.journal.put_back(&change.path)?;
            restored.push((change, outcome));
        }
        self.spared.clear();
        self.journal.settle()?;
        Ok(restored)
    }

    /// Replaces the settings in force by those for `roles`, and returns the changes made. Cgroups that
    /// do not exist are left out.
    ///
    /// # Errors
    /// [`Error`]; some knobs may be changed by then, and [`Self::release`] undoes them.
    pub fn change(&mut self, roles: &Roles, pace: Pace) -> Result<Vec<Change>, Error> {
        let mut made = Vec::new();
        let mut attempt = 1;
        for cgroup in roles.on_screen() {
            cgroup.pass_on(&self.root, "io");
        }
        loop {
            match self.try_change(roles, pace, &mut made) {
                Err(error) if error.is_vanished() && attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
                Ok(()) => return Ok(made),
            }
        }
    }

    fn try_change(
        &mut self,
        roles: &Roles,
        pace: Pace,
        made: &mut Vec<Change>,
    ) -> Result<(), Error> {
        let mut any = false;
        for _ in 0..ROUNDS {
            let steps = self.steps(roles, pace)?;
            for step in &steps {
                made.extend(self.take(step)?);
            }
            any |= !steps.is_empty();
            // Some knobs appear with a scheduler.
            if !steps.iter().any(Step::sets_scheduler) {
                break;
            }
        }
        match any {
            true => Ok(self.journal.settle()?),
            false => Ok(()),
        }
    }

    /// The steps that [`Self::change`] would take: knobs whose value differs from the target.
    ///
    /// # Errors
    /// [`Error`].
    pub fn steps(&self, roles: &Roles, pace: Pace) -> Result<Vec<Step>, Error> {
        let roles = existing(&self.root, roles);
        let wanted = Wanted {
            roles: &roles,
            spared: &self.spared,
            parts: self.parts,
            pace,
            refused: &self.refused,
            may_switch: self.may_switch,
        };
        let wanted = policy::settings(&self.root, &self.journal, &wanted)?;
        let set = wanted.iter().map(|it| it.path.clone());
        let along = wanted.iter().flat_map(|it| bfq::reset_along(&it.path));
        let mut stays: BTreeSet<PathBuf> = set.chain(along).collect();
        let mut steps = Vec::new();
        for change in self.journal.changes() {
            if stays.insert(change.path.clone()) {
                steps.push(Step::PutBack(change.path.clone()));
            }
        }
        for setting in wanted {
            let differs = self.journal.get(&setting.path)? != setting.value;
            // A value that another program has set since then stays.
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

    /// Takes one of [`Self::steps`] and returns the change, if it made one. The process may die after
    /// any step: [`release`](crate::release) undoes all that were taken.
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
                    Err(sys::knobs::Error::Write { .. }) if bfq::is_scheduler(path) => {
                        return self.do_without(path);
                    }
                    set => set?,
                }
                Ok(self.journal.changes().get(known).cloned())
            }
            Step::PutBack(path) => self.put_back(path),
        }
    }

    /// The kernel lacks the scheduler: the disk keeps its present one.
    fn do_without(&mut self, path: &Path) -> Result<Option<Change>, Error> {
        self.refused.insert(path.to_owned());
        self.journal.put_back(path)?;
        Ok(None)
    }

    fn remember_what_is_reset_by(&mut self, path: &Path) -> Result<(), Error> {
        for along in bfq::reset_along(path) {
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

    /// Exempts those `background` cgroups from limits whose tasks stall for memory under one.
    pub fn spare(&mut self, background: &[Cgroup]) {
        self.spared.retain(|cgroup| cgroup.exists(&self.root));
        let changes = self.journal.changes().iter();
        let changed: BTreeSet<_> = changes.map(|it| it.path.as_path()).collect();
        for cgroup in background {
            let is_limited = changed.contains(cgroup.knob("memory.high").as_path());
            if is_limited && cgroup.memory_stall_percent(&self.root) >= UNBEARABLE_PERCENT {
                self.spared.insert(cgroup.clone());
            }
        }
    }

    /// Background cgroups that get no memory limit.
    pub fn spared(&self) -> impl Iterator<Item = &Cgroup> {
        self.spared.iter()
    }

    /// The changes in force.
    pub fn changes(&self) -> &[Change] {
        self.journal.changes()
    }

    /// Knobs that another program has set since then; they are left alone.
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

    /// Undoes all changes.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn release(self) -> Result<Vec<(Change, Restored)>, Error> {
        Ok(self.journal.restore()?)
    }
}

/// Applies the settings for `roles` and returns the changes, which outlive this process. After an
/// error all knobs are as before.
///
/// # Errors
/// [`Error`]; [`Error::AlreadyApplied`] until earlier settings are released.
pub fn apply(root: &Path, roles: &Roles, parts: Parts) -> Result<Vec<Change>, Error> {
    let mut applied = AppliedPolicy::begin(root, parts)?;
    match applied.change(roles, Pace::Settled) {
        Ok(changes) => Ok(changes),
        Err(error) => {
            applied.release()?;
            Err(error)
        }
    }
}

/// Undoes the settings that this or another process has applied.
///
/// # Errors
/// [`Error::Knobs`].
pub fn release(root: &Path) -> Result<Vec<(Change, Restored)>, Error> {
    restore(root, JOURNAL)
}

/// Undoes the changes in the journal `name`, if it exists.
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

/// `roles` without cgroups that no longer exist.
fn existing(root: &Path, roles: &Roles) -> Roles {
    let existing = |cgroups: &[Cgroup]| -> Vec<Cgroup> {
        let there = cgroups.iter().filter(|cgroup| cgroup.exists(root));
        there.cloned().collect()
    };
    let visible = roles.visible.iter();
    Roles {
        foreground: existing(&roles.foreground),
        visible: visible
            .filter(|it| it.cgroup.exists(root))
            .cloned()
            .collect(),
        background: existing(&roles.background),
    }
}
