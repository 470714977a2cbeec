//! `frontrow blame notify`: tells the user of a session of stalls.

use super::{Told, none_noted, time};
use crate::exit::{Exit, Failure};
use crate::iopro::scope::duration;
use doctor::noted::{self, Noted};
use rustix::fs::inotify;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time between two notifications.
const APART: Duration = Duration::from_secs(60);
const SENDER: &str = "notify-send";

#[derive(clap::Args)]
pub(super) struct Options {
    /// Shortest stall to be told of
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    longer_than: Duration,
    #[command(flatten)]
    told: Told,
}

/// Runs the subcommand until a signal ends it.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let file = &options.told.told;
    let changes = changes(file)?;
    let mut known = last(file)?.map(|it| it.number);
    let mut told: Option<Instant> = None;
    loop {
        wait(&changes).map_err(|error| Failure::unreadable(file, &error))?;
        let Some(stall) = last(file)?.filter(|it| known < Some(it.number)) else {
            continue;
        };
        known = Some(stall.number);
        let is_due = told.is_none_or(|it| it.elapsed() >= APART);
        if is_due && Duration::from_nanos(stall.stalled_ns) >= options.longer_than {
            show(&stall)?;
            told = Some(Instant::now());
        }
    }
}

/// Reports of the kernel that the file was written to.
fn changes(file: &Path) -> Result<rustix::fd::OwnedFd, Failure> {
    let failed = |error: rustix::io::Errno| Failure::unreadable(file, &error.into());
    let changes = inotify::init(inotify::CreateFlags::CLOEXEC).map_err(failed)?;
    match inotify::add_watch(&changes, file, inotify::WatchFlags::MODIFY) {
        Ok(_) => Ok(changes),
        Err(rustix::io::Errno::NOENT) => Err(none_noted()),
        Err(error) => Err(failed(error)),
    }
}

/// Sleeps until the file has been written to.
fn wait(changes: &rustix::fd::OwnedFd) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(changes, &mut buffer);
    reader.next()?;
    while !reader.is_buffer_empty() {
        reader.next()?;
    }
    Ok(())
}

fn last(file: &Path) -> Result<Option<Noted>, Failure> {
    let mut stalls = noted::read(file).map_err(|error| Failure::unreadable(file, &error))?;
    Ok(stalls.pop())
}

fn show(stall: &Noted) -> Result<(), Failure> {
    let title = format!("Storage stalled for {}", time(stall.stalled_ns));
    let body = match stall.verdicts.first() {
        Some(verdict) => {
            let to_do = verdict.to_do.as_deref().unwrap_or("sudo frontrow blame");
            format!(
                "{} ({}). What to do: {to_do}",
                verdict.sentence, verdict.confidence
            )
        }
        None => "No task was seen to wait.".to_owned(),
    };
    let mut sender = Command::new(SENDER);
    sender.args(["--app-name=Frontrow", "--icon=drive-harddisk", "--"]);
    let shown = sender.args([&title, &escaped(&body)]).status();
    match shown {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Failure::new(
            Exit::Refused,
            format_args!("the session shows no notifications: {SENDER} ended with {status}"),
        )),
        Err(error) => Err(Failure::new(
            Exit::Unsupported,
            format_args!("cannot run {SENDER}, which package libnotify-bin has: {error}"),
        )),
    }
}

/// A notification's body may have markup, and a program's name as well.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
