//! `frontrow blame`: the stalls that frontrow-watch.service has noted.

mod notify;
mod watch;

use crate::exit::{Exit, Failure};
use crate::print::{json, plain, print_text};
use clap::Subcommand;
use doctor::noted::{self, Noted};
use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, Timestamp, ZonedDateTime};
use record::number;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// Show what stalled this machine while frontrow-watch.service watched: who waited, and because of whom
///
/// The service is installed and not enabled: sudo systemctl enable --now frontrow-watch. It notes each
/// stall in which some task was held up by I/O for 200 ms or longer. The file has room for 2048 stalls,
/// and the newest stay.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Show the stalls since then: today, yesterday, a date such as 2026-11-29, a time such as
    /// "2026-11-29 23:00", or how long ago, such as 90m, 12h or 3d
    #[arg(long, value_name = "WHEN", default_value = "7d", value_parser = since)]
    since: Timestamp,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    kept: Kept,
}

#[derive(Subcommand)]
enum Action {
    /// Note stalls as they happen (frontrow-watch.service)
    ///
    /// It sleeps until the kernel reports that some task is held up by I/O (PSI). Then it samples blocked
    /// tasks as `frontrow doctor` does at level 2, until nobody was held up for a second. Without
    /// pressure it does not wake up.
    Watch(watch::Options),
    /// Show a notification when something stalls this machine (systemctl --user enable --now frontrow-notify)
    ///
    /// It shows the stalls that frontrow-watch.service notes, by notify-send. It sleeps until there is one, and
    /// shows one a minute at most. Files that were waited for are left out, as root alone may read them.
    Notify(notify::Options),
}

/// Where stalls are kept.
#[derive(clap::Args)]
struct Kept {
    /// File with the stalls
    #[arg(long, hide = true, default_value = "/var/lib/frontrow/stalls")]
    file: PathBuf,
}

/// Where stalls are told to everybody.
#[derive(clap::Args)]
struct Told {
    /// File with the stalls for the users' sessions
    #[arg(long, hide = true, default_value = "/run/frontrow-watch/stalls")]
    told: PathBuf,
}

/// Stalls as they are printed.
#[derive(Serialize)]
struct Stalls {
    since_ms: i64,
    stalls: Vec<Noted>,
}

/// Runs the subcommand.
pub fn run(args: Args) -> Result<(), Failure> {
    match &args.action {
        Some(Action::Watch(options)) => return watch::run(options),
        Some(Action::Notify(options)) => return notify::run(options),
        None => {}
    }
    let since_ms = args.since.as_millisecond();
    let mut stalls = noted::read(&args.kept.file).map_err(unreadable(&args.kept.file))?;
    stalls.retain(|it| it.ended_ms as i64 >= since_ms);
    match args.json {
        true => print_text(&json(&Stalls { since_ms, stalls })?),
        false => print_text(&plain(&text(&stalls, args.since)?)),
    }
}

fn none_noted() -> Failure {
    Failure::new(
        Exit::Usage,
        "no stalls are noted on this machine: sudo systemctl enable --now frontrow-watch notes them from now on",
    )
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |error| match error.kind() {
        io::ErrorKind::NotFound => none_noted(),
        io::ErrorKind::PermissionDenied => Failure::new(
            Exit::Permission,
            "only root may read which programs and files were waited for: sudo frontrow blame",
        ),
        _ => Failure::unreadable(path, &error),
    }
}

/// The stalls, the last one first.
fn text(stalls: &[Noted], since: Timestamp) -> Result<String, Failure> {
    let since = local(since)?;
    let Some(last) = stalls.len().checked_sub(1) else {
        return Ok(format!("No stall since {since}.\n"));
    };
    let all_ns: u64 = stalls.iter().map(|it| it.stalled_ns).sum();
    let plural = if last == 0 { "stall" } else { "stalls" };
    let count = stalls.len();
    let mut text = format!("{count} {plural} since {since}, {} in all.\n", time(all_ns));
    for stall in stalls.iter().rev() {
        text += &of_one(stall)?;
    }
    Ok(text)
}

fn of_one(stall: &Noted) -> Result<String, Failure> {
    let ended = Timestamp::from_millisecond(stall.ended_ms as i64);
    let when = local(ended.unwrap_or(Timestamp::UNIX_EPOCH))?;
    let mut text = format!("\n{when}, for {}", time(stall.stalled_ns));
    let Some(first) = stall.verdicts.first() else {
        return Ok(text + ": not known; no task was seen to wait\n");
    };
    text += &format!(": {}\n", first.cause);
    for verdict in &stall.verdicts {
        text += &format!("   {}; {}.\n", verdict.sentence, verdict.confidence);
    }
    if let Some(to_do) = &first.to_do {
        text += &format!("   What to do: {to_do}.\n");
    }
    Ok(text)
}

fn time(ns: u64) -> String {
    number::with_unit(ns as f64, "ns")
}

/// A time on this machine's clock.
fn local(time: Timestamp) -> Result<String, Failure> {
    let zoned = time.to_zoned_datetime(ZonedDateTime::now().time_zone().clone());
    jiff::fmt::strtime::format("%Y-%m-%d %H:%M:%S", &zoned)
        .map_err(|error| Failure::new(Exit::Internal, error))
}

/// Parses the begin of what is to be shown.
fn since(text: &str) -> Result<Timestamp, String> {
    since_at(text, &ZonedDateTime::now()).ok_or_else(|| {
        "give today, yesterday, a date such as 2026-11-29 or \"2026-11-29 23:00\", or how long ago, such as 12h or 3d"
            .to_owned()
    })
}

fn since_at(text: &str, now: &ZonedDateTime) -> Option<Timestamp> {
    let midnight = |it: ZonedDateTime| Some(it.start_of_day().ok()?.timestamp());
    match text {
        "today" => return midnight(now.clone()),
        "yesterday" => return midnight(now.yesterday().ok()?),
        _ => {}
    }
    let at = |it: DateTime| {
        Some(
            it.to_zoned_datetime(now.time_zone().clone())
                .ok()?
                .timestamp(),
        )
    };
    // A date alone is one with a time, too, at midnight.
    if let Ok(date) = text.parse::<Date>() {
        return match text.parse::<DateTime>() {
            Ok(time) => at(time),
            Err(_) => at(date.to_datetime(jiff::civil::Time::midnight())),
        };
    }
    let digits = text.trim_end_matches(char::is_alphabetic);
    let seconds = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        "w" => 7 * 86400,
        _ => return None,
    };
    let number: i64 = digits.parse().ok().filter(|it| *it >= 0)?;
    let ago = SignedDuration::from_secs(number.checked_mul(seconds)?);
    now.timestamp().checked_sub(ago).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::{Offset, TimeZone};

    #[test]
    fn times_are_those_of_the_machines_clock() {
        let zone = TimeZone::fixed(Offset::constant(2));
        let now = Timestamp::from_second(1_764_457_200).unwrap();
        let now = now.to_zoned_datetime(zone);
        // 2025-11-30 01:00 there, 2025-11-29 23:00 in Greenwich.
        let seconds = |text: &str| since_at(text, &now).map(|it| it.as_second());
        let midnight = 1_764_453_600;
        assert_eq!(seconds("today"), Some(midnight));
        assert_eq!(seconds("yesterday"), Some(midnight - 86400));
        assert_eq!(seconds("2025-11-30"), Some(midnight));
        assert_eq!(seconds("2025-11-29 23:30"), Some(midnight - 1800));
        assert_eq!(seconds("2025-11-29T23:30:05"), Some(midnight - 1795));
        assert_eq!(seconds("90m"), Some(now.timestamp().as_second() - 5400));
        assert_eq!(seconds("3d"), Some(now.timestamp().as_second() - 3 * 86400));
        for wrong in [
            "",
            "d",
            "-1d",
            "tomorrow",
            "9999999999999999d",
            "2025-13-01",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }
}
