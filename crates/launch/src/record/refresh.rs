//! Refresh of an aged profile during an ordinary start.
//!
//! Tracing would make a user's start slow, and change what the app may do. The app's processes are
//! therefore sampled from outside, a few times while it starts: the bytes that they have read, and
//! the pages of files that they have mapped.
//!
//! A file that is read and closed between two samples is missed. A changed file keeps its
//! predecessor's pages, up to its new end, unless it is mapped.

use super::touched::{Touched, now};
use crate::profile::{PAGE_BYTES, Pages, Profile, ProfiledFile, union};
use crate::working_set::WorkingSet;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A profile is old when at least one page in this many is of a changed file.
const OLD: u64 = 8;

/// A profile covers too little when the app reads at least one page for this many pages of the
/// profile.
const TOO_LITTLE: u64 = 2;

/// Pauses between samples; their sum of ten seconds is the length of a start, as in a recording.
const PAUSES_MS: [i32; 7] = [100, 200, 400, 800, 1600, 3200, 3700];

/// The app's first process, which need not be a child of this one.
#[derive(Debug)]
pub struct App {
    id: u32,
    /// The pidfd, which tells when the process ends and guards against reuse of its id.
    process: OwnedFd,
}

/// Observations of a start.
#[derive(Default)]
struct Seen {
    touched: Touched,
    read_bytes: u64,
}

impl App {
    /// The process with this id; None if it has ended.
    pub fn of(id: u32) -> Option<App> {
        // SAFETY: the call takes plain numbers.
        let process = unsafe { libc::syscall(libc::SYS_pidfd_open, id, 0) };
        (process >= 0).then(|| App {
            id,
            // SAFETY: the kernel just gave it to us.
            process: unsafe { OwnedFd::from_raw_fd(process as i32) },
        })
    }

    /// Samples the start until it is over, and returns the new profile. None if `profile` is
    /// neither old nor covers too little. `set` has its opened files, which are closed at once.
    pub fn refreshed(&self, profile: &Profile, set: WorkingSet) -> Option<Profile> {
        let is_old = (set.profiled_pages - set.valid_pages()) * OLD >= set.profiled_pages;
        let much = set.profiled_pages * PAGE_BYTES / TOO_LITTLE;
        let valid: Vec<PathBuf> = set.files.into_iter().map(|it| it.path).collect();
        let mut seen = Seen::default();
        for pause in PAUSES_MS {
            if !self.runs_for(pause) {
                break;
            }
            seen.look(self.id, is_old, much);
        }
        let is_due = is_old || seen.read_bytes > much;
        let new = is_due.then(|| profile_of(profile, &valid, seen.touched))?;
        // If the app has moved away, the old profile is of no use.
        (!new.files.is_empty()).then_some(new)
    }

    fn runs_for(&self, milliseconds: i32) -> bool {
        let mut poll = libc::pollfd {
            fd: self.process.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure is there.
        unsafe { libc::poll(&mut poll, 1, milliseconds) == 0 }
    }
}

impl Seen {
    fn look(&mut self, app: u32, is_old: bool, much: u64) {
        let mut family = vec![app];
        let mut next = 0;
        while let Some(&id) = family.get(next) {
            family.extend(children(id));
            next += 1;
        }
        let read_bytes = family.iter().filter_map(|&id| read_bytes(id)).sum();
        self.read_bytes = self.read_bytes.max(read_bytes);
        if is_old || self.read_bytes > much {
            for id in family {
                self.touched.mapped(id as i32, None);
            }
        }
    }
}

/// Children of all threads of a process; empty for one that has ended.
fn children(id: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{id}/task")).into_iter();
    let lists = threads.flatten().flatten().filter_map(|thread| {
        let list = fs::read_to_string(thread.path().join("children")).ok()?;
        Some(list.split(' ').filter_map(|it| it.parse().ok()).collect())
    });
    lists.flat_map(|list: Vec<u32>| list).collect()
}

/// Bytes that the process and its ended children read from disks.
fn read_bytes(id: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{id}/io")).ok()?;
    let number = text.lines().find_map(|it| it.strip_prefix("read_bytes: "));
    number?.parse().ok()
}

/// The old profile with changed files updated, and the observed pages added.
fn profile_of(old: &Profile, valid: &[PathBuf], touched: Touched) -> Profile {
    let (seen, _) = touched.now();
    let find = |path: &Path| seen.iter().find(|it| it.path == path);
    let known =
        old.files.iter().filter_map(
            |file| match (valid.contains(&file.path), find(&file.path)) {
                (true, None) => Some(file.clone()),
                (true, Some(seen)) => Some(ProfiledFile {
                    pages: union(&file.pages, &seen.pages),
                    ..file.clone()
                }),
                (false, Some(seen)) => Some(seen.clone()),
                (false, None) => {
                    let new = now(&file.path, |end| within(&file.pages, end)).ok()??;
                    let late = file.only(new.pages.clone()).late;
                    Some(ProfiledFile { late, ..new })
                }
            },
        );
    let mut files: Vec<ProfiledFile> = known.collect();
    let is_new = |it: &&ProfiledFile| old.files.iter().all(|file| file.path != it.path);
    files.extend(seen.iter().filter(is_new).cloned());
    let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    // A device without any of the files is left out.
    let is_used = |device| files.iter().any(|it| it.identity.device == device);
    Profile {
        command: old.command.clone(),
        recorded_s: since_1970.map_or(0, |it| it.as_secs()),
        runs: 1,
        timing: old.timing,
        measured: old.measured,
        metadata: old
            .metadata
            .iter()
            .filter(|it| is_used(it.device))
            .cloned()
            .collect(),
        files,
    }
}

/// The pages before `end`.
fn within(pages: &[Pages], end: u64) -> Vec<Pages> {
    let before = pages.iter().filter(|it| it.first < end);
    let cut = before.map(|it| Pages {
        first: it.first,
        count: it.count.min(end - it.first),
    });
    cut.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;
    use crate::profile::Timing;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    fn pages(first: u64, count: u64) -> Pages {
        Pages { first, count }
    }

    #[test]
    fn a_file_that_has_shrunk_keeps_the_pages_that_are_left() {
        let before = [pages(0, 2), pages(4, 4), pages(10, 1)];
        assert_eq!(within(&before, 6), [pages(0, 2), pages(4, 2)]);
        assert_eq!(within(&before, 11), before);
    }

    #[test]
    fn a_process_is_seen_with_its_children_and_until_it_ends() {
        let mut shell = Command::new("sh")
            .args(["-c", "cat; true"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let app = App::of(shell.id()).unwrap();
        let mut seen = Seen::default();
        let cat = fs::canonicalize("/bin/cat").unwrap();
        while !seen.touched.files.contains_key(&cat) {
            assert!(app.runs_for(1));
            seen.look(app.id, true, u64::MAX);
        }
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert!(!app.runs_for(1000));
    }

    #[test]
    fn files_that_are_gone_drop_out_and_valid_ones_stay() {
        let gone = ProfiledFile {
            path: PathBuf::from("/nonexistent/file"),
            identity: Identity {
                device: 1,
                inode: 2,
                generation: 0,
                size_bytes: PAGE_BYTES,
                mtime_s: 0,
                mtime_ns: 0,
            },
            pages: vec![pages(0, 1)],
            late: Default::default(),
        };
        let old = Profile {
            command: "app".to_owned(),
            recorded_s: 1,
            runs: 2,
            timing: Timing::Beside,
            measured: None,
            files: vec![gone],
            metadata: Vec::new(),
        };
        let new = profile_of(&old, &[], Touched::default());
        assert!(new.files.is_empty() && new.timing == Timing::Beside);
        assert!(new.recorded_s > 1);
    }
}
