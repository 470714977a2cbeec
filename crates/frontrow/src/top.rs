//! `frontrow top`: who waits now, as the doctor judges it.

mod screen;
mod view;

use crate::bench::catch_signals;
use crate::doctor::{Frames, How, WATCHES, failure, observe};
use crate::exit::{Exit, Failure};
use crate::iopro::linked::{self, failed, unreadable};
use crate::iopro::reading;
use crate::iopro::scope::{duration, running_btf};
use crate::print::{has_colors, plain, print_text};
use doctor::top::{Frame, Minute};
use doctor::{Machine, machine, recorded};
use iopro::recording::Reader;
use iopro::report;
use screen::Screen;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use sys::confine;
use view::{Act, View};

/// Number of columns without a terminal.
const WIDTH: usize = 160;
/// Interval at which keys, a new window size and the stop flag are checked.
const TICK: Duration = Duration::from_millis(50);

/// Show live who waits, for what, because of whom and on which disk
///
/// It judges each interval as `frontrow doctor` does, at the level that this machine and user have. On a
/// terminal it keeps the last minute, and keys sort, follow, freeze and open; press ? for them.
/// Otherwise intervals follow each other. It runs until q or Ctrl-C, and changes nothing.
#[derive(clap::Args)]
pub struct Top {
    /// Show one app, by its process's name, or one disk, such as sda
    #[arg(long, value_name = "NAME")]
    follow: Option<String>,
    /// Length of an interval, such as 5s
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// End after so many intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    intervals: Option<u64>,
    /// Print one interval after the other, at a terminal as well
    #[arg(long)]
    batch: bool,
    /// Play a recording of `frontrow iopro record` in its own time, instead of this machine
    #[arg(long, value_name = "RECORDING", conflicts_with = "btf")]
    from: Option<PathBuf>,
    /// Type information of this kernel, for one that has none itself: BTF, a vmlinux or a vmlinuz.
    /// Level 1 then uses tracepoints only, which see less
    #[arg(long, value_name = "FILE")]
    btf: Option<PathBuf>,
    /// Print JSON, one object on each line
    #[arg(long)]
    json: bool,
    /// Root directory of the system to read
    #[arg(long, hide = true, default_value = "/")]
    sysroot: PathBuf,
}

fn interval(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("give a time of at least a second".to_owned()),
        length => Ok(length),
    }
}

/// Runs the subcommand.
pub fn run(args: Top) -> Result<(), Failure> {
    let stop = catch_signals()?;
    let output = Output::of(&args);
    let recording = args.from.as_deref().map(linked::open).transpose()?;
    // Before the threads begin, which have the rights of the one that starts them.
    let _temporary = match recording {
        Some(_) => reading::begin(None)?,
        None => None,
    };
    thread::scope(|scope| {
        let drawing = output.newest().map(|newest| {
            let stays = args.from.is_some();
            let (stop, only) = (&stop, args.follow.clone());
            scope.spawn(move || {
                let drawn = confine::drop_capabilities()
                    .map_err(Failure::from)
                    .and_then(|()| draw(newest, View::following(only), stays, stop));
                stop.store(true, Ordering::Relaxed);
                drawn
            })
        });
        let watched = match (recording, &args.from) {
            (Some(recording), Some(path)) => play((recording, path), &args, &output, &stop),
            _ => live(&args, &output, &stop),
        };
        if let Some(newest) = output.newest() {
            newest.has_ended.store(true, Ordering::Relaxed);
        }
        let drawn = drawing.map_or(Ok(Ok(())), thread::ScopedJoinHandle::join);
        let why_not = watched?;
        drawn.unwrap_or_else(|_| {
            Err(Failure::new(
                Exit::Internal,
                "the display ended unexpectedly",
            ))
        })?;
        // The screen is the terminal's again.
        if let Some(why) = why_not {
            eprintln!("frontrow: level 1 would see more: {}", plain(&why));
        }
        Ok(())
    })
}

/// Watches this machine until the stop flag is set or the last interval is over. Returns why it was not done
/// at level 1.
fn live(args: &Top, output: &Output, stop: &AtomicBool) -> Result<Option<String>, Failure> {
    let root = &args.sysroot;
    let btf = args.btf.as_deref().map(running_btf).transpose()?;
    machine::check(root).map_err(failure)?;
    let machine = Machine::look(root).map_err(failure)?;
    let mut printed = Ok(());
    let mut left = args.intervals;
    let mut tell = |frame: Frame| {
        printed = output.show(frame);
        printed.is_ok() && !is_last(&mut left)
    };
    let seen = observe(
        root,
        machine,
        How {
            length: Duration::MAX,
            until_stall: None,
            is_coarse: false,
            btf: btf.as_deref(),
            kept: Some(WATCHES),
            recording: None,
            frames: Some(Frames {
                every: args.interval,
                tell: &mut tell,
            }),
        },
        stop,
    );
    printed?;
    Ok(seen?.why_not)
}

/// Counts an interval; says whether it was the last one.
fn is_last(left: &mut Option<u64>) -> bool {
    let left = left.as_mut().map(|left| {
        *left = left.saturating_sub(1);
        *left
    });
    left == Some(0)
}

/// Plays a recording: at a terminal in its own time.
fn play(
    (recording, path): (File, &Path),
    args: &Top,
    output: &Output,
    stop: &AtomicBool,
) -> Result<Option<String>, Failure> {
    let reader = Reader::of(recording, path).map_err(unreadable)?;
    let header = reader.header().clone();
    let machine = recorded::machine(&header);
    let mut events = reader.events();
    let (begun, counted) = (Instant::now(), std::cell::Cell::new(0));
    let steps = std::iter::from_fn(|| {
        counted.set(counted.get() + 1);
        events.step()
    });
    let (mut printed, mut left) = (Ok(()), args.intervals);
    let every_ns = args.interval.as_nanos() as u64;
    let watched = report::watch_waits(&header, steps, path, every_ns, &mut |interval| {
        if output.is_drawn() {
            wait_until(begun + Duration::from_nanos(interval.at_ns), stop);
        }
        printed = output.show(Frame::of_recording(&machine, interval, counted.take()));
        let is_over = output.is_drawn() && stop.load(Ordering::Relaxed);
        printed.is_ok() && !is_last(&mut left) && !is_over
    });
    printed?;
    watched.map_err(|error| failed(&error))?;
    Ok(None)
}

fn wait_until(then: Instant, stop: &AtomicBool) {
    while Instant::now() < then && !stop.load(Ordering::Relaxed) {
        thread::sleep(TICK.min(then.saturating_duration_since(Instant::now())));
    }
}

/// Receivers of frames.
enum Output {
    /// A terminal, through the channel of the thread that draws.
    Drawn(Box<Newest>),
    /// Standard output, one after the other.
    Text(Box<Mutex<View>>),
    Json,
}

/// Frames that are not drawn yet.
#[derive(Default)]
struct Newest {
    frames: Mutex<Vec<Frame>>,
    has_ended: AtomicBool,
}

impl Newest {
    fn take(&self) -> Vec<Frame> {
        let frames = self.frames.lock();
        std::mem::take(&mut *frames.unwrap_or_else(|it| it.into_inner()))
    }
}

impl Output {
    fn of(args: &Top) -> Output {
        let is_drawn = io::stdout().is_terminal() && !args.batch;
        match args.json {
            true => Output::Json,
            false if is_drawn => Output::Drawn(Box::default()),
            false => Output::Text(Box::new(Mutex::new(View::following(args.follow.clone())))),
        }
    }

    fn newest(&self) -> Option<&Newest> {
        match self {
            Output::Drawn(newest) => Some(newest),
            _ => None,
        }
    }

    fn is_drawn(&self) -> bool {
        self.newest().is_some()
    }

    fn show(&self, frame: Frame) -> Result<(), Failure> {
        match self {
            Output::Json => {
                let json = serde_json::to_string(&frame)
                    .map_err(|error| Failure::new(Exit::Internal, error))?;
                print_text(&(sys::plain::json(&json) + "\n"))
            }
            Output::Text(view) => {
                let mut view = view.lock().unwrap_or_else(|it| it.into_inner());
                view.add(frame);
                print_text(&(view.text(WIDTH) + "\n"))
            }
            Output::Drawn(newest) => {
                let frames = newest.frames.lock();
                frames.unwrap_or_else(|it| it.into_inner()).push(frame);
                Ok(())
            }
        }
    }
}

/// Draws frames and handles keys, until `q`, `stop`, or the end of the frames, unless the last one
/// `stays`.
fn draw(newest: &Newest, mut view: View, stays: bool, stop: &AtomicBool) -> Result<(), Failure> {
    let screen = Screen::enter()?;
    let has_colors = has_colors();
    let mut size = (0, 0);
    loop {
        let mut is_new = screen.size() != size;
        size = screen.size();
        for frame in newest.take() {
            is_new |= view.add(frame);
        }
        for key in screen.keys(TICK)? {
            match view.press(key) {
                Act::Nothing => {}
                Act::Draw => is_new = true,
                Act::Quit => stop.store(true, Ordering::Relaxed),
            }
        }
        if is_new {
            screen.draw(&view.lines(size, has_colors))?;
        }
        let has_ended = newest.has_ended.load(Ordering::Relaxed) && !stays;
        if stop.load(Ordering::Relaxed) || has_ended {
            break;
        }
    }
    drop(screen);
    // The last interval stays with the reader.
    newest.take().into_iter().for_each(|frame| {
        view.add(frame);
    });
    print_text(&view.text(size.1.max(1)))
}
