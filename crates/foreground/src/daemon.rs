//! The daemon: waits for detectors, commands and the end of apps, and has the keeper act.

use crate::ahead::Ahead;
use crate::bus::{Bus, Caller, Method};
use crate::detect::{Detector, Scopes, TopApp};
use crate::dirty::DirtyLimits;
use crate::keeper::{Keeper, Order};
use crate::life::Life;
use crate::rate::Rates;
use crate::seats::Seats;
use crate::socket::{Reply, Request, Server};
use crate::{Cgroup, Error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Who has the focus is looked at no more often: each change is work for the kernel, and for
/// whoever is not in front.
const LOOKS_APART: Duration = Duration::from_millis(25);

/// Cgroups that a process is looked for in.
const SEARCHED_FOR_ROOT: usize = 4096;
const SEARCHED_FOR_USERS: usize = 512;

/// A bus that has ended is called again after this, and then after twice as long each time.
const BUS_AGAIN: Duration = Duration::from_secs(1);
const BUS_AGAIN_AT_MOST: Duration = Duration::from_secs(64);

/// What `frontrow fg daemon` runs.
pub struct Daemon<'a> {
    root: PathBuf,
    keeper: Keeper,
    /// None where disks' limits cannot be had.
    limits: Option<DirtyLimits>,
    ahead: Ahead,
    detectors: Vec<Box<dyn Detector>>,
    seats: Seats,
    rates: Rates,
    /// Who said what counts, if anybody.
    commander: Option<u32>,
    /// What users said who do not sit at the machine just now; it counts again when they do.
    suspended: BTreeMap<u32, Order>,
    /// When who has the focus was looked at last, and is to be next.
    seen_at: Instant,
    see_at: Option<Instant>,
    life: Life,
    server: Server,
    /// None where there is none, or none any more.
    bus: Option<Bus>,
    /// When a bus that has ended is called again, and after how long the next time.
    bus_at: Option<(Instant, Duration)>,
    log: &'a mut dyn FnMut(&str),
}

impl<'a> Daemon<'a> {
    /// Undoes what a predecessor left, and listens. `limit` is how long the same app may be
    /// in front before all is let go. `log` gets a line at a time.
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
        let keeper = Keeper::start(root, limit, Instant::now())?;
        let mut detectors: Vec<Box<dyn Detector>> = vec![Box::new(Scopes::new(root)?)];
        if let Some(top_app) = TopApp::new(root)? {
            detectors.push(Box::new(top_app));
        }
        Ok(Daemon {
            root: root.to_owned(),
            keeper,
            limits: limits(root, log),
            ahead: Ahead::start(root, Instant::now())?,
            detectors,
            seats: Seats::new(root)?,
            rates: Rates::default(),
            commander: None,
            suspended: BTreeMap::new(),
            seen_at: Instant::now(),
            see_at: None,
            life: Life::new(root)?,
            server,
            bus: bus(root, log),
            bus_at: None,
            log,
        })
    }

    /// Serves until `stop` is readable, and leaves everything as it was.
    ///
    /// # Errors
    /// [`Error`]; if it comes from putting things back, the journal is there for the next try.
    pub fn run(mut self, stop: BorrowedFd<'_>) -> Result<(), Error> {
        let served = self.serve(stop);
        let woken = Instant::now();
        let released = self.keeper.release("frontrowd ends", woken);
        self.write_log(woken);
        let unlimited = self.limits.take().map(DirtyLimits::release).transpose();
        let left_alone = self.ahead.release();
        let undone = released.map(drop).and(unlimited.map(drop));
        served.and(undone).and(left_alone.map(drop))
    }

    fn serve(&mut self, stop: BorrowedFd<'_>) -> Result<(), Error> {
        let mut woken = Instant::now();
        self.see()?;
        loop {
            self.follow()?;
            self.write_log(woken);
            if self.wait(stop)? {
                return Ok(());
            }
            woken = Instant::now();
            self.look()?;
            self.hear_of_apps()?;
            self.answer();
            self.answer_bus();
            let ticked = self.keeper.tick(Instant::now());
            self.go_on(ticked);
            let limited = self.limit_disks(Instant::now());
            self.go_on(limited);
            let limited = self.limit_writers(Instant::now());
            self.go_on(limited);
        }
    }

    /// Has all who know look, and acts on it, unless that was only just done.
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
            self.see_at.get_or_insert(next.max(now));
        }
        match self.see_at.take_if(|at| *at <= now) {
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
        match self.keeper.grounds().front.is_empty() {
            true => self.ahead.tick(now),
            false => self.ahead.step_back(),
        }
    }

    /// What was said by who has left the screen rests until they are back.
    fn change_seats(&mut self) -> Result<(), Error> {
        if let Some(user) = self.commander
            && self.keeper.has_order()
            && !self.has_a_say(user)?
        {
            match self.keeper.withdraw(Instant::now()) {
                Ok(order) => self.suspended.extend(order.map(|it| (user, it))),
                Err(error) => (self.log)(&error.to_string()),
            }
        }
        if self.keeper.has_order() {
            return Ok(());
        }
        for user in self.suspended.keys().copied().collect::<Vec<_>>() {
            if self.has_a_say(user)?
                && let Some(order) = self.suspended.remove(&user)
            {
                self.commander = Some(user);
                let stepped_back = self.ahead.step_back();
                let done = self.keeper.command(order, Instant::now());
                self.go_on(stepped_back.and(done.map(drop)));
                break;
            }
        }
        Ok(())
    }

    /// Sleeps until there is something to do; whether that is to stop.
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
        let nobody_in_front = self.keeper.grounds().front.is_empty();
        let pressure = self.ahead.pressure().filter(|_| nobody_in_front);
        fds.extend(pressure.map(|it| PollFd::new(it, PollFlags::PRI)));
        let bus_at = self.bus_at.map(|(at, _)| at);
        let limits = self.limits.as_ref().and_then(DirtyLimits::due);
        let writers = self.ahead.due().filter(|_| nobody_in_front);
        let due = [self.keeper.due(), self.see_at, bus_at, limits, writers];
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
            self.ahead.hear(Instant::now());
        }
        Ok(stops)
    }

    /// All that has happened is seen together: of an app that loses the focus and another
    /// that gets it, the second is what counts.
    fn see(&mut self) -> Result<(), Error> {
        let mut front = Vec::new();
        let mut names = Vec::new();
        for at in 0..self.detectors.len() {
            let mut seen = self.detectors[at].front();
            if self.detectors[at].is_the_users_word() {
                seen = self.of_those_who_sit_here(seen)?;
            }
            if !seen.is_empty() {
                names.push(self.detectors[at].name());
            }
            front.extend(seen);
        }
        let now = Instant::now();
        self.seen_at = now;
        if !front.is_empty() {
            self.ahead.step_back()?;
        }
        let done = self.keeper.sees(front, &names.join(", "), now);
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

    /// Whether this user may say who is in front: root, whoever runs the daemon, and who sits at
    /// the machine.
    fn has_a_say(&mut self, user: u32) -> Result<bool, Error> {
        Ok(is_above_all(user) || self.seats.are_used_by(user)?)
    }

    fn follow(&mut self) -> Result<(), Error> {
        let with_limits = !self.keeper.is_settling();
        let is_gone = self.life.follow(self.keeper.grounds(), with_limits)?;
        if is_gone {
            self.look_after();
        }
        Ok(())
    }

    fn hear_of_apps(&mut self) -> Result<(), Error> {
        let news = self.life.news()?;
        if news.limit {
            self.keeper.limit_was_hit(Instant::now());
        }
        if news.end {
            self.look_after();
        }
        Ok(())
    }

    fn look_after(&mut self) {
        let done = self.keeper.look_after(Instant::now());
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
            // The name is not to be had.
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
                front: vec![self.cgroup_of(caller.uid, pid)?],
                visible: Vec::new(),
                behind: Vec::new(),
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

    /// Whether anything at all is done for this user now, before it costs anything.
    fn admit(&mut self, uid: u32, only_asks: bool) -> Result<(), Error> {
        if !is_above_all(uid) && !self.rates.allow(uid, Instant::now()) {
            return Err(Error::TooOften);
        }
        match only_asks || self.has_a_say(uid)? {
            true => Ok(()),
            false => Err(Error::NotSeated),
        }
    }

    /// The cgroup of a process that this user may know of.
    fn cgroup_of(&self, uid: u32, pid: u32) -> Result<Cgroup, Error> {
        if is_above_all(uid) {
            return Cgroup::of_process(&self.root, "", pid, SEARCHED_FOR_ROOT);
        }
        let slice = format!("/user.slice/user-{uid}.slice");
        Cgroup::of_process(&self.root, &slice, pid, SEARCHED_FOR_USERS)
    }

    /// What becomes of a request of this user's.
    fn reply(&mut self, uid: u32, request: Request) -> Result<Reply, Error> {
        let now = Instant::now();
        match request {
            Request::Set(mut order) => {
                // A session tells of all windows, and some are others': a terminal for root.
                // The app in front does not stay behind for them.
                order.visible.retain(|it| self.may(uid, &it.cgroup));
                let now_in_front = &self.keeper.grounds().front;
                let concerned = order.front.iter().chain(&order.behind);
                self.permit(uid, concerned.chain(now_in_front))?;
                self.ahead.step_back()?;
                let changes = self.keeper.command(order, now)?;
                self.commander = Some(uid);
                let grounds = self.keeper.grounds().clone();
                Ok(Reply::Set { grounds, changes })
            }
            Request::Status => {
                let mut status = self.keeper.status(now)?;
                let limits = self.limits.iter().flat_map(|it| it.changes());
                status.limits = limits.cloned().collect();
                status.writers = self.ahead.changes().to_vec();
                let told = status.told_of(|cgroup| self.may(uid, cgroup));
                Ok(Reply::Status(Box::new(told)))
            }
            Request::Release => {
                self.permit(uid, self.keeper.grounds().front.iter())?;
                let released = self.keeper.release("said by frontrow fg release", now)?;
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

    /// What cannot be done now may be possible for the next app; status says why.
    fn go_on(&mut self, done: Result<(), Error>) {
        if let Err(error) = done {
            (self.log)(&error.to_string());
        }
    }

    /// With how long it all took: a change of focus that comes late is one that is felt.
    fn write_log(&mut self, woken: Instant) {
        let mut lines = self.keeper.log();
        lines.extend(self.limits.iter_mut().flat_map(DirtyLimits::log));
        lines.extend(self.ahead.log());
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

/// Everything is done the same without.
fn bus(root: &Path, log: &mut dyn FnMut(&str)) -> Option<Bus> {
    Bus::connect(root).unwrap_or_else(|error| {
        log(&format!("no calls by D-Bus: {error}"));
        None
    })
}

/// Everything else is done the same without.
fn limits(root: &Path, log: &mut dyn FnMut(&str)) -> Option<DirtyLimits> {
    match DirtyLimits::start(root, Instant::now()) {
        Ok(limits) => Some(limits),
        Err(error) => {
            log(&format!("no dirty limits for disks: {error}"));
            None
        }
    }
}

/// Users may say what becomes of their own apps; root, and whoever runs the daemon, of all.
fn is_above_all(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

pub(crate) fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
