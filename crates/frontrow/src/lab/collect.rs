//! `frontrow-lab collect`: garbage collection of the emulated device beside its host, in virtual time.

use super::ageing::Ageing;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::{json, print_text};
use crate::seeds::Seeds;
use ::lab::Sources;
use ::replay::beside::{Beside, Figures, Latency, Load};
use ::replay::flash::Image;
use ::replay::history::History;
use ::replay::{Config, Error};
use record::Device;
use record::number::with_unit;
use serde::Serialize;
use std::fmt::Write;
use std::sync::atomic::AtomicBool;

/// Compare how the emulated device collects garbage beside a foreground app
///
/// An app reads and commits small transactions while a background writer overwrites the device. All
/// of it runs through the flash core in this process, in virtual time, on devices that are aged as
/// in experiments. The device serves the foreground first in each run (policy=2). Collection is
/// served in order of arrival, then it yields, then the background also leaves rows free.
#[derive(clap::Args)]
pub struct Collect {
    /// The emulated devices; each needs a table [aged]
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "DEVICE,…",
        default_value = "emmc,sd,ufs"
    )]
    device: Vec<String>,
    /// Seeds of addresses, sizes and pauses: A..B (inclusive), or one number
    #[arg(long, default_value = "1..5", value_name = "A..B")]
    seeds: Seeds,
    /// Virtual time of each run, in seconds
    #[arg(long, value_name = "S", default_value_t = 60,
          value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Free rows that the background leaves to the foreground, in the last runs
    #[arg(long, value_name = "N", default_value_t = 512,
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    front_rows: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Figures of a device's runs with some parameters.
#[derive(Serialize)]
struct Row {
    device: String,
    collection: &'static str,
    #[serde(flatten)]
    figures: Figures,
}

/// Runs the subcommand.
pub fn run(args: Collect) -> Result<(), Failure> {
    let stop = catch_signals()?;
    let ways: [(&str, Vec<(&str, u64)>); 3] = [
        ("as it comes", vec![]),
        ("yields", vec![("collect_yields", 1)]),
        (
            "yields, rows left",
            vec![
                ("collect_yields", 1),
                ("front_rows", u64::from(args.front_rows)),
            ],
        ),
    ];
    let mut rows = Vec::new();
    for name in &args.device {
        let (config, image) = aged(name, &stop)?;
        for (collection, parameters) in &ways {
            let config = config.with(parameters).map_err(|it| failed(it.into()))?;
            let mut beside = Beside::default();
            for seed in args.seeds.all() {
                let seconds = args.seconds;
                let load = Load { seconds, seed };
                beside.play(&config, &image, load, &stop).map_err(failed)?;
            }
            rows.push(Row {
                device: name.clone(),
                collection,
                figures: beside.figures(),
            });
        }
    }
    match args.json {
        true => print_text(&json(&rows)?),
        false => print_text(&text(&rows)),
    }
}

/// The device of a profile with its past, which serves the foreground first.
pub(super) fn aged(name: &str, stop: &AtomicBool) -> Result<(Config, Image), Failure> {
    let device = Sources::embedded().device(name);
    let device = device.map_err(|error| Failure::new(Exit::Usage, error))?;
    let history = past(&device)?;
    let config = Config::of_profile(&device.simflash).map_err(|it| failed(it.into()))?;
    let config = config
        .with(&[("policy", 2)])
        .map_err(|it| failed(it.into()))?;
    let ageing = Ageing::default();
    let heard = &mut |done, all| ageing.hear(done, all);
    let aged = history.play(&config, 1, heard, stop).map_err(failed)?;
    Ok((config, aged.image))
}

fn past(device: &Device) -> Result<History, Failure> {
    let aged = device.aged.as_ref().ok_or_else(|| {
        let name = &device.name;
        Failure::new(
            Exit::Usage,
            format_args!("{name} has no past to collect: choose a device whose profile has [aged]"),
        )
    })?;
    Ok(History {
        filled_percent: aged.filled_percent,
        overwritten_percent: aged.overwritten_percent,
    })
}

pub(super) fn failed(error: Error) -> Failure {
    match error {
        Error::Interrupted => Failure::new(Exit::Interrupted, error),
        other => Failure::new(Exit::Usage, other),
    }
}

fn text(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<8} {:<18} {:>8} {:>8} {:>8}   {:>8} {:>8} {:>8}   {:>10}  {:>5}\n",
        "", "", "commit", "", "", "read", "", "", "background", "WA"
    );
    let _ = writeln!(
        text,
        "{:<8} {:<18} {:>8} {:>8} {:>8}   {:>8} {:>8} {:>8}",
        "device", "collection", "median", "p99", "worst", "median", "p99", "worst"
    );
    for row in rows {
        let figures = &row.figures;
        let _ = writeln!(
            text,
            "{:<8} {:<18} {}   {}   {:>8}/s  {:>5.2}",
            row.device,
            row.collection,
            times(&figures.commit),
            times(&figures.read),
            record::number::bytes(figures.background_bytes_per_s as u64),
            figures.write_amplification,
        );
    }
    text
}

fn times(latency: &Latency) -> String {
    let of = |ns: u64| format!("{:>8}", with_unit(ns as f64, "ns"));
    let [median, p99, worst] = [latency.median_ns, latency.p99_ns, latency.max_ns].map(of);
    format!("{median} {p99} {worst}")
}
