//! Decides which apps are foreground, visible and background, from orders (`frontrow fg set`) and from
//! the focus, and applies the policy for them.

use crate::applied::{self, AppliedPolicy};
use crate::cost::{Cost, Meter};
use crate::policy::{Pace, Parts, Roles, Visible};
use crate::{Cgroup, Error, Helped, bfq};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::knobs::{Change, Restored};

/// Time from a change of the foreground until limits go below the usage of background apps. Limits
/// that an app has hit are checked again no more often than this.
const SETTLES_AFTER: Duration = Duration::from_secs(1);

/// Time without a focused app until the settings are undone: one app loses the focus before the next
/// gets it.
pub const FOCUS_GRACE: Duration = Duration::from_millis(200);

/// Least time between two changes of disks' schedulers, and from the end of a foreground to one: each
/// freezes and drains the disk for all its users, and users set and release as they like.
const SWITCHES_APART: Duration = Duration::from_secs(60);

/// Most cgroups that an order may name. The scheduler's lists hold 40; each cgroup costs some writes.
const MOST_NAMED: usize = 64;

/// Request of `frontrow fg set`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Cgroups of the foreground app.
    #[serde(rename = "front")]
    pub foreground: Vec<Cgroup>,
    /// Visible but inactive apps.
    #[serde(default)]
    pub visible: Vec<Visible>,
    /// Background cgroups; if empty, all other apps of the same `app.slice`.
    #[serde(rename = "behind")]
    pub background: Vec<Cgroup>,
}

impl Order {
    /// All roles. An order without background cgroups gets all other apps.
    ///
    /// # Errors
    /// [`Error::Gone`] if the other apps cannot be listed.
    pub fn roles(&self, root: &Path) -> Result<Roles, Error> {
        let mut roles = Roles {
            foreground: self.foreground.clone(),
            visible: self.visible.clone(),
            background: self.background.clone(),
        };
        if roles.background.is_empty() {
            let seen: Vec<_> = roles.on_screen().cloned().collect();
            roles.background = Cgroup::other_apps(root, &seen)?;
        }
        Ok(roles)
    }
}

/// State of a running daemon, for `frontrow fg status`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Cgroups of the foreground app.
    #[serde(rename = "front")]
    pub foreground: Vec<Cgroup>,
    /// Visible but inactive apps.
    pub visible: Vec<Visible>,
    /// Cgroups of background apps.
    #[serde(rename = "behind")]
    pub background: Vec<Cgroup>,
    /// One phrase: why this is the foreground, or why there is none.
    pub why: String,
    /// Seconds since the foreground changed; None if another user's app came or went then.
    pub since_s: Option<u64>,
    /// Changes in force for the foreground.
    pub changes: Vec<Change>,
    /// Knobs that another program has set since then; they are left alone.
    pub overruled: Vec<PathBuf>,
    /// Background cgroups that get no memory limit, since they stalled under one.
    pub spared: Vec<Cgroup>,
    /// Waits and I/O of background cgroups since each became background.
    pub cost: Cost,
    /// Cgroups without the io or the memory controller, for which only a part is applied.
    #[serde(default)]
    pub left_out: Vec<Cgroup>,
    /// Whether apps of other users were removed from this status.
    #[serde(default)]
    pub others: bool,
    /// Dirty limits of removable or slow disks.
    #[serde(default)]
    pub limits: Vec<Change>,
    /// Dirty limits of apps that write far ahead of their disks; only without a foreground.
    #[serde(default)]
    pub writers: Vec<Change>,
    /// Schedulers that disks keep for a while after the foreground has gone.
    #[serde(default)]
    pub kept: Vec<Change>,
    /// Seconds until disks may change their scheduler; 0 if they may now.
    #[serde(default)]
    pub switch_in_s: u64,
    /// Waits of the last hour, by the app that was the foreground meanwhile.
    #[serde(default)]
    pub helped: Vec<Helped>,
}

impl Status {
    /// The part of the status that concerns the cgroups for which `may` returns true. The time of the
    /// last change is told if `knows_when`.
    pub fn told_of(mut self, knows_when: bool, may: impl Fn(&Cgroup) -> bool) -> Status {
        if !knows_when {
            self.since_s = None;
            self.switch_in_s = 0;
        }
        let all = self.foreground.len() + self.visible.len() + self.background.len();
        for cgroups in [
            &mut self.foreground,
            &mut self.background,
            &mut self.spared,
            &mut self.left_out,
        ] {
            cgroups.retain(&may);
        }
        self.visible.retain(|it| may(&it.cgroup));
        let is_known = |change: &Change| Cgroup::of_knob(&change.path).is_some_and(|it| may(&it));
        self.writers.retain(is_known);
        self.others = all > self.foreground.len() + self.visible.len() + self.background.len();
        if self.others {
            let told = |path: &Path| {
                let mut known = self.foreground.iter().chain(&self.background);
                known.any(|it| path.parent() == it.knob("memory.low").parent())
            };
            self.overruled.retain(|path| told(path));
            self.changes.retain(|change| told(&change.path));
            self.cost = Cost::default();
        }
        if self.others && self.foreground.is_empty() {
            self.why = "an app of another user is in the foreground".to_owned();
        }
        self
    }
}

/// State machine of the foreground. It reads no clock and never blocks: callers pass the time.
#[derive(Debug)]
pub struct Arbiter {
    root: PathBuf,
    /// Longest time that apps of the same users may stay in the foreground.
    limit: Option<Duration>,
    order: Option<Order>,
    focused: Vec<Cgroup>,
    detector: String,
    /// Whether the focus is ignored until it changes (after a release).
    ignores_focus: bool,
    applied: Option<AppliedPolicy>,
    /// The schedulers of the last foreground, and until when disks keep them; only without a
    /// foreground.
    kept: Option<(AppliedPolicy, Instant)>,
    /// When disks last changed their scheduler.
    switched_at: Option<Instant>,
    /// When disks that could not change to BFQ yet may do so.
    switch_at: Option<Instant>,
    roles: Roles,
    meter: Meter,
    why: String,
    since: Instant,
    /// Users of the foreground apps, and since when. `limit` counts from there, so a user cannot extend
    /// it by switching between two apps.
    users: BTreeSet<Option<u32>>,
    users_since: Instant,
    /// Users whose apps came or went at `since`.
    changed: BTreeSet<Option<u32>>,
    settle_at: Option<Instant>,
    /// When the lack of a focused app takes effect.
    leave_at: Option<Instant>,
    log: Vec<String>,
}

impl Arbiter {
    /// Undoes the settings that a killed process left. There is no foreground then.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn start(root: &Path, limit: Option<Duration>, now: Instant) -> Result<Self, Error> {
        let mut arbiter = Arbiter {
            root: root.to_owned(),
            limit,
            order: None,
            focused: Vec::new(),
            detector: String::new(),
            ignores_focus: false,
            applied: None,
            kept: None,
            switched_at: None,
            switch_at: None,
            roles: Roles::default(),
            meter: Meter::default(),
            why: "no app has the focus".to_owned(),
            since: now,
            users: BTreeSet::new(),
            users_since: now,
            changed: BTreeSet::new(),
            settle_at: None,
            leave_at: None,
            log: Vec::new(),
        };
        let left = applied::release(root)?;
        arbiter.tell("undone after a process that was killed", undone(&left));
        Ok(arbiter)
    }

    /// Applies `order`, which overrides the focus until it is released or its apps end. Returns the
    /// changes made.
    ///
    /// # Errors
    /// [`Error`]; there is no foreground then.
    pub fn command(&mut self, order: Order, now: Instant) -> Result<Vec<Change>, Error> {
        if order.foreground.len() + order.visible.len() + order.background.len() > MOST_NAMED {
            return Err(Error::TooMany(MOST_NAMED));
        }
        let is_percent = |it: &Visible| (1..=100).contains(&it.percent);
        if order.foreground.is_empty() || !order.visible.iter().all(is_percent) {
            return Err(Error::Garbled);
        }
        if let Some(empty) = order
            .foreground
            .iter()
            .find(|it| !it.is_populated(&self.root))
        {
            return Err(Error::Empty(empty.path().to_owned()));
        }
        self.order = Some(order);
        let made = self.apply(now);
        if made.is_err() {
            self.order = None;
        }
        made
    }

    /// Makes the focused cgroups, found by `detector`, the foreground unless an order is in force.
    ///
    /// # Errors
    /// [`Error`]; there is no foreground then.
    pub fn set_focus(
        &mut self,
        mut foreground: Vec<Cgroup>,
        detector: &str,
        now: Instant,
    ) -> Result<(), Error> {
        foreground.retain(|cgroup| cgroup.is_populated(&self.root));
        if foreground.is_empty() && !self.focused.is_empty() {
            self.leave_at.get_or_insert(now + FOCUS_GRACE);
            return Ok(());
        }
        self.leave_at = None;
        self.ignores_focus &= foreground == self.focused;
        self.focused = foreground;
        self.detector = detector.to_owned();
        self.apply(now).map(drop)
    }

    /// Ends the order in force, if any, and returns it. The focus decides again.
    ///
    /// # Errors
    /// [`Error`]; there is no foreground then.
    pub fn withdraw(&mut self, now: Instant) -> Result<Option<Order>, Error> {
        let order = self.order.take();
        if order.is_some() {
            self.apply(now)?;
        }
        Ok(order)
    }

    /// Whether an order is in force.
    pub fn has_order(&self) -> bool {
        self.order.is_some()
    }

    /// Undoes all settings and ignores the focus until it changes.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn release(&mut self, why: &str, now: Instant) -> Result<Vec<(Change, Restored)>, Error> {
        self.order = None;
        self.leave_at = None;
        self.ignores_focus = true;
        self.undo(why, now)
    }

    /// As [`Self::release`], and disks have their schedulers back at once.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn end(&mut self, why: &str, now: Instant) -> Result<(), Error> {
        self.release(why, now)?;
        self.put_schedulers_back(now)
    }

    /// Removes foreground and visible cgroups without processes.
    ///
    /// # Errors
    /// [`Error`]; there is no foreground then.
    pub fn drop_empty(&mut self, now: Instant) -> Result<(), Error> {
        let root = self.root.clone();
        if let Some(order) = &mut self.order {
            order.foreground.retain(|cgroup| cgroup.is_populated(&root));
            order.visible.retain(|it| it.cgroup.is_populated(&root));
        }
        self.order.take_if(|order| order.foreground.is_empty());
        self.focused.retain(|cgroup| cgroup.is_populated(&root));
        self.apply(now).map(drop)
    }

    /// Schedules a check of the limits, after a background cgroup has hit its own.
    pub fn limit_was_hit(&mut self, now: Instant) {
        if self.applied.is_some() {
            self.settle_at.get_or_insert(now + SETTLES_AFTER);
        }
    }

    /// Whether a check of the limits is due.
    pub fn is_settling(&self) -> bool {
        self.settle_at.is_some()
    }

    /// When [`Self::tick`] is due.
    pub fn due(&self) -> Option<Instant> {
        let limit = self.limit.filter(|_| self.applied.is_some());
        let limit = limit.map(|limit| self.users_since + limit);
        let kept = self.kept.as_ref().map(|(_, until)| *until);
        let switch_at = self.switch_at.filter(|_| self.applied.is_some());
        let times = [self.settle_at, self.leave_at, limit, kept, switch_at];
        times.into_iter().flatten().min()
    }

    /// Takes the actions that are due at `now`.
    ///
    /// # Errors
    /// [`Error`]; there is no foreground then.
    pub fn tick(&mut self, now: Instant) -> Result<(), Error> {
        if self.kept.as_ref().is_some_and(|(_, until)| now >= *until) {
            self.put_schedulers_back(now)?;
        }
        let is_over = |limit| now >= self.users_since + limit;
        if self.applied.is_some() && self.limit.is_some_and(is_over) {
            return self
                .release(
                    "apps of the same users were in the foreground for longer than the limit",
                    now,
                )
                .map(drop);
        }
        if self.leave_at.take_if(|at| now >= *at).is_some() {
            self.focused.clear();
            self.apply(now)?;
        }
        if self.settle_at.is_some_and(|at| now >= at) {
            self.settle_at = None;
            if let Some(applied) = &mut self.applied {
                applied.spare(&self.roles.background);
            }
            self.change(Pace::Settled, now)?;
        }
        if self.switch_at.take_if(|at| now >= *at).is_some() && self.applied.is_some() {
            self.change(Pace::AtOnce, now)?;
        }
        Ok(())
    }

    /// Present roles; empty without a foreground.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// Complete status.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn status(&self, now: Instant) -> Result<Status, Error> {
        let known = self
            .applied
            .as_ref()
            .map(AppliedPolicy::changes)
            .unwrap_or_default();
        let overruled = self
            .applied
            .as_ref()
            .map(AppliedPolicy::overruled)
            .transpose()?
            .unwrap_or_default();
        let mut changes = sys::knobs::net(&self.root, known)?;
        changes.retain(|change| !overruled.contains(&change.path));
        Ok(Status {
            foreground: self.roles.foreground.clone(),
            visible: self.roles.visible.clone(),
            background: self.roles.background.clone(),
            why: self.why.clone(),
            since_s: Some(now.saturating_duration_since(self.since).as_secs()),
            changes,
            overruled,
            spared: self
                .applied
                .iter()
                .flat_map(AppliedPolicy::spared)
                .cloned()
                .collect(),
            cost: self.meter.cost(&self.root),
            left_out: self.roles.left_out(&self.root),
            others: false,
            limits: Vec::new(),
            writers: Vec::new(),
            kept: self.kept_schedulers().cloned().collect(),
            switch_in_s: self.switch_in(now).as_secs_f64().ceil() as u64,
            helped: Vec::new(),
        })
    }

    fn kept_schedulers(&self) -> impl Iterator<Item = &Change> {
        self.kept.iter().flat_map(|(applied, _)| applied.switches())
    }

    /// Whether the last change of the foreground concerned apps of this user only.
    pub fn was_changed_for(&self, user: u32) -> bool {
        self.changed.iter().all(|it| *it == Some(user))
    }

    /// Time until disks may change their scheduler.
    fn switch_in(&self, now: Instant) -> Duration {
        let kept = self.kept.as_ref().map(|(_, until)| *until);
        let next = self.switched_at.map(|at| at + SWITCHES_APART);
        let at = kept.max(next);
        at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    /// Takes the log lines since the last call.
    pub fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Applies the policy for the wanted roles, if they differ from the present ones.
    fn apply(&mut self, now: Instant) -> Result<Vec<Change>, Error> {
        let wanted = self.wanted();
        if wanted.foreground.is_empty() {
            if self.applied.is_some() {
                self.undo("no app has the focus", now)?;
            }
            return Ok(Vec::new());
        }
        let owners = wanted.foreground.iter().map(|it| it.owner(&self.root));
        let users: BTreeSet<_> = owners.collect();
        if wanted.foreground != self.roles.foreground {
            self.since = now;
            let before = match self.applied {
                Some(_) => self.users.clone(),
                None => BTreeSet::new(),
            };
            self.changed = &before | &users;
        }
        if self.applied.is_none() || users != self.users {
            self.users_since = now;
        }
        self.users = users;
        self.why = match &self.order {
            Some(_) => "set by frontrow fg set".to_owned(),
            None => format!("has the focus, says {}", self.detector),
        };
        self.roles = wanted;
        let made = self.change(Pace::AtOnce, now)?;
        if !made.is_empty() {
            self.settle_at = Some(now + SETTLES_AFTER);
        }
        Ok(made)
    }

    fn wanted(&self) -> Roles {
        let seen = Order {
            foreground: self.focused.clone(),
            visible: Vec::new(),
            background: Vec::new(),
        };
        let order = match &self.order {
            Some(order) => order,
            None if self.ignores_focus => return Roles::default(),
            None => &seen,
        };
        // Without the slice there are no other apps.
        order.roles(&self.root).unwrap_or_else(|_| Roles {
            foreground: order.foreground.clone(),
            ..Roles::default()
        })
    }

    fn change(&mut self, pace: Pace, now: Instant) -> Result<Vec<Change>, Error> {
        let next = self.switched_at.map(|at| at + SWITCHES_APART);
        let not_before = next.filter(|at| now < *at);
        let roles = self.roles.clone();
        let made = self.policy().and_then(|applied| {
            applied.allow_switch(not_before.is_none());
            applied.change(&roles, pace)
        });
        match made {
            Ok(made) => {
                if made.iter().any(|it| bfq::is_scheduler(&it.path)) {
                    self.switched_at = Some(now);
                }
                self.switch_at = not_before;
                self.meter.follow(&self.root, &self.roles.background);
                let headline = format!(
                    "{} in the foreground: {}",
                    names(&self.roles.foreground),
                    self.why
                );
                self.tell(&headline, made.iter().map(line).collect());
                Ok(made)
            }
            Err(error) => {
                let foreground = names(&self.roles.foreground);
                self.undo(
                    &format!("the foreground {foreground} cannot be applied: {error}"),
                    now,
                )?;
                Err(error)
            }
        }
    }

    /// The policy in force; without one the last one's schedulers, or none of its changes.
    fn policy(&mut self) -> Result<&mut AppliedPolicy, Error> {
        let applied = match (self.applied.take(), self.kept.take()) {
            (Some(applied), _) | (None, Some((applied, _))) => applied,
            (None, None) => AppliedPolicy::begin(&self.root, Parts::ALL)?,
        };
        Ok(self.applied.insert(applied))
    }

    fn put_schedulers_back(&mut self, now: Instant) -> Result<(), Error> {
        let Some((kept, _)) = self.kept.take() else {
            return Ok(());
        };
        self.switched_at = Some(now);
        let restored = kept.release()?;
        self.tell("no foreground for a while", undone(&restored));
        Ok(())
    }

    fn undo(&mut self, why: &str, now: Instant) -> Result<Vec<(Change, Restored)>, Error> {
        self.roles = Roles::default();
        self.meter.follow(&self.root, &[]);
        self.settle_at = None;
        self.since = now;
        self.changed = std::mem::take(&mut self.users);
        self.why = why.to_owned();
        self.switch_at = None;
        let restored = match self.applied.take() {
            Some(mut applied) if applied.switches().next().is_some() => {
                let restored = applied.keep_schedulers_only()?;
                self.kept = Some((applied, now + SWITCHES_APART));
                restored
            }
            Some(applied) => applied.release()?,
            None if self.kept.is_some() => Vec::new(),
            // Settings that a process without the daemon applied.
            None => applied::release(&self.root)?,
        };
        self.tell(&format!("no foreground: {why}"), undone(&restored));
        Ok(restored)
    }

    fn tell(&mut self, headline: &str, lines: Vec<String>) {
        if !lines.is_empty() {
            self.log.push(headline.to_owned());
            self.log.extend(lines);
        }
    }
}

fn names(cgroups: &[Cgroup]) -> String {
    let paths: Vec<_> = cgroups.iter().map(Cgroup::path).collect();
    paths.join(", ")
}

fn line(change: &Change) -> String {
    format!("  {change:#}")
}

fn undone(restored: &[(Change, Restored)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (change, outcome) in restored {
        let path = sys::knobs::shown(&change.path.to_string_lossy());
        match outcome {
            Restored::Written => {
                let before = sys::knobs::shown(&change.before);
                lines.push(format!("  {path}: {before} (as it was before)"));
            }
            Restored::Overruled => {
                lines.push(format!(
                    "  {path}: left alone, another program has set it since"
                ));
            }
            Restored::Unchanged | Restored::Gone => {}
        }
    }
    lines
}
