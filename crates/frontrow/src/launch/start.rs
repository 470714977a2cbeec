//! `frontrow launch APP`: loads the pages of an app's start, then starts it.

use super::exec::become_app;
use super::{latency, profile_name};
use crate::exit::Failure;
use ::launch::image::Images;
use ::launch::metadata;
use ::launch::prepare::{DevicePlan, prepare, send_all};
use ::launch::profile::{Profile, ProfiledFile, Store, Timing};
use ::launch::record::refresh::App;
use ::launch::unpack::Unpackers;
use ::launch::{Opened, WorkingSet};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;
use std::thread;

/// Number of threads that look up files.
const LOOKERS: usize = 4;

/// Loads the pages, then replaces this process by the app, whatever the result of loading.
pub fn run(
    name: Option<String>,
    timing: Option<Timing>,
    command: &[OsString],
) -> Result<(), Failure> {
    let found = profile_name(name.as_deref(), command).and_then(|name| {
        let store = Store::of_user()?;
        let profile = store.read(&name)?;
        Ok(Start {
            timing: timing.unwrap_or(profile.timing),
            store,
            name,
            profile,
        })
    });
    match found {
        Ok(start) => start.load(),
        Err(failure) => eprintln!("frontrow: {}", failure.sentence),
    }
    Err(become_app(command))
}

/// A start of an app that has a profile.
struct Start {
    store: Store,
    name: String,
    profile: Profile,
    timing: Timing,
}

impl Start {
    fn load(&self) {
        if self.timing == Timing::Never {
            return;
        }
        // Checked before the helper is forked: a warm start need not pay for one.
        let blocks = metadata::missing(&self.profile);
        let images = Images::of(&self.profile);
        if blocks.is_empty() && WorkingSet::is_warm(&self.profile, &images) {
            return;
        }
        let app = std::process::id();
        match start_helper(|sent| self.help(blocks, &images, sent, App::of(app))) {
            // The helper closes its end when the app may start, or when it dies.
            Ok(mut sent) => {
                let _ = sent.read(&mut [0]);
            }
            Err(error) => eprintln!("frontrow: nothing is loaded: {error}"),
        }
    }

    /// Work of the helper; dropping `sent` lets the app start.
    fn help(&self, blocks: Vec<metadata::Missing>, images: &Images, sent: File, app: Option<App>) {
        allow_open_files();
        leave_the_streams();
        let latency = |device: &str| latency(&self.store, device);
        let plans: Vec<_> = blocks.iter().map(|it| it.plan(latency)).collect();
        let plans_of = blocks.iter().zip(&plans);
        // Other blocks are read when a file is opened.
        let on_their_way: Vec<_> = plans_of.map(|(it, plan)| it.send(plan)).collect();
        if !metadata::is_in_reach(&self.profile) {
            self.look_up_together();
        }
        let set = self.load_all(&images.steps(&self.profile), sent);
        drop(on_their_way);
        drop(blocks);
        if let Some(profile) = app.and_then(|it| it.refreshed(&self.profile, set))
            && let Err(error) = self.store.write(&self.name, &profile)
        {
            eprintln!("frontrow: the profile is old and stays so: {error}");
        }
    }

    /// Looks up all files in parallel. A lookup reads the file system's blocks one after the other;
    /// several lookups wait for the device together.
    fn look_up_together(&self) {
        for first in 0..LOOKERS {
            let paths = self.profile.files.iter().skip(first).step_by(LOOKERS);
            let paths: Vec<PathBuf> = paths.map(|it| it.path.clone()).collect();
            // The result does not matter: the inode is cached now.
            thread::spawn(move || paths.iter().for_each(|it| drop(fs::symlink_metadata(it))));
        }
    }

    /// Loads what the start needs, in order. What the first part needs has changed where it is
    /// hardly worth to load it.
    fn load_all(&self, steps: &[Vec<ProfiledFile>], waiting: File) -> WorkingSet {
        let Some((first, later)) = steps.split_first() else {
            return WorkingSet::open(&[]);
        };
        let first = WorkingSet::open_and_begin(first);
        if first.valid_pages() * 2 < first.profiled_pages {
            eprintln!(
                "frontrow: the profile of {} is not used, {} of the {} files that it needs first have changed: it is brought up to date while the app starts",
                self.profile.command,
                first.dropped.len(),
                first.dropped.len() + first.files.len()
            );
            drop(waiting);
            return first.with(WorkingSet::open(&later.concat()));
        }
        let mut unpackers = None;
        let set = self.load_steps(first, later, &mut unpackers, Some(waiting));
        if let Some(unpackers) = unpackers {
            unpackers.finish();
        }
        set
    }

    /// Submits the reads of a step, and opens the files of the next one meanwhile.
    fn load_steps(
        &self,
        set: WorkingSet,
        later: &[Vec<ProfiledFile>],
        unpackers: &mut Option<Unpackers>,
        waiting: Option<File>,
    ) -> WorkingSet {
        let (plans, packed) = self.plan(&set);
        let sent = send_all(&set, &plans);
        if !packed.is_empty() {
            unpackers.get_or_insert_with(Unpackers::start).read(packed);
        }
        let waiting = waiting.filter(|_| self.timing == Timing::Before);
        let rest = match (&sent, later.split_first()) {
            (Ok(_), Some((next, later))) => {
                Some(self.load_steps(WorkingSet::open(next), later, unpackers, waiting))
            }
            (Ok(_), None) => {
                drop(waiting);
                None
            }
            (Err(error), _) => {
                eprintln!("frontrow: {error}");
                Some(WorkingSet::open(&later.concat()))
            }
        };
        drop(sent);
        rest.into_iter().fold(set, WorkingSet::with)
    }

    /// The reads of each device, and the files to unpack. Empty if most pages are cached: the app
    /// reads the rest itself.
    fn plan<'a>(&self, set: &'a WorkingSet) -> (Vec<DevicePlan>, Vec<&'a Opened>) {
        if set.missing_pages() * 8 < set.valid_pages() {
            return Default::default();
        }
        let places = set.places();
        let plans = prepare(places.devices, |device| latency(&self.store, device));
        (plans, places.packed)
    }
}

/// Starts the helper as an orphan, so that the app has no unknown child. It survives this program's
/// exec, which would cancel requests of its own ring.
fn start_helper(work: impl FnOnce(File)) -> io::Result<File> {
    let (reader, writer) = pipe()?;
    io::stdout().flush()?;
    // SAFETY: this program has one thread, so the child has all there is.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(reader);
            // SAFETY: as above.
            if unsafe { libc::fork() } == 0 {
                work(writer);
            }
            // SAFETY: ends a child without the parent's exit handlers.
            unsafe { libc::_exit(0) }
        }
        child => {
            drop(writer);
            // SAFETY: waits for our own child, which ends at once.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            Ok(reader)
        }
    }
}

fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: room for the two descriptors.
    match unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } {
        // SAFETY: just made, and nobody else has them.
        0 => Ok(unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Closes the streams that the helper has inherited.
fn leave_the_streams() {
    // A reader of the app's pipe must not wait for the helper.
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        for stream in [0, 1] {
            // SAFETY: both descriptors are open.
            unsafe { libc::dup2(nothing.as_raw_fd(), stream) };
        }
    }
}

/// Raises this process's limit of open files, since a profile may have more.
pub(super) fn allow_open_files() {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: writes to a local, then reads it. Without more, files beyond are left out.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}
