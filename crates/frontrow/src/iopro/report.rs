//! `frontrow iopro report`.

use super::linked::{Source, failed};
use crate::exit::{Exit, Failure};
use crate::print::{plain, print_text};
use crate::whole;
use iopro::report::{self, Report as Said};
use iopro::store::Store;
use std::path::PathBuf;

/// Columns where nobody says how many there are.
const WIDTH: usize = 120;

#[derive(clap::Args)]
pub struct Report {
    #[command(flatten)]
    source: Source,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write the report as a page with a picture of the time as well
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Does what the command line says.
pub fn run(args: &Report) -> Result<(), Failure> {
    let store = Store::temporary().map_err(|error| failed(&error))?;
    let store = args.source.link(store)?;
    let said = Said::of(&store).map_err(|error| failed(&error))?;
    if let Some(path) = &args.html {
        whole::write_private(path, report::html(&said))?;
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
