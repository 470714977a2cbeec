//! What happens to those who are in front and behind: the end of an app, and a limit that is
//! hit.

use crate::cgroup::below;
use crate::watch::{Added, Watch, WatchFlags};
use crate::{Error, Grounds};
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// Watches over the cgroups of [`Grounds`].
#[derive(Debug)]
pub struct Life {
    root: PathBuf,
    watch: Watch<Sign>,
}

/// A file or directory that tells something.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Sign {
    /// `cgroup.events` of somebody who is seen, or the directory that the cgroup is in.
    End(PathBuf),
    /// `memory.events` of somebody behind. It tells once: who is at the limit all the time
    /// would else have the daemon run all the time.
    Limit(PathBuf),
}

/// What may have happened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// An app that is seen may have ended.
    pub end: bool,
    /// An app behind has hit its limit.
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

    /// Watches over these and no others from now on; over limits only `with_limits`. Whether
    /// one of those that are seen is gone already.
    pub fn follow(&mut self, grounds: &Grounds, with_limits: bool) -> Result<bool, Error> {
        let wanted: HashMap<_, _> = signs(grounds, with_limits).into_iter().collect();
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

    /// What has happened by now.
    pub fn news(&mut self) -> Result<News, Error> {
        let events = self.watch.events()?;
        let any = |is: fn(&Sign) -> bool| events.list.iter().any(|(sign, ..)| is(sign));
        Ok(News {
            end: events.lost || any(|sign| matches!(sign, Sign::End(_))),
            limit: events.lost || any(|sign| matches!(sign, Sign::Limit(_))),
        })
    }
}

fn signs(grounds: &Grounds, with_limits: bool) -> Vec<(Sign, WatchFlags)> {
    let mut signs = Vec::new();
    for cgroup in grounds.seen() {
        let events = cgroup.knob("cgroup.events");
        let above = events.ancestors().nth(2).map(Path::to_owned);
        signs.push((Sign::End(events), WatchFlags::MODIFY));
        let flags = WatchFlags::DELETE | WatchFlags::ONLYDIR;
        signs.extend(above.map(|directory| (Sign::End(directory), flags)));
    }
    let behind = grounds.behind.iter().filter(|_| with_limits);
    signs.extend(behind.map(|cgroup| {
        let events = Sign::Limit(cgroup.knob("memory.events"));
        (events, WatchFlags::MODIFY | WatchFlags::ONESHOT)
    }));
    signs
}
