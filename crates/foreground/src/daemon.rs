//! The daemon: waits for detectors, commands and the end of apps, and has the keeper act.

use crate::bus::{Bus, Caller, Method};
use crate::detect::{Detector, Scopes, TopApp};
use crate::keeper::{Keeper, Order};
use crate::life::Life;
use crate::socket::{Reply, Request, Server};
use crate::{Cgroup, Error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What `frontrow fg daemon` runs.
pub struct Daemon<'a> {
    root: PathBuf,
    keeper: Keeper,
    detectors: Vec<Box<dyn Detector>>,
    life: Life,
    server: Server,
    /// None where there is none, or none any more.
    bus: Option<Bus>,
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
            detectors,
            life: Life::new(root)?,
            server,
            bus: bus(root, log),
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
        served.and(released.map(drop))
    }

    fn serve(&mut self, stop: BorrowedFd<'_>) -> Result<(), Error> {
        let mut woken = Instant::now();
        self.see();
        loop {
            self.follow()?;
            self.write_log(woken);
            if self.wait(stop)? {
                return Ok(());
            }
            woken = Instant::now();
            let mut anything = false;
            for detector in &mut self.detectors {
                anything |= detector.look()?;
            }
            if anything {
                self.see();
            }
            self.hear_of_apps()?;
            self.answer();
            self.answer_bus();
            let ticked = self.keeper.tick(Instant::now());
            self.go_on(ticked);
        }
    }

    /// Sleeps until there is something to do; whether that is to stop.
    fn wait(&self, stop: BorrowedFd<'_>) -> Result<bool, Error> {
        let detectors = self.detectors.iter().map(|it| it.fd());
        let mut fds: Vec<_> = [stop, self.life.fd()]
            .into_iter()
            .chain(detectors)
            .chain(self.server.fds())
            .chain(self.bus.iter().map(Bus::fd))
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let due = self.keeper.due();
        let timeout = due.map(|due| timespec(due.saturating_duration_since(Instant::now())));
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(!fds[0].revents().is_empty()),
            Err(errno) => Err(Error::Watch {
                path: PathBuf::from("events"),
                source: errno.into(),
            }),
        }
    }

    /// All that has happened is seen together: of an app that loses the focus and another
    /// that gets it, the second is what counts.
    fn see(&mut self) {
        let mut front = Vec::new();
        let mut names = Vec::new();
        for detector in &self.detectors {
            let seen = detector.front();
            if !seen.is_empty() {
                names.push(detector.name());
            }
            front.extend(seen);
        }
        let done = self.keeper.sees(front, &names.join(", "), Instant::now());
        self.go_on(done);
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
                .reply(peer.uid, request)
                .unwrap_or_else(|error| Reply::Failed {
                    kind: error.kind(),
                    sentence: error.to_string(),
                });
            peer.reply(&reply);
        }
    }

    fn answer_bus(&mut self) {
        let Some(mut bus) = self.bus.take() else {
            return;
        };
        match self.serve_bus(&mut bus) {
            Ok(()) => self.bus = Some(bus),
            Err(error) => (self.log)(&format!("no more calls by D-Bus: {error}")),
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
        let request = match method {
            Method::SetForeground(pid) => Request::Set(Order {
                front: vec![Cgroup::resolve(&self.root, &pid.to_string())?],
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
                let changes = self.keeper.command(order, now)?;
                let grounds = self.keeper.grounds().clone();
                Ok(Reply::Set { grounds, changes })
            }
            Request::Status => Ok(Reply::Status(self.keeper.status(now)?)),
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
        let own = rustix::process::geteuid().as_raw();
        may(uid, own, || cgroup.owner(&self.root))
    }

    /// What cannot be done now may be possible for the next app; status says why.
    fn go_on(&mut self, done: Result<(), Error>) {
        if let Err(error) = done {
            (self.log)(&error.to_string());
        }
    }

    /// With how long it all took: a change of focus that comes late is one that is felt.
    fn write_log(&mut self, woken: Instant) {
        let lines = self.keeper.log();
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

/// Users may say what becomes of their own apps; root, and whoever runs the daemon, of all.
fn may(uid: u32, own: u32, owner: impl Fn() -> Option<u32>) -> bool {
    uid == 0 || uid == own || owner() == Some(uid)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_a_say_in_their_own_apps_only() {
        for (uid, own, owner, expected) in [
            (0, 0, Some(1000), true),
            (0, 0, None, true),
            (1000, 1000, Some(0), true),
            (1000, 0, Some(1000), true),
            (1000, 0, Some(0), false),
            (1001, 0, Some(1000), false),
            (1000, 0, None, false),
        ] {
            assert_eq!(may(uid, own, || owner), expected, "{uid} {owner:?}");
        }
    }
}
