//! `frontrow-lab ahead`: a device that is told what its host will write, in virtual time.

use super::collect::{aged, failed};
use super::device;
use crate::atomic_file::AtomicFile;
use crate::bench::catch_signals;
use crate::exit::Failure;
use crate::print::{json, print_text};
use ::replay::ahead::{Announced, Event, Prediction, Steps, Used, View, phone, play, traced};
use ::replay::{Config, Input, Options};
use foreground::demand::{Advice, Direct, Dirty, Rates, Writeback, advise};
use record::number::with_unit;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Compare when the emulated device collects: lazily, eagerly, as it does today, or just in time
///
/// A phone's use goes through the flash core in this process, in virtual time, on a device that is
/// aged as in experiments. It is generated, or a block trace. Lazy and eager devices keep half and
/// one and a half of their spare flash free while idle. Just in time, the host predicts what it will
/// write until its dirty pages expire. The device then collects only what it has no time for later.
#[derive(clap::Args)]
pub struct Ahead {
    /// Block traces to play, each for itself, in place of the generated use; kernel threads' writes
    /// count as writeback
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,
    #[arg(long, default_value = "emmc", help = format!("The emulated device: {}", device::values()))]
    device: String,
    /// Seed of the generated use
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Length of the generated use, in minutes of virtual time
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(u32).range(1..=600))]
    minutes: u32,
    /// Divide all times of the traces by this factor
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// Write a picture of the predictions of the first use, and of what came, to this SVG file
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (1e-6..=1e6).contains(&speed) => Ok(speed),
        _ => Err("give a number from 0.000001 to 1000000".to_owned()),
    }
}

/// Defaults of Linux (`vm.dirty_writeback_centisecs`, `vm.dirty_expire_centisecs`).
const STEPS: Steps = Steps {
    step_ns: 5_000_000_000,
    expire_ns: 30_000_000_000,
};

/// Ways to collect: the name, and the parameter `idle_percent`.
const WAYS: [(&str, u64); 4] = [
    ("lazy", 50),
    ("eager", 150),
    ("today", 0),
    ("just in time", 0),
];
const JUST_IN_TIME: &str = "just in time";

#[derive(Serialize)]
struct Row {
    r#use: String,
    collection: &'static str,
    #[serde(flatten)]
    used: Used,
}

/// Runs the subcommand.
pub fn run(args: Ahead) -> Result<(), Failure> {
    let stop = catch_signals()?;
    let picture = args.picture.as_deref().map(AtomicFile::create);
    let picture = picture.transpose()?;
    let (config, image) = aged(&args.device, &stop)?;
    let mut rows = Vec::new();
    for (name, events) in uses(&args, &config)? {
        for (collection, idle_percent) in WAYS {
            let config = config.with(&[("idle_percent", idle_percent)]);
            let config = config.map_err(|it| failed(it.into()))?;
            let mut host = Host::new(&config, collection == JUST_IN_TIME);
            let mut step = |view: &View| host.step(view);
            let used = play(&config, &image, &events, STEPS, &mut step, &stop).map_err(failed)?;
            rows.push(Row {
                r#use: name.clone(),
                collection,
                used,
            });
        }
    }
    let drawn = rows.iter().find(|it| it.collection == JUST_IN_TIME);
    if let (Some(file), Some(row)) = (picture, drawn) {
        file.write(svg(&row.used.predictions).as_bytes())?;
    }
    match args.json {
        true => print_text(&json(&rows)?),
        false => print_text(&text(&rows)),
    }
}

fn uses(args: &Ahead, config: &Config) -> Result<Vec<(String, Vec<Event>)>, Failure> {
    let capacity = config.capacity_pages();
    if args.traces.is_empty() {
        let events = phone(capacity, args.minutes, args.seed, STEPS);
        return Ok(vec![("phone".to_owned(), events)]);
    }
    let of = |path: &PathBuf| {
        let input = Input::open(path).map_err(|error| failed(error.into()))?;
        let trace = ::replay::read(input, &Options::default()).map_err(failed)?;
        let trace = trace.into_blocks().at_speed(args.speed);
        Ok((name_of(path), traced(&trace, capacity, STEPS)))
    };
    args.traces.iter().map(of).collect()
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let name = name.to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// The host's side: predicts at each step, and announces if it is to.
struct Host {
    writeback: Writeback,
    direct: Direct,
    rates: Rates,
    announces: bool,
}

/// Idle collection takes blocks that are at most three quarters valid: for each quarter that it
/// frees it programs three. Reading them takes as long again at most.
const COLLECT_SHARE: f64 = 1.0 / 6.0;

impl Host {
    fn new(config: &Config, announces: bool) -> Self {
        let write_bytes_per_s = config.program_bytes_per_s();
        Host {
            writeback: Writeback {
                step_ns: STEPS.step_ns,
                expire_ns: STEPS.expire_ns,
            },
            direct: Direct::new(STEPS.expire_ns, 0),
            rates: Rates {
                write_bytes_per_s,
                collect_bytes_per_s: write_bytes_per_s * COLLECT_SHARE,
            },
            announces,
        }
    }

    fn step(&mut self, view: &View) -> Announced {
        self.direct.add(view.now_ns, view.direct_bytes);
        let dirty = view.dirty.iter().map(|it| Dirty {
            since_ns: it.since_ns,
            bytes: it.bytes,
        });
        let dirty: Vec<Dirty> = dirty.collect();
        let buffered = self.writeback.buffered(view.now_ns, &dirty);
        let direct = self.direct.expected(view.now_ns);
        let step_ns = self.writeback.step_ns;
        let now = match advise(&buffered, direct, view.free_bytes, self.rates, step_ns) {
            Advice::Enough | Advice::Wait => 0,
            Advice::Collect(bytes) => view.free_bytes + bytes,
        };
        let expected_bytes = buffered.iter().sum::<u64>() + direct;
        Announced {
            expected_bytes,
            reserve_bytes: self.announces.then_some(now),
        }
    }
}

fn text(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<16} {:<13} {:>17} {:>18} {:>18} {:>10} {:>6}\n{:<16} {:<13}",
        "", "", "read", "commit", "writeback", "collected", "WA", "use", "collection"
    );
    let _ = writeln!(
        text,
        " {0:>9} {1:>8} {0:>9} {1:>8} {0:>9} {1:>8}",
        "mean", "p99"
    );
    for Row {
        r#use,
        collection,
        used,
    } in rows
    {
        let _ = write!(text, "{use:<16} {collection:<13}");
        for times in [&used.read, &used.commit, &used.writeback] {
            let of = |ns: f64| with_unit(ns, "ns");
            let [mean, p99] = match times {
                Some(times) => [of(times.mean_ns), of(times.p99_ns as f64)],
                None => ["-".to_owned(), "-".to_owned()],
            };
            let _ = write!(text, " {mean:>9} {p99:>8}");
        }
        let _ = writeln!(
            text,
            " {:>10} {:>6.3}",
            record::number::bytes(used.counters.collected_pages * 4096),
            used.write_amplification.unwrap_or(1.0),
        );
    }
    text
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 300.0;

/// Two stepped lines over time: what was expected in the horizon, and what came.
fn svg(predictions: &[Prediction]) -> String {
    let end_ns = predictions.last().map_or(1, |it| it.time_ns.max(1)) as f64;
    let bytes = |it: &Prediction| it.expected_bytes.max(it.came_bytes);
    let most = predictions.iter().map(bytes).max().unwrap_or(1).max(1) as f64;
    let line = |of: fn(&Prediction) -> u64| {
        let mut points = String::new();
        for it in predictions {
            let x = it.time_ns as f64 / end_ns * WIDTH;
            let y = HEIGHT - of(it) as f64 / most * HEIGHT;
            let _ = write!(points, "{x:.1},{y:.1} ");
        }
        points
    };
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -30 920 350" font-family="sans-serif" font-size="14">
<text y="-12">written in the next 30 s: <tspan fill="steelblue">expected</tspan> and <tspan fill="darkorange">came</tspan>, at most {}, over {}</text>
<rect width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="gray"/>
<polyline fill="none" stroke="darkorange" stroke-width="3" points="{}"/>
<polyline fill="none" stroke="steelblue" stroke-width="1.5" points="{}"/>
</svg>"#,
        record::number::bytes(most as u64),
        with_unit(end_ns, "ns"),
        line(|it| it.came_bytes),
        line(|it| it.expected_bytes),
    );
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_a_point_for_each_prediction() {
        let prediction = |time_ns, expected_bytes| Prediction {
            time_ns,
            expected_bytes,
            came_bytes: 50,
        };
        let svg = svg(&[prediction(0, 100), prediction(10, 0)]);
        assert!(svg.contains(r#"points="0.0,0.0 900.0,300.0 ""#), "{svg}");
        assert!(svg.contains(r#"points="0.0,150.0 900.0,150.0 ""#), "{svg}");
    }
}
