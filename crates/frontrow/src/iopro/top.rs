//! `frontrow iopro top`.

mod screen;
mod view;

use super::linked::{self, failed, unreadable};
use super::reading;
use super::scope::{ScopeArgs, duration};
use super::watching::Watching;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::{has_colors, plain, print_text};
use clap::ArgGroup;
use iopro::capture;
use iopro::recording::Reader;
use iopro::report::{self, Frame};
use screen::Screen;
use std::fs::File;
use std::io::{self, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use sys::confine;
use view::{Act, View};

/// Number of columns without a terminal.
const WIDTH: usize = 120;
/// Interval at which keys, a new window size and the stop flag are checked.
const TICK: Duration = Duration::from_millis(50);
/// Name in errors of a recording without a file.
const NAME: &str = "the running recording";

#[derive(clap::Args)]
#[command(group = ArgGroup::new("what"))]
pub struct Top {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Play a recording in its own time, instead of live events
    #[arg(long, group = "what", value_name = "RECORDING")]
    from: Option<PathBuf>,
    /// Interval of the reports, such as 5s
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    interval: Duration,
    /// Print JSON, one object on each line
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(args: Top) -> Result<(), Failure> {
    let stop = catch_signals()?;
    let recording = args.from.as_deref().map(linked::open).transpose()?;
    // Before the threads begin, which have the rights of the one that starts them.
    let _temporary = match recording {
        Some(_) => reading::begin(None)?,
        None => None,
    };
    let output = Output::of(args.json);
    let watch = Watch {
        every_ns: args.interval.as_nanos() as u64,
        is_played: args.from.is_some() && output.is_drawn(),
        output: &output,
        stop: &stop,
    };
    thread::scope(|scope| {
        let drawing = output.latest().map(|latest| {
            let stays = args.from.is_some();
            let stop = &stop;
            scope.spawn(move || {
                let drawn = confine::drop_capabilities()
                    .map_err(Failure::from)
                    .and_then(|()| draw(latest, stays, stop));
                stop.store(true, Ordering::Relaxed);
                drawn
            })
        });
        let watched = match recording.zip(args.from.as_deref()) {
            Some((recording, path)) => play(recording, path, &watch),
            None => live(args.scope, &watch),
        };
        if let Some(latest) = output.latest() {
            latest.has_ended.store(true, Ordering::Relaxed);
        }
        let drawn = drawing.map_or(Ok(Ok(())), thread::ScopedJoinHandle::join);
        watched?;
        drawn.unwrap_or_else(|_| {
            Err(Failure::new(
                Exit::Internal,
                "the display ended unexpectedly",
            ))
        })
    })
}

/// Watches until the stop flag is set, or the command or process ends.
fn live(scope: ScopeArgs, watch: &Watch) -> Result<(), Failure> {
    let btf = scope.btf()?;
    let what = scope.what();
    let (reader, writer) = io::pipe().map_err(|error| Failure::new(Exit::Internal, error))?;
    let mut watching = Watching::of(&what);
    let (recorded, watched) = thread::scope(|scope| {
        let linking = scope.spawn(|| {
            let name = Path::new(NAME);
            let watched = confine::drop_capabilities()
                .map_err(Failure::from)
                .and_then(|()| {
                    Reader::new(BufReader::with_capacity(1 << 18, reader), name)
                        .map_err(|error| Failure::new(Exit::Internal, error))
                })
                .and_then(|reader| watch.all(reader, name));
            // The receiver of frames has gone.
            watch.stop.store(true, Ordering::Relaxed);
            watched
        });
        let mut progress = |_: capture::Progress| {
            if !watching.go_on() {
                watch.stop.store(true, Ordering::Relaxed);
            }
        };
        let recorded = capture::stream(&what, btf.as_deref(), writer, watch.stop, &mut progress);
        (recorded, linking.join())
    });
    let watched = watched.unwrap_or_else(|_| {
        Err(Failure::new(
            Exit::Internal,
            "the linker ended unexpectedly",
        ))
    });
    watching.end()?;
    match (recorded, watched) {
        // A reader that stops closes the pipe, which the recorder reports as an error.
        (Err(capture::Error::File(_)), watched) => watched,
        // Nothing came through the pipe.
        (Err(error), _) => Err(error.into()),
        (Ok(_), watched) => watched,
    }
}

fn play(recording: File, path: &Path, watch: &Watch) -> Result<(), Failure> {
    let reader = Reader::of(recording, path).map_err(unreadable)?;
    watch.all(reader, path)
}

/// How a recording is shown while it is made or played.
struct Watch<'a> {
    every_ns: u64,
    /// Whether frames appear at their recorded times.
    is_played: bool,
    output: &'a Output,
    stop: &'a AtomicBool,
}

impl Watch<'_> {
    fn all(&self, reader: Reader<impl Read>, path: &Path) -> Result<(), Failure> {
        let header = reader.header().clone();
        let mut events = reader.events();
        let steps = std::iter::from_fn(|| events.step());
        let began = Instant::now();
        let mut printed = Ok(());
        let watched = report::watch(&header, steps, path, self.every_ns, &mut |frame| {
            if self.is_played {
                self.wait_until(began + Duration::from_nanos(frame.at_ns));
            }
            printed = self.output.show(frame);
            printed.is_ok() && !(self.output.is_drawn() && self.stop.load(Ordering::Relaxed))
        });
        printed?;
        watched.map_err(|error| failed(&error))
    }

    fn wait_until(&self, then: Instant) {
        while Instant::now() < then && !self.stop.load(Ordering::Relaxed) {
            thread::sleep(TICK.min(then - Instant::now().min(then)));
        }
    }
}

/// Receivers of frames.
enum Output {
    /// A terminal, through the channel of the thread that draws.
    Drawn(Box<Latest>),
    /// Standard output, one after the other.
    Text,
    Json,
}

#[derive(Default)]
struct Latest {
    frame: Mutex<Option<Frame>>,
    has_ended: AtomicBool,
}

impl Latest {
    fn take(&self) -> Option<Frame> {
        let mut frame = self.frame.lock().unwrap_or_else(|it| it.into_inner());
        frame.take()
    }
}

impl Output {
    fn of(json: bool) -> Output {
        match json {
            true => Output::Json,
            false if io::stdout().is_terminal() => Output::Drawn(Box::default()),
            false => Output::Text,
        }
    }

    fn latest(&self) -> Option<&Latest> {
        match self {
            Output::Drawn(latest) => Some(latest),
            _ => None,
        }
    }

    fn is_drawn(&self) -> bool {
        self.latest().is_some()
    }

    fn show(&self, frame: &Frame) -> Result<(), Failure> {
        match self {
            Output::Json => {
                let json = serde_json::to_string(frame)
                    .map_err(|error| Failure::new(Exit::Internal, error))?;
                print_text(&format!("{json}\n"))
            }
            Output::Text => print_text(&format!("{}\n", text(frame))),
            Output::Drawn(latest) => {
                let mut newest = latest.frame.lock().unwrap_or_else(|it| it.into_inner());
                *newest = Some(frame.clone());
                Ok(())
            }
        }
    }
}

fn text(frame: &Frame) -> String {
    plain(&report::frame_text(frame, WIDTH))
}

/// Draws frames and handles keys, until `q`, `stop`, or the end of the frames, unless the last one
/// `stays`.
fn draw(latest: &Latest, stays: bool, stop: &AtomicBool) -> Result<(), Failure> {
    let screen = Screen::enter()?;
    let has_colors = has_colors();
    let mut view = View::default();
    let mut shown = None;
    let mut size = (0, 0);
    loop {
        let mut is_new = screen.size() != size;
        if let Some(frame) = latest.take().filter(|_| !view.is_paused) {
            shown = Some(frame);
            is_new = true;
        }
        if is_new {
            size = screen.size();
            screen.draw(&view.lines(shown.as_ref(), size, has_colors))?;
        }
        for key in screen.keys(TICK)? {
            match view.press(key) {
                Act::Nothing => {}
                Act::Draw => screen.draw(&view.lines(shown.as_ref(), size, has_colors))?,
                Act::Quit => stop.store(true, Ordering::Relaxed),
            }
        }
        let has_ended = latest.has_ended.load(Ordering::Relaxed) && !stays;
        if stop.load(Ordering::Relaxed) || has_ended {
            break;
        }
    }
    drop(screen);
    // What was last seen stays with the reader.
    match latest.take().or(shown) {
        Some(frame) => print_text(&format!("{}\n", text(&frame))),
        None => Ok(()),
    }
}
