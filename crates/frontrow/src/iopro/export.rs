//! `frontrow iopro export`: writes a recording in another format.

use super::linked::{Source, failed};
use super::reading;
use crate::exit::{Exit, Failure};
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use iopro::export::{Error, Format};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Export {
    #[command(flatten)]
    source: Source,
    /// Format of the output. Tables: sqlite, or parquet and csv, which are directories. Timelines:
    /// vcd, with a signal for each layer (GTKWave), or perfetto, with tracks of layers and threads
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: Format,
    /// Output path [default: the recording's path with the format as suffix]
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .try_map(|name| Format::named(&name).ok_or("no such format"))
}

/// Runs the subcommand.
pub fn run(args: &Export) -> Result<(), Failure> {
    let output = match &args.output {
        Some(output) => output.clone(),
        None => args.source.recording.with_extension(args.to.suffix()),
    };
    let export = iopro::export::Export::begin(args.to, &output).map_err(cannot_export)?;
    let recording = args.source.open()?;
    let _temporary = reading::begin(Some(export.work()))?;
    let store = export.store().map_err(cannot_export)?;
    let store = args.source.link(recording, store)?;
    export.finish(store).map_err(cannot_export)?;
    eprintln!("{} is written.", output.display());
    Ok(())
}

fn cannot_export(error: Error) -> Failure {
    match error {
        Error::Store(error) => failed(&error),
        Error::Exists { .. } => Failure::new(Exit::Refused, error),
        Error::Output { ref source, .. } if Exit::from(source) == Exit::DiskFull => Failure::new(
            Exit::DiskFull,
            format!("{error}: make room, or name another place with --output"),
        ),
        Error::Output { ref source, .. } => Failure::new(source.into(), error),
    }
}
