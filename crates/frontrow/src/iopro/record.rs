//! `frontrow iopro record`.

use super::scope::ScopeArgs;
use super::watching::Watching;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::print_text;
use clap::ArgGroup;
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};
use iopro::capture::{self, Error, Progress, Request, Summary};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use sys::PathError;

#[derive(clap::Args)]
#[command(group = ArgGroup::new("what").required(true))]
pub struct Record {
    /// File for the recording
    #[arg(short, long, value_name = "FILE", default_value = "frontrow.iopro")]
    output: PathBuf,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(args: Record) -> Result<(), Failure> {
    let stop = catch_signals()?;
    let request = Request {
        btf: args.scope.btf()?,
        what: args.scope.what(),
        output: args.output,
    };
    let bar = ProgressBar::new_spinner();
    bar.set_style(
        ProgressStyle::with_template("{spinner} recording {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
    );
    let mut watching = Watching::of(&request.what);
    let recorded = capture::record(&request, &stop, &mut |progress| {
        if !watching.go_on() {
            stop.store(true, Ordering::Relaxed);
        }
        bar.set_message(told(&progress));
        bar.tick();
    });
    bar.finish_and_clear();
    let (summary, closing) = recorded?;
    watching.end()?;
    match args.json {
        true => print_text(&format!("{}\n", as_json(&summary, &request.output)))?,
        false => eprint!("{}", in_words(&summary, &request.output)),
    }
    drop(closing);
    Ok(())
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
            Error::NoBtf
            | Error::FunctionsNotTraced
            | Error::KernelLacks(_)
            | Error::UnknownField(_) => Exit::Unsupported,
            Error::DiskFull { .. } => Exit::DiskFull,
            Error::NoTarget(_) | Error::Command { .. } => Exit::Usage,
            Error::File(PathError { source, .. }) => source.into(),
            Error::Load(_) | Error::System(_) => Exit::Internal,
        };
        Failure::new(exit, error)
    }
}
