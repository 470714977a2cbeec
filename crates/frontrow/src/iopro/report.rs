//! `frontrow iopro report`.

use super::linked::{Source, failed};
use super::reading;
use crate::atomic_file::FileApart;
use crate::exit::{Exit, Failure};
use crate::print::{plain, print_text};
use iopro::report::{self, Report as Said};
use iopro::store::Store;
use std::path::PathBuf;

/// Number of columns without a terminal.
const WIDTH: usize = 120;

#[derive(clap::Args)]
pub struct Report {
    #[command(flatten)]
    source: Source,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the report as an HTML page with a timeline
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs the subcommand.
pub fn run(args: &Report) -> Result<(), Failure> {
    let recording = args.source.open()?;
    let page = args.html.as_deref().map(FileApart::begin).transpose()?;
    let _temporary = reading::begin(page.as_ref().map(FileApart::work))?;
    let store = Store::temporary().map_err(|error| failed(&error))?;
    let store = args.source.link(recording, store)?;
    let said = Said::of(&store).map_err(|error| failed(&error))?;
    if let Some(page) = page {
        page.write(report::html(&said))?;
    }
    match args.json {
        true => {
            let json = serde_json::to_string_pretty(&said)
                .map_err(|error| Failure::new(Exit::Internal, error))?;
            print_text(&format!("{json}\n"))
        }
        false => print_text(&plain(&report::text(&said, WIDTH))),
    }
}
