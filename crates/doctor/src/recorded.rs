//! Intervals of a recording as observations: they have waits and what disks did, and no counters of the
//! machine.

use crate::live::Waits;
use crate::machine::{Disk, Machine, Mounted};
use crate::observe::{Level, Memory, Observation, Pressure, Traffic};
use iopro::event::Dev;
use iopro::recording::Header;
use iopro::report;
use std::collections::BTreeMap;

/// The machine as far as a recording's header has it.
pub fn machine(header: &Header) -> Machine {
    let disks = header.disks.iter().map(|it| Disk {
        name: it.name.clone(),
        number: it.dev.to_string(),
        scheduler: Some(it.scheduler.clone()),
        depth: it.nr_requests.into(),
        ..Disk::default()
    });
    let mounts = header.mounts.iter().map(|it| Mounted {
        point: it.path.clone(),
        filesystem: it.kind.clone(),
        disk: disk_of(header, it.dev),
        number: it.dev.to_string(),
        ..Mounted::default()
    });
    Machine {
        disks: disks.collect(),
        mounts: mounts.collect(),
        ..Machine::default()
    }
}

/// Name of the disk with this number, or with a partition of this number.
fn disk_of(header: &Header, dev: Dev) -> Option<String> {
    let mut disks = header.disks.iter();
    let disk = disks.find(|it| it.dev == dev || it.partitions.iter().any(|part| part.dev == dev));
    disk.map(|it| it.name.clone())
}

/// Observation of an interval that had so many events.
pub fn observation(machine: &Machine, interval: &report::Waits, events: u64) -> Observation {
    let mut waits = Waits::default();
    waits.add(interval);
    let (waits, lost_events) = waits.end(events);
    let mut machine = machine.clone();
    let mut disks = Vec::with_capacity(interval.uses.len());
    for (dev, used) in &interval.uses {
        disks.push(Traffic {
            disk: named(&mut machine, *dev),
            requests: used.requests,
            request_ns: used.request_ns,
            read_bytes: used.read_bytes,
            written_bytes: used.written_bytes,
            busy_ns: used.busy_ns,
            unanswered_ns: 0,
        });
    }
    let watched_ns = interval.duration_ns;
    Observation {
        level: Level::Linked,
        watched_ns,
        linked_ns: watched_ns,
        waits,
        // A recording does not have it, so it may have been there all the time.
        pressure: Pressure {
            io_ns: watched_ns,
            memory_ns: watched_ns,
            cpu_ns: 0,
        },
        over_time: Vec::new(),
        memory: Memory::default(),
        cpu_busy: 0.0,
        users: Vec::new(),
        pieces: BTreeMap::new(),
        disks,
        held_up: Vec::new(),
        groups: Vec::new(),
        kernel_blocked: BTreeMap::new(),
        lost_events,
        machine,
    }
}

/// Name of a disk. One that came later than the header was written is called by its number.
fn named(machine: &mut Machine, dev: Dev) -> String {
    let number = dev.to_string();
    if let Some(known) = machine.disks.iter().find(|it| it.number == number) {
        return known.name.clone();
    }
    machine.disks.push(Disk {
        name: number.clone(),
        number: number.clone(),
        ..Disk::default()
    });
    number
}
