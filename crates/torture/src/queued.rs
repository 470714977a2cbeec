//! How many requests leave the scheduler before the driver issues them, under the kernel's own drivers
//! and under simflash, whose `in_turn` and `budget` imitate them. What has left goes in that order:
//! nothing more urgent can pass it.

use crate::beside::stream;
use crate::drivers::each;
use crate::failure::require;
use crate::test_bed::{FRONTROW, read, with_dirty_limits, write};
use crate::trace::TRACEFS;
use crate::volume::{Kind, Layout, Volume};
use crate::{Disk, Outcome, TestBed};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A scheduler that holds nothing back, and the function by which the block layer takes a request
/// out of it.
const STOCK: (&str, &str) = ("mq-deadline", "dd_dispatch_request");

/// The same of ours.
const OURS: (&str, &str) = (FRONTROW, "frontrow_dispatch");

/// One that the driver has begun, and the next one.
const MOST_OF_OURS: usize = 2;

const WATCHED: Duration = Duration::from_secs(6);

/// Enough for a writer to be ahead of each disk, and to be throttled.
const DIRTY_BYTES: &str = "67108864";

/// A way of queueing, and how many requests may have left the scheduler without being issued.
struct Expected {
    /// Disks of QEMU's.
    disks: &'static [&'static str],
    /// Parameters with which simflash is queued the same way.
    simflash: &'static str,
    most_waiting: RangeInclusive<usize>,
}

/// mmc without a command queue; SCSI with one command at a time; SCSI with many. SCSI's are issued as
/// soon as they have left.
///
/// Each run of a hardware queue ends with a request that found no tag. Of mmc's two may be under way:
/// one in which the driver waits, and one that puts its requests behind.
const EXPECTED: [Expected; 3] = [
    Expected {
        disks: &["SD card", "eMMC"],
        simflash: "queue_depth=64 in_turn=2 commands_at_once=1 write_command_ns=2000000",
        most_waiting: 4..=66,
    },
    Expected {
        disks: &["USB storage"],
        simflash: "queue_depth=1 budget=1 write_command_ns=2000000",
        most_waiting: 1..=2,
    },
    Expected {
        disks: &["virtio-scsi", "AHCI", "UAS", "UFS"],
        simflash: "queue_depth=32 budget=1 write_command_ns=2000000",
        most_waiting: 1..=33,
    },
];

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    compare(bed, crate::DISKS.iter())?;
    for expected in &EXPECTED {
        bed.replace_device(expected.simflash)?;
        let waiting = watch(bed, Layout::DEFAULT, STOCK)?;
        judge(
            bed,
            &format!("simflash {}", expected.simflash),
            &waiting,
            Some(expected),
        )?;
    }
    bed.reload()
}

/// Behind a driver that waits for the device, ours keeps what the driver has not begun.
pub(crate) fn run_in_turn(bed: &TestBed) -> Outcome<()> {
    let [in_turn, ..] = &EXPECTED;
    bed.replace_device(in_turn.simflash)?;
    let of_stock = watch(bed, Layout::DEFAULT, STOCK)?;
    judge(bed, STOCK.0, &of_stock, Some(in_turn))?;
    let of_ours = watch(bed, Layout::DEFAULT, OURS)?;
    judge(bed, OURS.0, &of_ours, None)?;
    require(of_ours.iter().all(|it| *it <= MOST_OF_OURS), || {
        let most = of_ours.iter().max();
        format!("{most:?} requests had left frontrow before the driver began the first")
    })?;
    bed.reload()
}

pub(crate) fn run_soldered(bed: &TestBed) -> Outcome<()> {
    compare(bed, crate::SOLDERED.iter())
}

fn compare(bed: &TestBed, disks: impl Iterator<Item = &'static Disk>) -> Outcome<()> {
    each(disks, bed, |bed, disk| {
        let waiting = watch(bed, Layout::on_disk(Kind::Ext4), STOCK)?;
        let expected = EXPECTED.iter().find(|it| it.disks.contains(&disk.name));
        judge(bed, disk.name, &waiting, expected)
    })
}

/// `waiting`: at each request that was issued, how many had left the scheduler, itself among them.
fn judge(bed: &TestBed, name: &str, waiting: &[usize], expected: Option<&Expected>) -> Outcome<()> {
    let most = waiting.iter().copied().max().unwrap_or(0);
    let mean = waiting.iter().sum::<usize>() as f64 / waiting.len().max(1) as f64;
    bed.remark(format!(
        "{name}: when one of {} requests was issued, {mean:.1} had left the scheduler on average, {most} at most",
        waiting.len()
    ));
    let Some(Expected { most_waiting, .. }) = expected else {
        return Ok(());
    };
    require(most_waiting.contains(&most), || {
        format!("{name}: {most} requests had left the scheduler, not {most_waiting:?}")
    })
}

/// Traces the queue while a file is written.
fn watch(
    bed: &TestBed,
    layout: Layout,
    (scheduler, dispatch): (&str, &str),
) -> Outcome<Vec<usize>> {
    bed.set("scheduler", scheduler)?;
    let volume = Volume::with(bed, layout)?;
    let stop = AtomicBool::new(false);
    let trace = with_dirty_limits("16777216", DIRTY_BYTES, || {
        thread::scope(|scope| {
            let writer = scope.spawn(|| stream(volume.path(), &stop));
            let trace = trace(dispatch);
            stop.store(true, Ordering::Relaxed);
            writer.join().expect("the writer does not panic")?;
            trace
        })
    })?;
    volume.unmount()?;
    bed.set("scheduler", "none")?;
    Ok(waiting(&trace))
}

fn trace(dispatch: &str) -> Outcome<String> {
    let probe = format!("r:pulled {dispatch} ret=$retval");
    write(&format!("{TRACEFS}/kprobe_events"), &probe)?;
    let set = |file: &str, value| write(&format!("{TRACEFS}/{file}"), value);
    set("events/kprobes/pulled/filter", "ret != 0")?;
    // Both kinds of events begin at once, or some would be counted on one side only.
    set("tracing_on", "0")?;
    set("trace", "")?;
    for value in ["1", "0"] {
        set("events/kprobes/pulled/enable", value)?;
        set("events/block/block_rq_issue/enable", value)?;
        set("tracing_on", "1")?;
        if value == "1" {
            thread::sleep(WATCHED);
            set("tracing_on", "0")?;
        }
    }
    let trace = read(&format!("{TRACEFS}/trace"))?;
    write(&format!("{TRACEFS}/trace"), "")?;
    // Opening it to write removes the probe.
    write(&format!("{TRACEFS}/kprobe_events"), "")?;
    Ok(trace)
}

/// Number of requests that had left the scheduler, at each that was issued.
fn waiting(trace: &str) -> Vec<usize> {
    let mut pulled = 0usize;
    let mut waiting = Vec::new();
    for line in trace.lines() {
        if line.contains(" pulled: ") {
            pulled += 1;
        } else if line.contains(" block_rq_issue: ") && !is_flush(line) {
            waiting.push(pulled);
            pulled = pulled.saturating_sub(1);
        }
    }
    waiting
}

/// A flush has no sectors, and passes the scheduler by.
fn is_flush(line: &str) -> bool {
    line.contains(" + 0 ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_left_is_counted_until_it_is_issued() {
        let trace = "\
# tracer: nop
 a-1 [000] d.. 1.0: pulled: (x <- dd_dispatch_request) ret=0xff
 a-1 [000] d.. 1.1: pulled: (x <- dd_dispatch_request) ret=0xfe
 a-1 [000] d.. 1.2: block_rq_issue: 179,0 WM 4096 () 8 + 8 be,0,4 [a]
 a-1 [000] d.. 1.3: block_rq_issue: 179,0 FF 0 () 0 + 0 be,0,4 [a]
 a-1 [000] d.. 1.4: block_rq_issue: 179,0 W 4096 () 16 + 8 be,0,4 [a]
 a-1 [000] d.. 1.5: block_rq_issue: 179,0 WFS 4096 () 24 + 8 be,0,4 [a]
";
        assert_eq!(waiting(trace), [2, 1, 0]);
    }
}
