//! Events of cgroups with a role: the end of an app, and a limit that was hit.

use crate::cgroup::below;
use crate::watch::{Added, Watch, WatchFlags};
use crate::{Error, Roles};
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// Watches the cgroups of [`Roles`].
#[derive(Debug)]
pub struct Life {
    root: PathBuf,
    watch: Watch<Sign>,
}

/// A watched file or directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Sign {
    /// `cgroup.events` of a foreground or visible cgroup, or the parent directory of the cgroup.
    End(PathBuf),
    /// `memory.events` of a background cgroup. It is watched for one event only: a cgroup that is
    /// always at its limit would keep the daemon running.
    Limit(PathBuf),
}

/// Events since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// A foreground or visible app may have ended.
    pub end: bool,
    /// A background app has hit its limit.
    pub limit: bool,
}

impl Life {
    pub fn new(root: &Path) -> Result<Self, Error> {
        Ok(Life {
            root: root.to_owned(),
            watch: Watch::new()?,
        })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    /// Replaces the watched cgroups; limits are watched only `with_limits`. Returns whether a
    /// foreground or visible cgroup no longer exists.
    pub fn follow(&mut self, roles: &Roles, with_limits: bool) -> Result<bool, Error> {
        let wanted: HashMap<_, _> = signs(roles, with_limits).into_iter().collect();
        self.watch.end(|sign| !wanted.contains_key(sign));
        let mut all_there = true;
        for (sign, flags) in wanted {
            if !self.watch.watches(&sign) {
                let (Sign::End(path) | Sign::Limit(path)) = &sign;
                let path = below(&self.root, &path.to_string_lossy());
                let is_end = matches!(sign, Sign::End(_));
                all_there &= self.watch.add(&path, flags, sign)? != Added::Absent || !is_end;
            }
        }
        Ok(!all_there)
    }

    /// Events since the last call.
    pub fn news(&mut self) -> Result<News, Error> {
        let events = self.watch.events()?;
        let any = |is: fn(&Sign) -> bool| events.list.iter().any(|(sign, ..)| is(sign));
        Ok(News {
            end: events.lost || any(|sign| matches!(sign, Sign::End(_))),
            limit: events.lost || any(|sign| matches!(sign, Sign::Limit(_))),
        })
    }
}

fn signs(roles: &Roles, with_limits: bool) -> Vec<(Sign, WatchFlags)> {
    let mut signs = Vec::new();
    for cgroup in roles.on_screen() {
        let events = cgroup.knob("cgroup.events");
        let above = events.ancestors().nth(2).map(Path::to_owned);
        signs.push((Sign::End(events), WatchFlags::MODIFY));
        let flags = WatchFlags::DELETE | WatchFlags::ONLYDIR;
        signs.extend(above.map(|directory| (Sign::End(directory), flags)));
    }
    let background = roles.background.iter().filter(|_| with_limits);
    signs.extend(background.map(|cgroup| {
        let events = Sign::Limit(cgroup.knob("memory.events"));
        (events, WatchFlags::MODIFY | WatchFlags::ONESHOT)
    }));
    signs
}
