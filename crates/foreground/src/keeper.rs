//! Who is to be in front, by what was said and seen, and the hold that makes it so.

use crate::cost::{Cost, Meter};
use crate::hold::{self, Hold};
use crate::policy::{Grounds, Pace, Parts, Visible};
use crate::{Cgroup, Error};
use knobs::{Change, Restored};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// After a change, limits are brought below what apps have only when the user stays this
/// long; and apps that run into theirs have them looked at no more often than that.
const SETTLES_AFTER: Duration = Duration::from_secs(1);

/// One app loses the focus before another one gets it. Letting everybody go in between
/// would be twice the work, and none of it needed.
const LINGERS: Duration = Duration::from_millis(200);

/// An order names no more cgroups. The scheduler's lists hold 40 of them; each costs the kernel
/// some writes.
const MOST_NAMED: usize = 64;

/// What somebody said with `frontrow fg set`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// To be in front.
    pub front: Vec<Cgroup>,
    /// Seen beside it.
    #[serde(default)]
    pub visible: Vec<Visible>,
    /// To be behind; if empty, the other apps of the same `app.slice`.
    pub behind: Vec<Cgroup>,
}

impl Order {
    /// Who is to be where; what is not said to be behind is looked for.
    ///
    /// # Errors
    /// [`Error::Gone`] if the other apps cannot be looked for.
    pub fn grounds(&self, root: &Path) -> Result<Grounds, Error> {
        let mut grounds = Grounds {
            front: self.front.clone(),
            visible: self.visible.clone(),
            behind: self.behind.clone(),
        };
        if grounds.behind.is_empty() {
            let seen: Vec<_> = grounds.seen().cloned().collect();
            grounds.behind = Cgroup::other_apps(root, &seen)?;
        }
        Ok(grounds)
    }
}

/// What `frontrow fg status` tells of a running daemon.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Who is in front.
    pub front: Vec<Cgroup>,
    /// Who is seen beside it.
    pub visible: Vec<Visible>,
    /// Who is behind.
    pub behind: Vec<Cgroup>,
    /// One phrase: what put the front there, or why nobody is.
    pub why: String,
    /// How long that has been so.
    pub since_s: u64,
    /// What is changed for it.
    pub changes: Vec<Change>,
    /// Knobs that somebody else has set since, and that are left as they are.
    pub overruled: Vec<PathBuf>,
    /// Those behind who go without a memory limit, as theirs had them stand still.
    pub spared: Vec<Cgroup>,
    /// What being behind has cost since each came there.
    pub cost: Cost,
    /// Those for whom only a part is done, as they are without the io or the memory controller.
    #[serde(default)]
    pub left_out: Vec<Cgroup>,
    /// Somebody else's apps are concerned, and not told of.
    #[serde(default)]
    pub others: bool,
    /// What is changed for disks that can be taken out or are slow, whoever has the focus.
    #[serde(default)]
    pub limits: Vec<Change>,
    /// What is changed for apps that write far ahead of their disks while nobody is in front.
    #[serde(default)]
    pub writers: Vec<Change>,
}

impl Status {
    /// What a user is told who may only know of some of it.
    pub fn told_of(mut self, may: impl Fn(&Cgroup) -> bool) -> Status {
        let all = self.front.len() + self.visible.len() + self.behind.len();
        for cgroups in [
            &mut self.front,
            &mut self.behind,
            &mut self.spared,
            &mut self.left_out,
        ] {
            cgroups.retain(&may);
        }
        self.visible.retain(|it| may(&it.cgroup));
        let is_known = |change: &Change| Cgroup::of_knob(&change.path).is_some_and(|it| may(&it));
        self.writers.retain(is_known);
        self.others = all > self.front.len() + self.visible.len() + self.behind.len();
        if self.others {
            let told = |path: &Path| {
                let mut known = self.front.iter().chain(&self.behind);
                known.any(|it| path.parent() == it.knob("memory.low").parent())
            };
            self.overruled.retain(|path| told(path));
            self.changes.retain(|change| told(&change.path));
            self.cost = Cost::default();
        }
        if self.others && self.front.is_empty() {
            self.why = "an app of somebody else's is in front".to_owned();
        }
        self
    }
}

/// Keeps in front who is to be there. It reads no clock and waits for nothing.
#[derive(Debug)]
pub struct Keeper {
    root: PathBuf,
    /// How long nobody may change the focus until all is let go.
    limit: Option<Duration>,
    order: Option<Order>,
    seen: Vec<Cgroup>,
    seen_by: String,
    /// What is seen does not count until it changes.
    let_go: bool,
    hold: Option<Hold>,
    grounds: Grounds,
    meter: Meter,
    why: String,
    since: Instant,
    /// Whose apps are in front, and since when it is these users'. The limit counts that: who
    /// has two apps take turns holds the others behind as long as with one.
    whose: BTreeSet<Option<u32>>,
    theirs_since: Instant,
    settle_at: Option<Instant>,
    /// When nobody's having the focus is to count.
    leave_at: Option<Instant>,
    log: Vec<String>,
}

impl Keeper {
    /// Undoes what a predecessor may have left; then nobody is in front.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn start(root: &Path, limit: Option<Duration>, now: Instant) -> Result<Self, Error> {
        let mut keeper = Keeper {
            root: root.to_owned(),
            limit,
            order: None,
            seen: Vec::new(),
            seen_by: String::new(),
            let_go: false,
            hold: None,
            grounds: Grounds::default(),
            meter: Meter::default(),
            why: "no app has the focus".to_owned(),
            since: now,
            whose: BTreeSet::new(),
            theirs_since: now,
            settle_at: None,
            leave_at: None,
            log: Vec::new(),
        };
        let left = hold::release(root)?;
        keeper.tell("left by a process that was killed", undone(&left));
        Ok(keeper)
    }

    /// `order` counts until it is released or its apps are gone, whoever has the focus. It
    /// gives the changes that took.
    ///
    /// # Errors
    /// [`Error`]; then nobody is in front.
    pub fn command(&mut self, order: Order, now: Instant) -> Result<Vec<Change>, Error> {
        if order.front.len() + order.visible.len() + order.behind.len() > MOST_NAMED {
            return Err(Error::TooMany(MOST_NAMED));
        }
        let is_percent = |it: &Visible| (1..=100).contains(&it.percent);
        if order.front.is_empty() || !order.visible.iter().all(is_percent) {
            return Err(Error::Garbled);
        }
        if let Some(empty) = order.front.iter().find(|it| !it.is_populated(&self.root)) {
            return Err(Error::Empty(empty.path().to_owned()));
        }
        self.order = Some(order);
        let made = self.apply(now);
        if made.is_err() {
            self.order = None;
        }
        made
    }

    /// `detector` has looked, and this is who has the focus.
    ///
    /// # Errors
    /// [`Error`]; then nobody is in front.
    pub fn sees(
        &mut self,
        mut front: Vec<Cgroup>,
        detector: &str,
        now: Instant,
    ) -> Result<(), Error> {
        front.retain(|cgroup| cgroup.is_populated(&self.root));
        if front.is_empty() && !self.seen.is_empty() {
            self.leave_at.get_or_insert(now + LINGERS);
            return Ok(());
        }
        self.leave_at = None;
        self.let_go &= front == self.seen;
        self.seen = front;
        self.seen_by = detector.to_owned();
        self.apply(now).map(drop)
    }

    /// Nothing is said any more, and the focus counts again; what was said is given back.
    ///
    /// # Errors
    /// [`Error`]; then nobody is in front.
    pub fn withdraw(&mut self, now: Instant) -> Result<Option<Order>, Error> {
        let order = self.order.take();
        if order.is_some() {
            self.apply(now)?;
        }
        Ok(order)
    }

    /// Whether something was said that counts.
    pub fn has_order(&self) -> bool {
        self.order.is_some()
    }

    /// Lets everybody go; the next change of focus counts again.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn release(&mut self, why: &str, now: Instant) -> Result<Vec<(Change, Restored)>, Error> {
        self.order = None;
        self.leave_at = None;
        self.let_go = true;
        self.undo(why, now)
    }

    /// Something happened to a cgroup that is in front.
    ///
    /// # Errors
    /// [`Error`]; then nobody is in front.
    pub fn look_after(&mut self, now: Instant) -> Result<(), Error> {
        let root = self.root.clone();
        if let Some(order) = &mut self.order {
            order.front.retain(|cgroup| cgroup.is_populated(&root));
            order.visible.retain(|it| it.cgroup.is_populated(&root));
        }
        self.order.take_if(|order| order.front.is_empty());
        self.seen.retain(|cgroup| cgroup.is_populated(&root));
        self.apply(now).map(drop)
    }

    /// Somebody behind has run into its limit, which may be too low by now.
    pub fn limit_was_hit(&mut self, now: Instant) {
        if self.hold.is_some() {
            self.settle_at.get_or_insert(now + SETTLES_AFTER);
        }
    }

    /// Whether limits are to be looked at soon.
    pub fn is_settling(&self) -> bool {
        self.settle_at.is_some()
    }

    /// When [`Self::tick`] is due.
    pub fn due(&self) -> Option<Instant> {
        let limit = self.limit.filter(|_| self.hold.is_some());
        let limit = limit.map(|limit| self.theirs_since + limit);
        let times = [self.settle_at, self.leave_at, limit];
        times.into_iter().flatten().min()
    }

    /// Does what is due.
    ///
    /// # Errors
    /// [`Error`]; then nobody is in front.
    pub fn tick(&mut self, now: Instant) -> Result<(), Error> {
        let is_over = |limit| now >= self.theirs_since + limit;
        if self.hold.is_some() && self.limit.is_some_and(is_over) {
            return self
                .release(
                    "the same user's apps were in front for so long that the others are let go",
                    now,
                )
                .map(drop);
        }
        if self.leave_at.take_if(|at| now >= *at).is_some() {
            self.seen.clear();
            self.apply(now)?;
        }
        if self.settle_at.is_some_and(|at| now >= at) {
            self.settle_at = None;
            if let Some(hold) = &mut self.hold {
                hold.spare(&self.grounds.behind);
            }
            self.change(Pace::Settled, now)?;
        }
        Ok(())
    }

    /// Who is in front.
    pub fn grounds(&self) -> &Grounds {
        &self.grounds
    }

    /// All there is to tell.
    ///
    /// # Errors
    /// [`Error::Knobs`].
    pub fn status(&self, now: Instant) -> Result<Status, Error> {
        let known = self.hold.as_ref().map(Hold::changes).unwrap_or_default();
        let overruled = self
            .hold
            .as_ref()
            .map(Hold::overruled)
            .transpose()?
            .unwrap_or_default();
        let mut changes = knobs::net(&self.root, known)?;
        changes.retain(|change| !overruled.contains(&change.path));
        Ok(Status {
            front: self.grounds.front.clone(),
            visible: self.grounds.visible.clone(),
            behind: self.grounds.behind.clone(),
            why: self.why.clone(),
            since_s: now.saturating_duration_since(self.since).as_secs(),
            changes,
            overruled,
            spared: self.hold.iter().flat_map(Hold::spared).cloned().collect(),
            cost: self.meter.cost(&self.root),
            left_out: self.grounds.left_out(&self.root),
            others: false,
            limits: Vec::new(),
            writers: Vec::new(),
        })
    }

    /// What happened since this was last asked, a line each.
    pub fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }

    /// Makes it so, if it is not.
    fn apply(&mut self, now: Instant) -> Result<Vec<Change>, Error> {
        let wanted = self.wanted();
        if wanted.front.is_empty() {
            if self.hold.is_some() {
                self.undo("no app has the focus", now)?;
            }
            return Ok(Vec::new());
        }
        if wanted.front != self.grounds.front {
            self.since = now;
        }
        let owners = wanted.front.iter().map(|it| it.owner(&self.root));
        let whose: BTreeSet<_> = owners.collect();
        if self.hold.is_none() || whose != self.whose {
            self.theirs_since = now;
        }
        self.whose = whose;
        self.why = match &self.order {
            Some(_) => "said by frontrow fg set".to_owned(),
            None => format!("has the focus, says {}", self.seen_by),
        };
        self.grounds = wanted;
        let made = self.change(Pace::AtOnce, now)?;
        if !made.is_empty() {
            self.settle_at = Some(now + SETTLES_AFTER);
        }
        Ok(made)
    }

    fn wanted(&self) -> Grounds {
        let seen = Order {
            front: self.seen.clone(),
            visible: Vec::new(),
            behind: Vec::new(),
        };
        let order = match &self.order {
            Some(order) => order,
            None if self.let_go => return Grounds::default(),
            None => &seen,
        };
        // Where the slice has vanished, so have the apps.
        order.grounds(&self.root).unwrap_or_else(|_| Grounds {
            front: order.front.clone(),
            ..Grounds::default()
        })
    }

    fn change(&mut self, pace: Pace, now: Instant) -> Result<Vec<Change>, Error> {
        let made = match &mut self.hold {
            Some(hold) => hold.change(&self.grounds, pace),
            None => Hold::begin(&self.root, Parts::ALL)
                .and_then(|hold| self.hold.insert(hold).change(&self.grounds, pace)),
        };
        match made {
            Ok(made) => {
                self.meter.follow(&self.root, &self.grounds.behind);
                let headline = format!("{} in front: {}", names(&self.grounds.front), self.why);
                self.tell(&headline, made.iter().map(line).collect());
                Ok(made)
            }
            Err(error) => {
                let front = names(&self.grounds.front);
                self.undo(&format!("{front} cannot be put in front: {error}"), now)?;
                Err(error)
            }
        }
    }

    fn undo(&mut self, why: &str, now: Instant) -> Result<Vec<(Change, Restored)>, Error> {
        self.grounds = Grounds::default();
        self.meter.follow(&self.root, &[]);
        self.settle_at = None;
        self.since = now;
        self.why = why.to_owned();
        let restored = match self.hold.take() {
            Some(hold) => hold.release()?,
            // What was held without a daemon's knowing.
            None => hold::release(&self.root)?,
        };
        self.tell(&format!("nobody in front: {why}"), undone(&restored));
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
        let path = knobs::shown(&change.path.to_string_lossy());
        match outcome {
            Restored::Written => {
                let before = knobs::shown(&change.before);
                lines.push(format!("  {path}: {before} (as it was before)"));
            }
            Restored::Overruled => {
                lines.push(format!("  {path}: left, somebody else has set it since"));
            }
            Restored::Unchanged | Restored::Gone => {}
        }
    }
    lines
}
