//! The daemon: waits for detectors, requests and the end of apps, and passes them to the arbiter.

use crate::arbiter::{Arbiter, Order};
use crate::bus::{Bus, Caller, Method};
use crate::detect::{Detector, Scopes, TopApp};
use crate::dirty::DirtyLimits;
use crate::helped::Account;
use crate::life::Life;
use crate::rate::Rates;
use crate::seats::Seats;
use crate::socket::{Reply, Request, Server};
use crate::writers::WriterLimits;
use crate::{Cgroup, Error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shortest interval between checks of the focus, since each change costs the kernel and background
/// apps time.
const LOOKS_APART: Duration = Duration::from_millis(25);

/// Most cgroups that are searched for a process.
const SEARCHED_FOR_ROOT: usize = 4096;
const SEARCHED_FOR_USERS: usize = 512;

/// First pause until a lost bus is connected again; it doubles with each attempt.
const BUS_AGAIN: Duration = Duration::from_secs(1);
const BUS_AGAIN_AT_MOST: Duration = Duration::from_secs(64);

/// The daemon of `frontrow fg daemon`.
pub struct Daemon<'a> {
    root: PathBuf,
    arbiter: Arbiter,
    /// None if the kernel has no dirty limits for disks.
    limits: Option<DirtyLimits>,
    writers: WriterLimits,
    helped: Account,
    detectors: Vec<Box<dyn Detector>>,
    seats: Seats,
    rates: Rates,
    /// User whose order is in force.
    commander: Option<u32>,
    /// Orders of users whose session is not active now. They apply again when it is.
    suspended: BTreeMap<u32, Order>,
    /// Times of the last and the next check of the focus.
    seen_at: Instant,
    look_at: Option<Instant>,
    life: Life,
    server: Server,
    /// None without a bus, or after its connection was lost.
    bus: Option<Bus>,
    /// Time of the next attempt to connect to a lost bus, and the pause after it.
    bus_at: Option<(Instant, Duration)>,
    log: &'a mut dyn FnMut(&str),
}

impl<'a> Daemon<'a> {
    /// Undoes the settings of a killed predecessor, and listens. `limit` is the longest time that
    /// apps of the same users may be the foreground. `log` gets one line at a time.
    ///
    /// # Errors
    /// [`Error`], where the system has not what is needed.
    pub fn start(
        root: &Path,
        limit: Option<Duration>,
        log: &'a mut dyn FnMut(&str),
    ) -> Result<Self, Error> {
        Cgroup::require_controllers(root)?;
        let server = Server::bind(root)?;
        let arbiter = Arbiter::start(root, limit, Instant::now())?;
        let mut detectors: Vec<Box<dyn Detector>> = vec![Box::new(Scopes::new(root)?)];
        if let Some(top_app) = TopApp::new(root)? {
            detectors.push(Box::new(top_app));
        }
        Ok(Daemon {
            root: root.to_owned(),
            arbiter,
            limits: limits(root, log),
            writers: WriterLimits::start(root, Instant::now())?,
            helped: Account::new(root, Instant::now()),
            detectors,
            seats: Seats::new(root)?,
            rates: Rates::default(),
            commander: None,
            suspended: BTreeMap::new(),
            seen_at: Instant::now(),
            look_at: None,
            life: Life::new(root)?,
            server,
            bus: bus(root, log),
            bus_at: None,
            log,
        })
    }

    /// Serves until `stop` is readable, then undoes all settings.
    ///
    /// # Errors
    /// [`Error`]; if it comes from putting things back, the journal is there for the next try.
    pub fn run(mut self, stop: BorrowedFd<'_>) -> Result<(), Error> {
        let served = self.serve(stop);
        let woken = Instant::now();
        let released = self.arbiter.end("frontrowd ends", woken);
        self.write_log(woken);
        let unlimited = self.limits.take().map(DirtyLimits::release).transpose();
        let left_alone = self.writers.kept.release();
        let undone = released.and(unlimited.map(drop));
        served.and(undone).and(left_alone.map(drop))
    }

    fn serve(&mut self, stop: BorrowedFd<'_>) -> Result<(), Error> {
        let mut woken = Instant::now();
        self.see()?;
        loop {
            self.follow()?;
            self.write_log(woken);
            let foreground = &self.arbiter.roles().foreground;
            self.helped.follow(foreground, Instant::now());
            if self.wait(stop)? {
                return Ok(());
            }
            woken = Instant::now();
            self.look()?;
            self.hear_of_apps()?;
            self.answer();
            self.answer_bus();
            let ticked = self.arbiter.tick(Instant::now());
            self.go_on(ticked);
            let limited = self.limit_disks(Instant::now());
            self.go_on(limited);
            let limited = self.limit_writers(Instant::now());
            self.go_on(limited);
        }
    }

    /// Checks the focus with all detectors, unless the last check was too recent.
    fn look(&mut self) -> Result<(), Error> {
        let mut anything = self.seats.look()?;
        if anything {
            self.change_seats()?;
        }
        for detector in &mut self.detectors {
            anything |= detector.look()?;
            detector.log().iter().for_each(|line| (self.log)(line));
        }
        let now = Instant::now();
        if anything {
            let next = self.seen_at + LOOKS_APART;
            self.look_at.get_or_insert(next.max(now));
        }
        match self.look_at.take_if(|at| *at <= now) {
            Some(_) => self.see(),
            None => Ok(()),
        }
    }

    fn limit_disks(&mut self, now: Instant) -> Result<(), Error> {
        let Some(limits) = &mut self.limits else {
            return Ok(());
        };
        limits.hear(now)?;
        limits.tick(now)
    }

    fn limit_writers(&mut self, now: Instant) -> Result<(), Error> {
        match self.arbiter.roles().foreground.is_empty() {
            true => self.writers.tick(now),
            false => self.writers.undo_limits(),
        }
    }

    /// Suspends orders of users whose session is no longer active.
    fn change_seats(&mut self) -> Result<(), Error> {
        if let Some(user) = self.commander
            && self.arbiter.has_order()
            && !self.has_a_say(user)?
        {
            match self.arbiter.withdraw(Instant::now()) {
                Ok(order) => self.suspended.extend(order.map(|it| (user, it))),
                Err(error) => (self.log)(&error.to_string()),
            }
        }
        if self.arbiter.has_order() {
            return Ok(());
        }
        for user in self.suspended.keys().copied().collect::<Vec<_>>() {
            if self.has_a_say(user)?
                && let Some(order) = self.suspended.remove(&user)
            {
                self.commander = Some(user);
                let stepped_back = self.writers.undo_limits();
                let done = self.arbiter.command(order, Instant::now());
                self.go_on(stepped_back.and(done.map(drop)));
                break;
            }
        }
        Ok(())
    }

    /// Sleeps until the next event or deadline; returns whether to stop.
    fn wait(&mut self, stop: BorrowedFd<'_>) -> Result<bool, Error> {
        let detectors = self.detectors.iter().map(|it| it.fd());
        let mut fds: Vec<_> = [stop, self.life.fd(), self.seats.fd()]
            .into_iter()
            .chain(detectors)
            .chain(self.server.fds())
            .chain(self.bus.iter().map(Bus::fd))
            .chain(self.limits.iter().map(DirtyLimits::fd))
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let has_no_foreground = self.arbiter.roles().foreground.is_empty();
        let pressure = self.writers.pressure().filter(|_| has_no_foreground);
        fds.extend(pressure.map(|it| PollFd::new(it, PollFlags::PRI)));
        let bus_at = self.bus_at.map(|(at, _)| at);
        let hears_of_stalls = pressure.is_some();
        let limits = self.limits.as_ref();
        let limits = limits.and_then(|it| it.due(hears_of_stalls));
        let writers = self.writers.due().filter(|_| has_no_foreground);
        let due = [self.arbiter.due(), self.look_at, bus_at, limits, writers];
        let due = due.into_iter().flatten().min();
        let timeout = due.map(|due| timespec(due.saturating_duration_since(Instant::now())));
        let polled = poll(&mut fds, timeout.as_ref());
        let stops = !fds[0].revents().is_empty();
        let has_told = |fd: &PollFd<'_>| fd.revents().contains(PollFlags::PRI);
        let are_pressed = fds.last().is_some_and(has_told);
        match polled {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => {
                return Err(Error::Watch {
                    path: PathBuf::from("events"),
                    source: errno.into(),
                });
            }
        }
        if are_pressed {
            let now = Instant::now();
            self.writers.stalled(now);
            if let Some(limits) = &mut self.limits {
                limits.stalled(now);
            }
        }
        Ok(stops)
    }

    /// Reads all pending events before it acts: when the focus moves between apps, only the last
    /// state counts.
    fn see(&mut self) -> Result<(), Error> {
        let mut foreground = Vec::new();
        let mut names = Vec::new();
        for at in 0..self.detectors.len() {
            let mut seen = self.detectors[at].foreground();
            if self.detectors[at].is_the_users_word() {
                seen = self.of_those_who_sit_here(seen)?;
            }
            if !seen.is_empty() {
                names.push(self.detectors[at].name());
            }
            foreground.extend(seen);
        }
        let now = Instant::now();
        self.seen_at = now;
        if !foreground.is_empty() {
            // A journal that cannot be written, as when /run is full, ends nothing.
            let undone = self.writers.undo_limits();
            self.go_on(undone);
        }
        let done = self.arbiter.set_focus(foreground, &names.join(", "), now);
        self.go_on(done);
        Ok(())
    }

    fn of_those_who_sit_here(&mut self, seen: Vec<Cgroup>) -> Result<Vec<Cgroup>, Error> {
        let mut theirs = Vec::new();
        for cgroup in seen {
            if let Some(owner) = cgroup.owner(&self.root)
                && self.has_a_say(owner)?
            {
                theirs.push(cgroup);
            }
        }
        Ok(theirs)
    }

    /// Whether this user may set the foreground: root, the daemon's user, and users with an active
    /// session on a seat.
    fn has_a_say(&mut self, user: u32) -> Result<bool, Error> {
        Ok(is_above_all(user) || self.seats.are_used_by(user)?)
    }

    fn follow(&mut self) -> Result<(), Error> {
        let with_limits = !self.arbiter.is_settling();
        let is_gone = self.life.follow(self.arbiter.roles(), with_limits)?;
        if is_gone {
            self.drop_empty();
        }
        Ok(())
    }

    fn hear_of_apps(&mut self) -> Result<(), Error> {
        let news = self.life.news()?;
        if news.limit {
            self.arbiter.limit_was_hit(Instant::now());
        }
        if news.end {
            self.drop_empty();
        }
        Ok(())
    }

    fn drop_empty(&mut self) {
        let done = self.arbiter.drop_empty(Instant::now());
        self.go_on(done);
    }

    fn answer(&mut self) {
        for (peer, request) in self.server.requests() {
            let reply = self
                .admit(peer.uid, request == Request::Status)
                .and_then(|()| self.reply(peer.uid, request))
                .unwrap_or_else(|error| Reply::Failed {
                    kind: error.kind(),
                    sentence: error.to_string(),
                });
            peer.reply(&reply);
        }
    }

    fn answer_bus(&mut self) {
        let now = Instant::now();
        if let Some((_, after)) = self.bus_at.take_if(|(at, _)| *at <= now) {
            self.bus = Bus::connect(&self.root).ok().flatten();
            if self.bus.is_none() {
                let after = (after * 2).min(BUS_AGAIN_AT_MOST);
                self.bus_at = Some((now + after, after));
            }
        }
        let Some(mut bus) = self.bus.take() else {
            return;
        };
        match self.serve_bus(&mut bus) {
            Ok(()) => self.bus = Some(bus),
            // The name on the bus is not available.
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                (self.log)(&format!("no calls by D-Bus: {error}"));
            }
            Err(error) => {
                (self.log)(&format!("no calls by D-Bus until it is back: {error}"));
                self.bus_at = Some((now + BUS_AGAIN, BUS_AGAIN));
            }
        }
    }

    fn serve_bus(&mut self, bus: &mut Bus) -> io::Result<()> {
        for (caller, method) in bus.calls()? {
            match self.call(&caller, method) {
                Ok(text) => bus.done(&caller, text)?,
                Err(error) => bus.failed(&caller, error.kind(), error.to_string())?,
            }
        }
        Ok(())
    }

    fn call(&mut self, caller: &Caller, method: Method) -> Result<Option<String>, Error> {
        self.admit(caller.uid, method == Method::Status)?;
        let request = match method {
            Method::SetForeground(pid) => Request::Set(Order {
                foreground: vec![self.cgroup_of(caller.uid, pid)?],
                visible: Vec::new(),
                background: Vec::new(),
            }),
            Method::Release => Request::Release,
            Method::Status => Request::Status,
        };
        match self.reply(caller.uid, request)? {
            Reply::Status(status) => match serde_json::to_string(&status) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(Error::Garbled),
            },
            _ => Ok(None),
        }
    }

    /// Checks the user's rate and permission before any costly work.
    fn admit(&mut self, uid: u32, only_asks: bool) -> Result<(), Error> {
        if !is_above_all(uid) && !self.rates.allow(uid, Instant::now()) {
            return Err(Error::TooOften);
        }
        match only_asks || self.has_a_say(uid)? {
            true => Ok(()),
            false => Err(Error::NotSeated),
        }
    }

    /// Cgroup of a process in this user's slice.
    fn cgroup_of(&self, uid: u32, pid: u32) -> Result<Cgroup, Error> {
        if is_above_all(uid) {
            return Cgroup::of_process(&self.root, "", pid, SEARCHED_FOR_ROOT);
        }
        let slice = format!("/user.slice/user-{uid}.slice");
        Cgroup::of_process(&self.root, &slice, pid, SEARCHED_FOR_USERS)
    }

    /// Serves a request of the user `uid`.
    fn reply(&mut self, uid: u32, request: Request) -> Result<Reply, Error> {
        let now = Instant::now();
        match request {
            Request::Set(mut order) => {
                // A session reports all windows, some of them of other users (a terminal for root).
                // These are dropped, so that they do not prevent the change.
                order.visible.retain(|it| self.may(uid, &it.cgroup));
                let now_foreground = &self.arbiter.roles().foreground;
                let concerned = order.foreground.iter().chain(&order.background);
                self.permit(uid, concerned.chain(now_foreground))?;
                self.writers.undo_limits()?;
                let changes = self.arbiter.command(order, now)?;
                self.commander = Some(uid);
                let roles = self.arbiter.roles().clone();
                Ok(Reply::Set { roles, changes })
            }
            Request::Status => {
                let mut status = self.arbiter.status(now)?;
                let limits = self.limits.iter().flat_map(|it| it.kept.changes());
                status.limits = limits.cloned().collect();
                status.writers = self.writers.kept.changes().to_vec();
                status.helped = self.helped.told(now);
                let is_told = |of: u32| is_above_all(uid) || of == uid;
                status.helped.retain(|it| is_told(it.user));
                let knows_when = is_above_all(uid) || self.arbiter.was_changed_for(uid);
                let told = status.told_of(knows_when, |cgroup| self.may(uid, cgroup));
                Ok(Reply::Status(Box::new(told)))
            }
            Request::Release => {
                self.permit(uid, self.arbiter.roles().foreground.iter())?;
                let released = self.arbiter.release("said by frontrow fg release", now)?;
                Ok(Reply::Released(released))
            }
        }
    }

    fn permit<'b>(
        &self,
        uid: u32,
        mut cgroups: impl Iterator<Item = &'b Cgroup>,
    ) -> Result<(), Error> {
        match cgroups.find(|cgroup| !self.may(uid, cgroup)) {
            Some(other) => Err(Error::NotYours(other.path().to_owned())),
            None => Ok(()),
        }
    }

    fn may(&self, uid: u32, cgroup: &Cgroup) -> bool {
        is_above_all(uid) || cgroup.owner(&self.root) == Some(uid)
    }

    /// Logs errors and goes on: they may not concern the next app, and the status reports the
    /// reason.
    fn go_on(&mut self, done: Result<(), Error>) {
        if let Err(error) = done {
            (self.log)(&error.to_string());
        }
    }

    /// Logs the duration as well, since users notice a slow change of focus.
    fn write_log(&mut self, woken: Instant) {
        let mut lines = self.arbiter.log();
        lines.extend(self.limits.iter_mut().flat_map(|it| it.kept.log()));
        lines.extend(self.writers.kept.log());
        if lines.is_empty() {
            return;
        }
        for line in lines {
            (self.log)(&line);
        }
        let took_us = woken.elapsed().as_micros();
        (self.log)(&format!("  done {took_us} us after it was known"));
    }
}

/// Without the bus, everything else works.
fn bus(root: &Path, log: &mut dyn FnMut(&str)) -> Option<Bus> {
    Bus::connect(root).unwrap_or_else(|error| {
        log(&format!("no calls by D-Bus: {error}"));
        None
    })
}

/// Without these limits, everything else works.
fn limits(root: &Path, log: &mut dyn FnMut(&str)) -> Option<DirtyLimits> {
    match DirtyLimits::start(root, Instant::now()) {
        Ok(limits) => Some(limits),
        Err(error) => {
            log(&format!("no dirty limits for disks: {error}"));
            None
        }
    }
}

/// Users may set roles of their own apps; root and the daemon's user of all apps.
fn is_above_all(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
