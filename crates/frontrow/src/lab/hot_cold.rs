//! `frontrow-lab hot-cold`: hot and cold data kept apart by page cache and device, in virtual time.

use super::collect::{aged, failed};
use super::device;
use crate::atomic_file::AtomicFile;
use crate::bench::catch_signals;
use crate::exit::Failure;
use crate::print::{json, print_text};
use ::replay::ahead::Steps;
use ::replay::heat::{Access, Figures, Minute, PageCache, Policy, phone, play, traced};
use ::replay::{Config, Input, Options};
use record::number::with_unit;
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;

/// Compare ways to keep hot and cold data apart in a host's page cache and its flash device
///
/// A phone's use goes through a modelled page cache and then through the flash core in this process,
/// in virtual time. It is generated, or block traces. The device is aged as in experiments. With
/// none it writes all data to the same blocks, with benefit it also collects by cost and benefit. With hints the host tells kinds of files. With
/// streams the device finds hot data by itself. Integrated, the host also tells how hot pages are,
/// which are dirty and which its memory will miss. Figures are of the second half of the use.
#[derive(clap::Args)]
pub struct HotCold {
    /// Block traces to play, one after another, in place of the generated use
    #[arg(value_name = "TRACE")]
    traces: Vec<PathBuf>,
    #[arg(long, default_value = "emmc", help = format!("The emulated device: {}", device::values()))]
    device: String,
    /// Memory for the page cache, in MiB; the use is played with each
    #[arg(long, value_delimiter = ',', value_name = "MIB,…", default_value = "224,320,448,640",
          value_parser = clap::value_parser!(u32).range(1..=65536))]
    memory: Vec<u32>,
    /// RAM in which the device keeps pages that will be read, in KiB
    #[arg(long, value_name = "KIB", default_value_t = 8192,
          value_parser = clap::value_parser!(u32).range(4..=262_144))]
    read_cache: u32,
    /// Seed of the generated use
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Length of the generated use, in minutes of virtual time
    #[arg(long, value_name = "N", default_value_t = 120,
          value_parser = clap::value_parser!(u32).range(2..=6000))]
    minutes: u32,
    /// Times that traces are played, one after another
    #[arg(long, value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Write a picture of what each way moved over time, with the first memory, to this SVG file
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Defaults of Linux, as for `ahead`.
const STEPS: Steps = Steps {
    step_ns: 5_000_000_000,
    expire_ns: 30_000_000_000,
};
const PAGES_OF_MIB: usize = 256;

#[derive(Serialize)]
struct Row {
    memory_mib: u32,
    policy: Policy,
    #[serde(flatten)]
    figures: Figures,
}

/// Runs the subcommand.
pub fn run(args: HotCold) -> Result<(), Failure> {
    let stop = catch_signals()?;
    let picture = args.picture.as_deref().map(AtomicFile::create);
    let picture = picture.transpose()?;
    let (config, image) = aged(&args.device, &stop)?;
    let accesses = accesses(&args, &config)?;
    let mut rows = Vec::new();
    for &memory_mib in &args.memory {
        let pages = memory_mib as usize * PAGES_OF_MIB;
        let sent = PageCache::new(pages, STEPS).pass(&accesses);
        for policy in Policy::ALL {
            let mut parameters = policy.parameters();
            parameters.push(("read_cache_kib", u64::from(args.read_cache)));
            let config = config.with(&parameters).map_err(|it| failed(it.into()))?;
            let figures = play(&config, &image, policy, &sent, &stop).map_err(failed)?;
            rows.push(Row {
                memory_mib,
                policy,
                figures,
            });
        }
    }
    if let Some(file) = picture {
        file.write(svg(&rows).as_bytes())?;
    }
    match args.json {
        true => print_text(&json(&rows)?),
        false => print_text(&text(&rows)),
    }
}

fn accesses(args: &HotCold, config: &Config) -> Result<Vec<Access>, Failure> {
    let capacity = config.capacity_pages();
    if args.traces.is_empty() {
        return Ok(phone(capacity, args.minutes, args.seed));
    }
    let mut all: Vec<Access> = Vec::new();
    for _ in 0..args.rounds {
        for path in &args.traces {
            let input = Input::open(path).map_err(|error| failed(error.into()))?;
            let trace = ::replay::read(input, &Options::default()).map_err(failed)?;
            let begin_ns = all.last().map_or(0, |it| it.time_ns);
            let accesses = traced(&trace.into_blocks(), capacity);
            all.extend(accesses.into_iter().map(|it| Access {
                time_ns: it.time_ns + begin_ns,
                ..it
            }));
        }
    }
    Ok(all)
}

fn text(rows: &[Row]) -> String {
    let mut text = format!(
        "{:>6} {:<11} {:>17} {:>18} {:>10} {:>10} {:>9} {:>6}\n{:>6} {:<11}",
        "memory", "", "read", "commit", "written", "collected", "from RAM", "WA", "MiB", "policy"
    );
    let _ = writeln!(text, " {0:>9} {1:>8} {0:>9} {1:>8}", "mean", "p99");
    for row in rows {
        let figures = &row.figures;
        let _ = write!(text, "{:>6} {:<11}", row.memory_mib, row.policy.name());
        for times in [&figures.read, &figures.commit] {
            let of = |ns: f64| with_unit(ns, "ns");
            let [mean, p99] = match times {
                Some(times) => [of(times.mean_ns), of(times.p99_ns as f64)],
                None => ["-".to_owned(), "-".to_owned()],
            };
            let _ = write!(text, " {mean:>9} {p99:>8}");
        }
        let bytes = |pages: u64| record::number::bytes(pages * 4096);
        let _ = writeln!(
            text,
            " {:>10} {:>10} {:>9} {:>6.3}",
            bytes(figures.counters.host_write_pages),
            bytes(figures.counters.collected_pages),
            bytes(figures.counters.read_cache_hit_pages),
            figures.write_amplification.unwrap_or(1.0),
        );
    }
    text
}

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 300.0;
const COLORS: [&str; 5] = ["gray", "black", "darkorange", "steelblue", "seagreen"];

/// Pages moved for each written up to each minute, a line for each policy.
fn svg(rows: &[Row]) -> String {
    let rows = &rows[..rows.len().min(Policy::ALL.len())];
    let lines: Vec<Vec<f64>> = rows.iter().map(|it| moved(&it.figures.minutes)).collect();
    let most = lines.iter().flatten().copied().fold(0.01, f64::max);
    let mut drawn = String::new();
    let mut names = String::new();
    for ((row, line), color) in rows.iter().zip(&lines).zip(COLORS) {
        let mut points = String::new();
        for (minute, value) in line.iter().enumerate() {
            let x = (minute + 1) as f64 / line.len() as f64 * WIDTH;
            let y = HEIGHT - value / most * HEIGHT;
            let _ = write!(points, "{x:.1},{y:.1} ");
        }
        let _ = writeln!(
            drawn,
            r#"<polyline fill="none" stroke="{color}" stroke-width="2" points="{points}"/>"#
        );
        let _ = write!(
            names,
            r#" <tspan fill="{color}">{}</tspan>"#,
            row.policy.name()
        );
    }
    let minutes = lines.first().map_or(0, Vec::len);
    let memory = rows.first().map_or(0, |it| it.memory_mib);
    format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="-10 -30 920 350" font-family="sans-serif" font-size="14">
<text y="-12">pages moved for each page written in ten minutes, at most {most:.2}, over {minutes} minutes with {memory} MiB:{names}</text>
<rect width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="gray"/>
{drawn}</svg>
"#
    )
}

/// The share in the ten minutes up to each one.
fn moved(minutes: &[Minute]) -> Vec<f64> {
    let share = |end: usize| {
        let last = &minutes[end.saturating_sub(10)..end];
        let written: u64 = last.iter().map(|it| it.written_pages).sum();
        let moved: u64 = last.iter().map(|it| it.moved_pages).sum();
        moved as f64 / written.max(1) as f64
    };
    (1..=minutes.len()).map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_a_line_of_shares() {
        let minute = |written_pages, moved_pages| Minute {
            written_pages,
            moved_pages,
        };
        assert_eq!(moved(&[minute(10, 5), minute(10, 0)]), [0.5, 0.25]);
        assert_eq!(moved(&[minute(0, 0)]), [0.0]);
    }
}
