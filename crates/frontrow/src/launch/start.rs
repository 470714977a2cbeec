//! `frontrow launch APP`.

use super::exec::become_app;
use super::{latency, profile_name};
use crate::exit::Failure;
use ::launch::WorkingSet;
use ::launch::metadata;
use ::launch::prepare::{load_all, prepare};
use ::launch::profile::{Profile, Store, Timing};
use ::launch::record::refresh::App;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};

/// Loads, and becomes the app, whatever came of the loading.
pub fn run(
    name: Option<String>,
    timing: Option<Timing>,
    command: &[OsString],
) -> Result<(), Failure> {
    let found = profile_name(name.as_deref(), &command[0]).and_then(|name| {
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
        // Asked before there is a helper: a warm start is not to pay for one.
        let blocks = metadata::missing(&self.profile);
        if blocks.is_empty() && WorkingSet::is_warm(&self.profile) {
            return;
        }
        let app = std::process::id();
        match start_helper(|sent| self.help(blocks, sent, App::of(app))) {
            // It closes its end when the app may start, and when it dies.
            Ok(mut sent) => {
                let _ = sent.read(&mut [0]);
            }
            Err(error) => eprintln!("frontrow: nothing is loaded: {error}"),
        }
    }

    /// What the helper does; dropping `sent` lets the app start.
    fn help(&self, blocks: Vec<metadata::Missing>, sent: File, app: Option<App>) {
        allow_open_files();
        let latency = |device: &str| latency(&self.store, device);
        let plans: Vec<_> = blocks.iter().map(|it| it.plan(latency)).collect();
        let plans_of = blocks.iter().zip(&plans);
        // What is not sent for is read when a file is opened.
        let on_their_way: Vec<_> = plans_of.map(|(it, plan)| it.send(plan)).collect();
        let set = WorkingSet::open_and_begin(&self.profile);
        self.load_set(&set, sent);
        drop(on_their_way);
        drop(blocks);
        if let Some(profile) = app.and_then(|it| it.refreshed(&self.profile, set))
            && let Err(error) = self.store.write(&self.name, &profile)
        {
            eprintln!("frontrow: the profile is old and stays so: {error}");
        }
    }

    fn load_set(&self, set: &WorkingSet, sent: File) {
        let (valid, missing) = (set.valid_pages(), set.missing_pages());
        if valid * 2 < set.profiled_pages {
            eprintln!(
                "frontrow: the profile of {} is not used, {} of its {} files have changed: it is brought up to date while the app starts",
                self.profile.command,
                set.dropped.len(),
                self.profile.files.len()
            );
            return;
        }
        // Most of it is there: a few reads are the app's own to make.
        if missing * 8 < valid {
            return;
        }
        let plans = prepare(set, |device| latency(&self.store, device));
        // From here on the loader is ahead of an app that needs its files in their order.
        // Earlier, the app would read in small pieces what the loader is about to.
        let mut sent = Some(sent).filter(|_| self.timing == Timing::Before);
        if let Err(error) = load_all(set, &plans, || drop(sent.take())) {
            eprintln!("frontrow: {error}");
        }
    }
}

/// A process that is nobody's child, so that the app has none it does not know of. It
/// survives this program's exec, which cancels what its own ring still has on the way.
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
    // SAFETY: room for the two descriptors, which nobody else has.
    match unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } {
        0 => Ok(unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A profile may have more files than a process may open by default. The helper's limit
/// is not the app's.
fn allow_open_files() {
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
    // What the app writes to a pipe ends with the app and not with the helper.
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        for stream in [0, 1] {
            // SAFETY: both descriptors are open.
            unsafe { libc::dup2(nothing.as_raw_fd(), stream) };
        }
    }
}
