//! `frontrow launch plan`: shows the planned reads of an app's start.

use super::bench::{measured_as_json, timing_name, whether_it_gains};
use super::{latency, profile_name};
use crate::exit::Failure;
use crate::print::{json, plain, print_text};
use ::launch::WorkingSet;
use ::launch::plan::{Purpose, Request, map};
use ::launch::prepare::{DevicePlan, prepare};
use ::launch::profile::{PAGE_BYTES, Profile, Store};
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;

/// Number of rows of the map.
const ROWS: usize = 24;

#[derive(clap::Args)]
pub struct Plan {
    /// Name of the profile [default: the program's name]
    #[arg(long)]
    name: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Name of the app
    #[arg(value_name = "APP")]
    app: OsString,
}

/// Runs the subcommand.
pub fn run(args: &Plan) -> Result<(), Failure> {
    let name = profile_name(args.name.as_deref(), std::slice::from_ref(&args.app))?;
    let store = Store::of_user()?;
    let profile = store.read(&name)?;
    let mut set = WorkingSet::open(&profile.files);
    // Plan as for a cold start.
    for file in &mut set.files {
        file.missing = file.pages.clone();
    }
    let places = set.places();
    let packed: Vec<&Path> = places.packed.iter().map(|it| it.path.as_path()).collect();
    let plans = prepare(places.devices, |device| latency(&store, device));
    match args.json {
        true => print_text(&json(&as_json(&profile, &set, &packed, &plans))?),
        false => print_text(&plain(&in_words(&profile, &set, &packed, &plans))),
    }
}

fn in_words(profile: &Profile, set: &WorkingSet, packed: &[&Path], plans: &[DevicePlan]) -> String {
    let mut text = format!(
        "{}: {} pages ({:.1} MB) of {} files, touched by each of {} starts\n",
        sys::plain::name(&profile.command),
        set.profiled_pages,
        megabytes(set.profiled_pages * PAGE_BYTES),
        profile.files.len(),
        profile.runs
    );
    text += &format!("{}\n", whether_it_gains(profile));
    for (path, _) in &set.dropped {
        text += &format!(
            "not loaded, changed since or gone: {}\n",
            sys::plain::path(path)
        );
    }
    if !packed.is_empty() {
        text += &format!(
            "{} files lie in no place of a device, as in a Snap: threads unpack them ahead\n",
            packed.len()
        );
    }
    for plan in plans {
        let Sums {
            bytes,
            padding_bytes,
        } = sums(&plan.requests);
        let reads = plan.requests.len().max(1) as f64;
        text += &format!(
            "\n{}: {} requests, {:.0} KB each on average; {:.1} MB, and {:.1} MB of padding\n",
            plan.name,
            plan.requests.len(),
            (bytes + padding_bytes) as f64 / 1e3 / reads,
            megabytes(bytes),
            megabytes(padding_bytes)
        );
        if !plan.calibrated {
            text += "no gap is padded: `frontrow launch calibrate` tells which pay\n";
        }
        text += &map::draw(&plan.requests, ROWS);
    }
    text
}

fn as_json(
    profile: &Profile,
    set: &WorkingSet,
    packed: &[&Path],
    plans: &[DevicePlan],
) -> serde_json::Value {
    let devices = plans.iter().map(|plan| {
        let sums = sums(&plan.requests);
        json!({
            "device": plan.name,
            "calibrated": plan.calibrated,
            "requests": plan.requests.len(),
            "bytes": sums.bytes,
            "padding_bytes": sums.padding_bytes,
        })
    });
    json!({
        "timing": timing_name(profile.timing),
        "measured": measured_as_json(profile),
        "profiled_pages": set.profiled_pages,
        "valid_pages": set.valid_pages(),
        "dropped": set.dropped.iter().map(|(path, _)| path).collect::<Vec<_>>(),
        "unplaced": packed,
        "devices": devices.collect::<Vec<_>>(),
    })
}

struct Sums {
    bytes: u64,
    padding_bytes: u64,
}

fn sums(requests: &[Request]) -> Sums {
    let mut sums = Sums {
        bytes: 0,
        padding_bytes: 0,
    };
    for part in requests.iter().flat_map(|it| &it.parts) {
        match part.purpose {
            Purpose::Pages(_) => sums.bytes += part.length_bytes,
            _ => sums.padding_bytes += part.length_bytes,
        }
    }
    sums
}

fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
