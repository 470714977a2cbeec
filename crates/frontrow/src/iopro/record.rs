//! `frontrow iopro record`.

use super::scope::ScopeArgs;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::print_text;
use clap::ArgGroup;
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressStyle};
use iopro::capture::{self, Error, Progress, Request, Summary};
use module::abi::{btf_section, check_running};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use sys::PathError;

#[derive(clap::Args)]
#[command(group = ArgGroup::new("what").required(true))]
pub struct Record {
    /// File for the recording
    #[arg(short, long, value_name = "FILE", default_value = "frontrow.iopro")]
    output: PathBuf,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Type information of this kernel, for one that has none itself: BTF, a vmlinux or a vmlinuz.
    /// Only tracepoints are used then, which see less
    #[arg(long, value_name = "FILE")]
    btf: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(args: Record) -> Result<(), Failure> {
    let stop = catch_signals()?;
    let request = Request {
        what: args.scope.what(),
        output: args.output,
        btf: args.btf.as_deref().map(btf_in).transpose()?,
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

/// The running kernel's BTF in a file that the user gave.
fn btf_in(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = |path: &Path| fs::read(path).map_err(PathError::of("access", path));
    let file = read(path).map_err(|error| Failure::new((&error.source).into(), error))?;
    let symbols = read(Path::new("/proc/kallsyms")).unwrap_or_default();
    let symbols = String::from_utf8_lossy(&symbols);
    let wrong = |error| {
        let sentence = format!("{}: {error}", path.display());
        Failure::new(Exit::Unsupported, sentence)
    };
    check_running(&file, &symbols).map_err(wrong)?;
    let btf = btf_section(&file).map_err(wrong)?;
    Ok(btf.into_owned())
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
