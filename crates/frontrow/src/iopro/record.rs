//! `frontrow iopro record`.

use crate::bench::{catch_signals, print_text};
use crate::exit::{Exit, Failure};
use clap::ArgGroup;
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};
use iopro::capture::{self, Error, Progress, Request, Summary, What};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(clap::Args)]
#[command(group = ArgGroup::new("what").required(true))]
pub struct Record {
    /// The recording
    #[arg(short, long, value_name = "FILE", default_value = "frontrow.iopro")]
    output: PathBuf,
    /// This process, until it ends
    #[arg(short, long, group = "what", value_name = "PID")]
    pid: Option<u32>,
    /// This cgroup, until Ctrl-C: a path below the hierarchy's root, such as user.slice
    #[arg(long, group = "what", value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// The whole system for so long, such as 30s or 5m; without a time until Ctrl-C
    #[arg(long, group = "what", value_name = "DURATION", num_args = 0..=1, value_parser = duration)]
    system: Option<Option<Duration>>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// This command and its arguments, until it ends
    #[arg(last = true, group = "what")]
    command: Vec<String>,
}

/// Does what the command line says.
pub fn run(args: Record) -> Result<(), Failure> {
    let stop = catch_signals()?;
    let request = Request {
        what: what(&args),
        output: args.output,
    };
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} recording {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    let recorded = capture::record(&request, &stop, &mut |progress| {
        bar.set_message(told(&progress));
        bar.tick();
    });
    bar.finish_and_clear();
    let (summary, closing) = recorded?;
    match args.json {
        true => print_text(&format!("{}\n", as_json(&summary, &request.output)))?,
        false => eprint!("{}", in_words(&summary, &request.output)),
    }
    drop(closing);
    Ok(())
}

fn what(args: &Record) -> What {
    if let Some(pid) = args.pid {
        return What::Process(pid);
    }
    if let Some(path) = &args.cgroup {
        return What::Cgroup(path.clone());
    }
    if let Some(limit) = args.system {
        return What::System(limit);
    }
    What::Command(args.command.clone())
}

fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "give a time such as 30s, 5m or 1h".to_owned();
    let digits = text.trim_end_matches(char::is_alphabetic);
    let seconds = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let seconds = number.checked_mul(seconds).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

fn told(progress: &Progress) -> String {
    let lost = match progress.lost {
        0 => String::new(),
        lost => format!(", {lost} events lost"),
    };
    format!(
        "{}, {}{lost}",
        HumanDuration(progress.elapsed),
        HumanBytes(progress.bytes)
    )
}

fn in_words(summary: &Summary, output: &Path) -> String {
    let mut text = format!(
        "Recorded {:.1} s, {} in {}.\n",
        summary.progress.elapsed.as_secs_f64(),
        HumanBytes(summary.progress.bytes),
        output.display()
    );
    for lost in &summary.lost {
        text += &format!("Lost {} events ({:?}).\n", lost.count, lost.kind);
    }
    for (program, count) in &summary.missed {
        text += &format!("{program} was missed {count} times.\n");
    }
    for sentence in &summary.missing {
        text += &format!("{sentence}\n");
    }
    if let Some(status) = summary.command.filter(|it| !it.success()) {
        text += &format!("The command failed ({status}).\n");
    }
    text
}

fn as_json(summary: &Summary, output: &Path) -> serde_json::Value {
    let lost = summary.lost.iter();
    let lost: serde_json::Map<_, _> = lost
        .map(|lost| (format!("{:?}", lost.kind), json!(lost.count)))
        .collect();
    json!({
        "output": output,
        "elapsed_ns": summary.progress.elapsed.as_nanos() as u64,
        "bytes": summary.progress.bytes,
        "lost": lost,
        "missed": summary.missed,
        "missing": summary.missing,
        "command_exit": summary.command.and_then(|status| status.code()),
    })
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let exit = match &error {
            Error::NoPermission => Exit::Permission,
            Error::Refused { .. } => Exit::KernelRefuses,
            Error::NoBtf | Error::KernelLacks(_) | Error::UnknownField(_) => Exit::Unsupported,
            Error::DiskFull { .. } => Exit::DiskFull,
            Error::NoTarget(_) | Error::Command { .. } => Exit::Usage,
            Error::Load(_) | Error::File { .. } | Error::System(_) => Exit::Internal,
        };
        Failure::new(exit, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        for wrong in ["", "s", "3 days", "1.5s", "-1s", "99999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
