//! The daemon: waits for detectors, commands and the end of apps, and has the keeper act.

use crate::detect::{Detector, Scopes};
use crate::keeper::Keeper;
use crate::life::Life;
use crate::socket::{Peer, Reply, Request, Server};
use crate::{Cgroup, Error, Grounds};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
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
        Ok(Daemon {
            root: root.to_owned(),
            keeper,
            detectors: vec![Box::new(Scopes::new(root)?)],
            life: Life::new(root)?,
            server,
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
        self.see();
        let mut woken = Instant::now();
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
                .reply(&peer, request)
                .unwrap_or_else(|error| Reply::Failed {
                    kind: error.kind(),
                    sentence: error.to_string(),
                });
            peer.reply(&reply);
        }
    }

    fn reply(&mut self, peer: &Peer, request: Request) -> Result<Reply, Error> {
        let now = Instant::now();
        match request {
            Request::Set(order) => {
                let now_in_front = &self.keeper.grounds().front;
                let concerned = order.front.iter().chain(&order.behind);
                self.permit(peer, concerned.chain(now_in_front))?;
                let changes = self.keeper.command(order, now)?;
                let Grounds { front, behind } = self.keeper.grounds().clone();
                Ok(Reply::Set {
                    front,
                    behind,
                    changes,
                })
            }
            Request::Status => Ok(Reply::Status(self.keeper.status(now)?)),
            Request::Release => {
                self.permit(peer, self.keeper.grounds().front.iter())?;
                let released = self.keeper.release("said by frontrow fg release", now)?;
                Ok(Reply::Released(released))
            }
        }
    }

    fn permit<'b>(
        &self,
        peer: &Peer,
        cgroups: impl Iterator<Item = &'b Cgroup>,
    ) -> Result<(), Error> {
        let own = rustix::process::geteuid().as_raw();
        let owner = |cgroup: &Cgroup| cgroup.owner(&self.root);
        permit(peer.uid, own, cgroups, owner)
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

/// Users may say what becomes of their own apps; root, and whoever runs the daemon, of all.
fn permit<'a>(
    uid: u32,
    own: u32,
    mut cgroups: impl Iterator<Item = &'a Cgroup>,
    owner: impl Fn(&Cgroup) -> Option<u32>,
) -> Result<(), Error> {
    if uid == 0 || uid == own {
        return Ok(());
    }
    match cgroups.find(|cgroup| owner(cgroup) != Some(uid)) {
        Some(other) => Err(Error::NotYours(other.path().to_owned())),
        None => Ok(()),
    }
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
        let [own, other] = ["/own", "/other"].map(|it| Cgroup::new(it.to_owned()));
        let owner = |cgroup: &Cgroup| (cgroup.path() == "/own").then_some(1000);
        let permit = |uid, cgroups: &[&Cgroup]| permit(uid, 0, cgroups.iter().copied(), owner);
        assert!(permit(0, &[&own, &other]).is_ok());
        assert!(permit(1000, &[&own]).is_ok());
        assert!(permit(1000, &[]).is_ok());
        assert!(matches!(
            permit(1000, &[&own, &other]),
            Err(Error::NotYours(_))
        ));
        assert!(matches!(permit(1001, &[&own]), Err(Error::NotYours(_))));
    }
}
