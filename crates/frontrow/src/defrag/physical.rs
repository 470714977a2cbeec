//! `frontrow defrag --mode physical`: spreads files over the device's dies, by commands of the
//! device.

use super::words::Files;
use super::{
    Args, LeftFile, MEGABYTE, bar, failed, interrupted, limit_bytes, refused_alone, shown,
    surveyed, words,
};
use crate::exit::{Exit, Failure};
use crate::print::{json, plain, print_text};
use crate::progress;
use ::layout::defrag::{
    Asked, Finding, Found, MOST_FILES, Measure, Pace, Physical, ReadTime, Rearranged, Spread,
    Tally, most_read, rearrange,
};
use serde::Serialize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::device::Device;
use sys::device::hid::Hid;

/// Output for a device that rearranges all of its data.
#[derive(Debug, Serialize)]
struct DeviceReport {
    device: String,
    #[serde(flatten)]
    rearranged: Rearranged,
}

/// Output for a device that spreads files.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) filesystem: String,
    pub(super) all: Tally,
    /// Files on half of the device's dies or fewer.
    pub(super) unspread: Vec<Finding>,
    /// Number of these files among the most read ones.
    pub(super) worth_spreading_files: u64,
    pub(super) worth_spreading_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repair: Option<Repair>,
}

/// Files that were spread, and files that were left.
#[derive(Debug, Default, Serialize)]
pub(super) struct Repair {
    pub(super) programmed_bytes: u64,
    pub(super) spread: Vec<SpreadFile>,
    pub(super) left: Vec<LeftFile>,
}

#[derive(Debug, Serialize)]
pub(super) struct SpreadFile {
    path: PathBuf,
    #[serde(flatten)]
    pub(super) spread: Spread,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) read_before: Option<ReadTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) read_after: Option<ReadTime>,
}

pub(super) fn run(args: &Args, stop: &AtomicBool) -> Result<(), Failure> {
    if let Some((device, hid)) = hid(args) {
        return rearrange_device(args, &device, &hid, stop);
    }
    let Some(physical) = Physical::of(&args.path).map_err(failed)? else {
        return Err(Failure::new(
            Exit::Unsupported,
            format_args!(
                "the device of {} neither spreads files over its dies (simflash does) nor offers \
                 UFS Host Initiated Defrag (a UFS 4.1 device, and Linux 6.18 or later): omit \
                 --mode physical",
                args.path.display()
            ),
        ));
    };
    files(args, &physical, stop)
}

/// The device's own defragmentation, if it has one.
fn hid(args: &Args) -> Option<(Device, Hid)> {
    let device = Device::resolve(&args.sysroot, &args.path.to_string_lossy()).ok()?;
    let hid = Hid::of(&device)?;
    Some((device, hid))
}

fn rearrange_device(
    args: &Args,
    device: &Device,
    hid: &Hid,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    if args.rate.is_some() {
        return Err(Failure::new(
            Exit::Unsupported,
            format_args!(
                "{} defragments itself at its own rate: omit --rate, and bound it by --limit",
                device.name()
            ),
        ));
    }
    let bar = progress::bar("{wide_bar} {pos} %, {eta} left");
    bar.set_length(100);
    let asked = Asked {
        only_analyse: args.check,
        limit_bytes: args.limit.map(|it| it.saturating_mul(MEGABYTE)),
    };
    let mut show = |percent| bar.set_position(u64::from(percent));
    let rearranged = rearrange(hid, asked, &mut show, stop);
    bar.finish_and_clear();
    let report = DeviceReport {
        device: device.name().to_owned(),
        rearranged: rearranged.map_err(failed)?,
    };
    match args.json {
        true => print_text(&json(&report)?),
        false => print_text(&plain(&words::rearranged(
            &report.device,
            &report.rearranged,
            &args.path,
        ))),
    }
}

fn files(args: &Args, physical: &Physical, stop: &AtomicBool) -> Result<(), Failure> {
    let bar = bar();
    let (mut survey, mut measure) = surveyed(args, Some(physical), Found::Unspread, &bar, stop)?;
    let least = args.factor.unwrap_or(0.0);
    let slow = |it: &Finding| it.read.is_none_or(|read| read.factor() >= least);
    survey.unspread.retain(slow);
    let chosen = most_read(&survey.unspread, MOST_FILES, limit_bytes(args));
    let mut report = Report {
        filesystem: survey.filesystem.to_string(),
        all: survey.all,
        worth_spreading_files: chosen.len() as u64,
        worth_spreading_bytes: chosen.iter().map(|it| it.size_bytes).sum(),
        repair: None,
        unspread: Vec::new(),
    };
    if !args.check {
        bar.set_message("files spread");
        let mut pace = Pace::new(args.rate.map(|it| it * MEGABYTE));
        let mut repair = Repair::default();
        for (done, finding) in chosen.iter().enumerate() {
            shown(&bar)(done as u64, report.worth_spreading_files);
            one(&mut repair, finding, physical, &mut pace, stop);
            if stop.load(Ordering::Relaxed) {
                bar.finish_and_clear();
                return Err(interrupted(repair.spread.len()));
            }
        }
        read_again(&mut repair, measure.as_mut(), stop)?;
        report.repair = Some(repair);
    }
    bar.finish_and_clear();
    report.unspread = survey.unspread;
    match args.json {
        true => print_text(&json(&report)?)?,
        false => print_text(&plain(&words::spread(&report, &args.path)))?,
    }
    let left = report.repair.as_ref().and_then(|it| it.left.first());
    refused_alone(left, args)
}

fn one(
    repair: &mut Repair,
    finding: &Finding,
    physical: &Physical,
    pace: &mut Pace,
    stop: &AtomicBool,
) {
    let path = finding.path.clone();
    match physical.spread(&path, pace, stop) {
        Ok(spread) => {
            repair.programmed_bytes += spread.programmed_bytes;
            repair.spread.push(SpreadFile {
                path,
                spread,
                read_before: finding.read,
                read_after: None,
            });
        }
        Err(refusal) => repair.left.push(LeftFile {
            path,
            reason: refusal.to_string(),
            refusal,
        }),
    }
}

fn read_again(
    repair: &mut Repair,
    measure: Option<&mut Measure>,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let Some(measure) = measure else {
        return Ok(());
    };
    for file in &mut repair.spread {
        file.read_after = measure.file(&file.path, stop).ok();
        if stop.load(Ordering::Relaxed) {
            return Err(failed(::layout::defrag::Error::Interrupted));
        }
    }
    Ok(())
}

impl Files for Repair {
    fn left(&self) -> &[LeftFile] {
        &self.left
    }

    fn read_times(&self) -> Vec<(Option<ReadTime>, Option<ReadTime>)> {
        let both = |it: &SpreadFile| (it.read_before, it.read_after);
        self.spread.iter().map(both).collect()
    }
}
