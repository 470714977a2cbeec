//! Focus on Android: the cpuset of the apps on the screen.
//!
//! A cpuset has no events for its members. But the activity manager moves processes by writing to
//! files, and inotify reports these writes as for any file (`fsnotify_modify` in `vfs_write`). It
//! writes processes to `cgroup.procs` and threads, including the main thread, to `tasks` of the new
//! group, so the files of all groups are watched.

use super::Detector;
use crate::android::{self, GROUPS, TOP_APP};
use crate::cgroup::below;
use crate::watch::{Watch, WatchFlags};
use crate::{Cgroup, Error};
use std::fs;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

/// Apps on the screen; several with a split screen.
#[derive(Debug)]
pub struct TopApp {
    root: PathBuf,
    watch: Watch<PathBuf>,
    foreground: Vec<Cgroup>,
}

impl TopApp {
    /// Watches from now on; `None` where there is no such group.
    ///
    /// # Errors
    /// [`Error::Watch`].
    pub fn new(root: &Path) -> Result<Option<Self>, Error> {
        if !android::file(root, TOP_APP, "cgroup.procs").exists() {
            return Ok(None);
        }
        let mut top_app = TopApp {
            root: root.to_owned(),
            watch: Watch::new()?,
            foreground: Vec::new(),
        };
        top_app.watch_groups()?;
        top_app.read();
        Ok(Some(top_app))
    }

    /// The groups are made at boot and stay.
    fn watch_groups(&mut self) -> Result<(), Error> {
        let groups = below(&self.root, GROUPS);
        let entries = fs::read_dir(&groups).into_iter().flatten().flatten();
        for directory in entries.map(|it| it.path()).chain([groups]) {
            for name in ["cgroup.procs", "tasks"] {
                let file = directory.join(name);
                self.watch.add(&file, WatchFlags::MODIFY, file.clone())?;
            }
        }
        Ok(())
    }

    fn read(&mut self) {
        self.foreground = android::apps_in(&self.root, TOP_APP).into_iter().collect();
    }
}

impl Detector for TopApp {
    fn name(&self) -> &'static str {
        "Android (the top-app cpuset)"
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.watch.fd()
    }

    fn look(&mut self) -> Result<bool, Error> {
        let events = self.watch.events()?;
        let any = events.lost || !events.list.is_empty();
        if any {
            self.read();
        }
        Ok(any)
    }

    fn foreground(&self) -> Vec<Cgroup> {
        self.foreground.clone()
    }
}
