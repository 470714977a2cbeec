//! `frontrow status`: one screen on all of it.

use super::disks::{LeftOut, against_scheduler, choose};
use super::record::Record;
use super::{DAEMON, FOLLOWER, Place, systemd};
use crate::exit::Failure;
use crate::print::{json_line, plain, print_text};
use crate::sched::failure;
use clap::Args;
use foreground::{Helped, Reply, Request};
use module::sched::taken::{self, Taken};
use module::sched::{self, Error, SCHEDULER, boot, hour};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use sys::device::Device;
use systemd::Whose;

/// Show what is on, whom it helps, and who took a disk away
///
/// Shows each disk, and what its scheduler did in the last hour. Shows the app in the foreground and how
/// that is known, and what is left out and why. For more of each there are `frontrow sched status` and
/// `frontrow fg status`.
#[derive(Args)]
pub struct Status {
    #[command(flatten)]
    place: Place,
}

/// A disk that gains by the scheduler.
struct Disk {
    name: String,
    status: sched::Status,
    /// What it did in the last hour; None without the scheduler.
    hour: Option<hour::Hour>,
    /// Who took it since the machine started.
    taken: Vec<Taken>,
}

/// Prints the screen.
pub fn run(arguments: Status) -> Result<(), Failure> {
    arguments.place.is_all("frontrow sched status")?;
    let root = &arguments.place.sysroot;
    let is_on = Record::read(root)?.is_some();
    let all = choose(root)?;
    let taken = taken::all(root).map_err(failure)?;
    let disks = all.chosen.iter().map(|it| look(root, it, &taken));
    let disks = disks.collect::<Result<Vec<_>, Error>>().map_err(failure)?;
    let mut left_out = all.left_out;
    if let Some(error) = against_scheduler(root)? {
        left_out.insert(0, LeftOut::new("the scheduler", error));
    } else if boot::is_without(root) {
        left_out.insert(0, LeftOut::new("the scheduler", Error::BootFailed));
    }
    let front = front(root);
    if arguments.place.json {
        let value = in_json(is_on, &disks, &left_out, &front);
        return print_text(&(json_line(&value) + "\n"));
    }
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now_s.map_or(0, |it| it.as_secs());
    print_text(&plain(&in_words(
        root, is_on, &disks, &left_out, &front, now_s,
    )))
}

fn look(root: &Path, device: &Device, taken: &[Taken]) -> Result<Disk, Error> {
    let sequence = device.sequence()?;
    let status = sched::status(root, device)?;
    let counters = status.counters.as_ref();
    let hour = counters.map(|it| hour::last_hour(root, device, it));
    let is_its = |it: &&Taken| it.disk == device.name() && it.sequence == sequence;
    Ok(Disk {
        name: device.name().to_owned(),
        hour: hour.transpose()?,
        taken: taken.iter().filter(is_its).cloned().collect(),
        status,
    })
}

/// The daemon's word; its error in words if it does not answer, None if it does not run.
fn front(root: &Path) -> Option<Result<Box<foreground::Status>, String>> {
    match foreground::ask(root, &Request::Status) {
        Ok(Some(Reply::Status(status))) => Some(Ok(status)),
        Ok(None) => None,
        Ok(Some(_)) => Some(Err(foreground::Error::Garbled.to_string())),
        Err(error) => Some(Err(error.to_string())),
    }
}

fn in_words(
    root: &Path,
    is_on: bool,
    disks: &[Disk],
    left_out: &[LeftOut],
    front: &Option<Result<Box<foreground::Status>, String>>,
    now_s: u64,
) -> String {
    let mut lines = vec![
        match is_on {
            true => "Frontrow is on: `sudo frontrow off` undoes it.",
            false => "Frontrow is off: `sudo frontrow on` switches it on.",
        }
        .to_owned(),
    ];
    lines.extend(disks.iter().map(|it| it.in_words(is_on)));
    for disk in disks {
        lines.extend(disk.taken.iter().map(|it| taken_in_words(it, now_s)));
    }
    lines.extend(front_in_words(front));
    if is_on && systemd::runs(root) && !systemd::is_enabled(Whose::System, DAEMON) {
        lines.push(format!(
            "Somebody has disabled {DAEMON} since: `sudo frontrow on` enables it."
        ));
    }
    if is_on && systemd::runs(root) && !systemd::is_enabled(Whose::AllUsers, FOLLOWER) {
        lines.push(format!(
            "Somebody has disabled {FOLLOWER} since: `sudo frontrow on` enables it."
        ));
    }
    lines.extend(left_out.iter().map(|it| format!("Left out: {it}")));
    lines.join("\n") + "\n"
}

impl Disk {
    fn in_words(&self, is_on: bool) -> String {
        let Disk { name, status, .. } = self;
        let scheduler = &status.scheduler;
        match &self.hour {
            Some(hour) => format!("{name}: frontrow; {}", helped(hour)),
            None if !status.changes.is_empty() => {
                format!("{name}: {scheduler}, which somebody set after frontrow")
            }
            None if is_on => format!("{name}: {scheduler}, without the frontrow scheduler"),
            None => format!("{name}: {scheduler}"),
        }
    }
}

fn helped(hour: &hour::Hour) -> String {
    let waits = hour.counters.all_waits();
    let period = match hour.seconds {
        None => "since it was set".to_owned(),
        Some(seconds) => format!("in the last {}", time(seconds)),
    };
    if waits.waits == 0 {
        return format!("{period} nobody waited on a background write");
    }
    format!(
        "{period} {} waits on background writes, {} of them shortened, {} in the device already",
        waits.waits,
        waits.boosted + waits.pending_matched,
        waits.in_device
    )
}

fn taken_in_words(taken: &Taken, now_s: u64) -> String {
    let Taken {
        disk,
        scheduler,
        by,
        at_s,
        times,
        left,
        ..
    } = taken;
    let often = match times {
        1 => String::new(),
        more => format!(" ({more} times)"),
    };
    let then = match left {
        true => "and it is left so: `sudo frontrow on` takes it back",
        false => "and it was taken back",
    };
    format!(
        "{disk} was given {scheduler} at {}, {} ago{often}, by {by}, {then}",
        clock(*at_s),
        time(now_s.saturating_sub(*at_s)),
    )
}

fn front_in_words(front: &Option<Result<Box<foreground::Status>, String>>) -> Vec<String> {
    let status = match front {
        None => return vec!["Foreground: unknown, as frontrowd does not run".to_owned()],
        Some(Err(error)) => return vec![format!("Foreground: unknown: {error}")],
        Some(Ok(status)) => status,
    };
    let why = sys::knobs::shown(&status.why);
    let apps: Vec<_> = status
        .foreground
        .iter()
        .map(|it| sys::knobs::shown(it.path()))
        .collect();
    let since = status.since_s.map(|it| format!(" for {}", time(it)));
    let since = since.unwrap_or_default();
    let mut lines = vec![match apps.is_empty() {
        true => format!("Foreground: none{since}: {why}"),
        false => format!(
            "Foreground: {}{since}: {why}; {} apps are in the background",
            apps.join(", "),
            status.background.len()
        ),
    }];
    lines.extend(helped_in_words(&status.helped));
    let limited = status.limits.len() + status.writers.len();
    if limited > 0 {
        lines.push(format!(
            "Write limits: {limited} settings are in force (`frontrow fg status` shows them)"
        ));
    }
    lines
}

/// The apps that were the foreground while most waits were shortened.
fn helped_in_words(helped: &[Helped]) -> Option<String> {
    const MOST: usize = 5;
    let helped: Vec<_> = helped.iter().filter(|it| it.waits > 0).collect();
    let (first, rest) = helped.split_at(MOST.min(helped.len()));
    let each = first.iter().map(|it| {
        format!(
            "{} {} of {} ({} in the foreground)",
            sys::knobs::shown(&it.app),
            it.shortened,
            it.waits,
            time(it.foreground_ms / 1000)
        )
    });
    let each: Vec<_> = each.collect();
    let more = match rest.len() {
        0 => String::new(),
        more => format!("; {more} more: `frontrow status --json`"),
    };
    let begin = "Waits shortened in the last hour, by the app in the foreground meanwhile";
    (!each.is_empty()).then(|| format!("{begin}: {}{more}", each.join(", ")))
}

fn in_json(
    is_on: bool,
    disks: &[Disk],
    left_out: &[LeftOut],
    front: &Option<Result<Box<foreground::Status>, String>>,
) -> Value {
    let disk = |it: &Disk| {
        let hour = it.hour.as_ref().map(|hour| {
            let waits = hour.counters.all_waits();
            json!({
                "seconds": hour.seconds,
                "waits": waits.waits,
                "shortened": waits.boosted + waits.pending_matched,
                "in_device": waits.in_device,
                "wait_ns": waits.wait_ns,
            })
        });
        json!({
            "device": it.name,
            "scheduler": it.status.scheduler,
            "has_frontrow": it.status.scheduler == SCHEDULER,
            "hour": hour,
            "taken": it.taken,
        })
    };
    let front = front.as_ref().and_then(|it| it.as_ref().ok());
    json!({
        "on": is_on,
        "disks": disks.iter().map(disk).collect::<Vec<_>>(),
        "front": front.map(|it| json!({
            "cgroups": it.foreground, "why": it.why, "since_s": it.since_s, "helped": it.helped,
        })),
        "left_out": left_out.iter().map(LeftOut::in_json).collect::<Vec<_>>(),
    })
}

/// Two digits each, as clocks show it: `14:03 UTC`.
fn clock(at_s: u64) -> String {
    let minutes = at_s / 60;
    format!("{:02}:{:02} UTC", minutes / 60 % 24, minutes % 60)
}

/// A time in the unit that fits.
fn time(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3600, seconds / 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, 1, minutes @ 60..90) => format!("{minutes} min"),
        (0, hours, _) => format!("{hours} h"),
        (days, ..) => format!("{days} days"),
    }
}
