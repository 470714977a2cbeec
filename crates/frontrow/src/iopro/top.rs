//! `frontrow iopro top`.

use super::chosen::{Chosen, duration};
use super::linked::failed;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::{plain, print_text};
use clap::ArgGroup;
use console::Term;
use iopro::capture;
use iopro::recording::Reader;
use iopro::report::{self, Frame};
use std::io::{self, BufReader, IsTerminal, PipeReader};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Columns where nobody says how many there are.
const WIDTH: usize = 120;
/// Cursor to the first place, and nothing below it.
const CLEAR: &str = "\x1b[H\x1b[J";
/// What errors call the recording that is in no file.
const NAME: &str = "the running recording";

#[derive(clap::Args)]
#[command(group = ArgGroup::new("what"))]
pub struct Top {
    #[command(flatten)]
    chosen: Chosen,
    /// How often, such as 5s
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    interval: Duration,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
}

/// Does what the command line says.
pub fn run(args: Top) -> Result<(), Failure> {
    let stop = catch_signals()?;
    let (reader, writer) = io::pipe().map_err(|error| Failure::new(Exit::Internal, error))?;
    let every_ns = args.interval.as_nanos() as u64;
    let what = args.chosen.what();
    let screen = Screen::of(args.json);
    let (recorded, watched) = thread::scope(|scope| {
        let watching = scope.spawn(|| watch(reader, every_ns, &screen, &stop));
        let recorded = capture::stream(&what, writer, &stop, &mut |_| {});
        (recorded, watching.join())
    });
    let watched = watched.unwrap_or_else(|_| {
        Err(Failure::new(
            Exit::Internal,
            "the linker ended unexpectedly",
        ))
    });
    match (recorded, watched) {
        // Whoever stops to watch closes the pipe, which the recorder takes for an error.
        (Err(capture::Error::File { .. }), watched) => watched,
        // Nothing came through the pipe.
        (Err(error), _) => Err(error.into()),
        (Ok(_), watched) => watched,
    }
}

fn watch(
    pipe: PipeReader,
    every_ns: u64,
    screen: &Screen,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let path = Path::new(NAME);
    let reader = Reader::new(BufReader::with_capacity(1 << 18, pipe), path)
        .map_err(|error| Failure::new(Exit::Internal, error))?;
    let header = reader.header().clone();
    let mut events = reader.events();
    let steps = std::iter::from_fn(|| events.step());
    let mut printed = Ok(());
    let watched = report::watch(&header, steps, path, every_ns, &mut |frame| {
        printed = screen.show(frame);
        printed.is_ok()
    });
    // Nobody watches any more.
    stop.store(true, Ordering::Relaxed);
    printed?;
    watched.map_err(|error| failed(&error))
}

/// How frames are shown.
enum Screen {
    /// In the place of the one before.
    Terminal,
    /// One after the other.
    Text,
    Json,
}

impl Screen {
    fn of(json: bool) -> Screen {
        match json {
            true => Screen::Json,
            false if io::stdout().is_terminal() => Screen::Terminal,
            false => Screen::Text,
        }
    }

    fn show(&self, frame: &Frame) -> Result<(), Failure> {
        match self {
            Screen::Json => {
                let json = serde_json::to_string(frame)
                    .map_err(|error| Failure::new(Exit::Internal, error))?;
                print_text(&format!("{json}\n"))
            }
            Screen::Text => {
                let text = report::frame_text(frame, WIDTH);
                print_text(&format!("{}\n", plain(&text)))
            }
            Screen::Terminal => {
                let (rows, columns) = Term::stdout().size();
                let (rows, columns) = (usize::from(rows), usize::from(columns));
                let text = plain(&report::frame_text(frame, columns));
                print_text(&format!("{CLEAR}{}", cut(&text, rows, columns)))
            }
        }
    }
}

/// The part of a text that a terminal of this size has room for.
fn cut(text: &str, rows: usize, columns: usize) -> String {
    let lines = text.lines().take(rows);
    let lines: Vec<String> = lines
        .map(|line| line.chars().take(columns).collect())
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_frame_is_never_larger_than_the_terminal() {
        assert_eq!(cut("one\ntwo\nthree\n", 2, 80), "one\ntwo");
        assert_eq!(cut("größe", 24, 3), "grö");
    }
}
