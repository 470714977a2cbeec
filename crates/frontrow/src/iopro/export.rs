//! `frontrow iopro export`.

use super::linked::{Source, failed};
use crate::exit::{Exit, Failure};
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use iopro::export::{Error, Format};
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Export {
    #[command(flatten)]
    source: Source,
    /// The format. Tables: sqlite, or parquet and csv, which are directories. Pictures: vcd has a
    /// line a layer for GTKWave, perfetto has tracks of layers and threads for its UI
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: Format,
    /// Where to; by default beside the recording, with the format as its suffix
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name))
        .try_map(|name| Format::named(&name).ok_or("no such format"))
}

/// Does what the command line says.
pub fn run(args: &Export) -> Result<(), Failure> {
    let output = match &args.output {
        Some(output) => output.clone(),
        None => args.source.recording.with_extension(args.to.suffix()),
    };
    let export = iopro::export::Export::begin(args.to, &output).map_err(cannot_export)?;
    let store = export.store().map_err(cannot_export)?;
    let store = args.source.link(store)?;
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
