//! The rows that the linker writes, with the numbers it gives them and its counts of missing ties.

use super::Foreground;
use crate::event::{Dev, Lost};
use crate::recording::{Disk, Header, Partition, Target};
use crate::store::{Error, Store};
use crate::tables;

/// How often something could not be linked, and out of how many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    missing: u64,
    all: u64,
}

impl Count {
    /// Counts `all` things, of which `missing` could not be linked.
    pub fn add(&mut self, all: u64, missing: u64) {
        self.all += all;
        self.missing += missing;
    }

    /// Counts one thing, which could be linked if `is_linked`.
    pub fn one(&mut self, is_linked: bool) {
        self.add(1, u64::from(!is_linked));
    }
}

/// Counts of things that could not be linked, by kind.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    pub requests_without_bio: Count,
    pub requests_with_untold_bytes: Count,
    pub bios_without_task: Count,
    pub written_pages_without_dirtier: Count,
    pub written_metadata_without_dirtier: Count,
    pub completions_without_request: Count,
    pub waits_without_request: Count,
}

impl Counts {
    /// The counts with their names in the table `unlinked`, in its order.
    fn named(&self) -> [(&'static str, Count); 7] {
        [
            ("requests without bio", self.requests_without_bio),
            (
                "requests with untold bytes",
                self.requests_with_untold_bytes,
            ),
            ("bios without task", self.bios_without_task),
            (
                "written pages without dirtier",
                self.written_pages_without_dirtier,
            ),
            (
                "written metadata pages without dirtier",
                self.written_metadata_without_dirtier,
            ),
            (
                "completions without request",
                self.completions_without_request,
            ),
            ("waits without request", self.waits_without_request),
        ]
    }
}

/// The tables as far as they are filled.
#[derive(Debug)]
pub struct Rows {
    pub store: Store,
    pub counts: Counts,
    links: u64,
    waits: u64,
}

impl Rows {
    /// Begins with the rows of the recording as a whole, its disks and their partitions.
    pub fn new(
        header: &Header,
        foreground: Option<&Foreground>,
        store: Store,
    ) -> Result<Rows, Error> {
        let mut rows = Rows {
            store,
            counts: Counts::default(),
            links: 0,
            waits: 0,
        };
        rows.recording(header, foreground)?;
        rows.disks(header)?;
        Ok(rows)
    }

    /// Adds a link with the next `link_id`.
    pub fn link(&mut self, mut row: tables::Link) -> Result<(), Error> {
        self.links += 1;
        row.link_id = self.links;
        self.store.add(&row)
    }

    /// Adds a wait with the next `wait_id`, which it returns.
    pub fn wait(&mut self, mut row: tables::Wait) -> Result<u64, Error> {
        self.waits += 1;
        row.wait_id = self.waits;
        self.store.add(&row)?;
        Ok(row.wait_id)
    }

    /// Adds a property of the recording.
    pub fn property(&mut self, name: &str, value: impl ToString) -> Result<(), Error> {
        self.store.add(&tables::Property {
            name: name.to_owned(),
            value: value.to_string(),
        })
    }

    /// Adds a number of events that the recorder lost.
    pub fn lost(&mut self, time_ns: u64, lost: Lost) -> Result<(), Error> {
        self.store.add(&tables::Lost {
            time_ns,
            kind: lost.kind.name(),
            events: lost.count,
        })
    }

    /// Adds the counts of what could not be linked.
    pub fn write_counts(&mut self) -> Result<(), Error> {
        for (kind, count) in self.counts.named() {
            self.store.add(&tables::Unlinked {
                kind,
                missing: count.missing,
                total: count.all,
            })?;
        }
        Ok(())
    }

    fn recording(&mut self, header: &Header, foreground: Option<&Foreground>) -> Result<(), Error> {
        let properties = [
            ("frontrow", header.frontrow.clone()),
            ("kernel", header.kernel.clone()),
            ("machine", header.machine.clone()),
            ("page_bytes", header.page_bytes.to_string()),
            ("cpus", header.cpus.to_string()),
            ("begin_ns", header.begin_ns.to_string()),
            ("realtime_offset_ns", header.realtime_offset_ns.to_string()),
            ("target", target(&header.target, foreground)),
        ];
        for (name, value) in properties {
            // Names and commands may contain line ends; each value is one line.
            let words: Vec<&str> = value.split_whitespace().collect();
            self.property(name, words.join(" "))?;
        }
        for sentence in &header.missing {
            self.property("missing", sentence)?;
        }
        Ok(())
    }

    fn disks(&mut self, header: &Header) -> Result<(), Error> {
        for disk in &header.disks {
            self.store.add(&disk_row(header, disk))?;
            for part in &disk.partitions {
                self.store.add(&partition_row(header, disk, part))?;
            }
        }
        Ok(())
    }
}

/// The foreground as the report names it; without one of its own, the recording's target.
fn target(recorded: &Target, foreground: Option<&Foreground>) -> String {
    match (recorded, foreground) {
        (_, Some(Foreground::Name(name))) => name.clone(),
        (_, Some(Foreground::Everybody)) | (Target::System, None) => "everybody".to_owned(),
        (_, Some(Foreground::Process(pid))) | (Target::Process { pid }, None) => {
            format!("process {pid}")
        }
        (_, Some(Foreground::Cgroup(path))) | (Target::Cgroup { path, .. }, None) => {
            format!("cgroup {path}")
        }
        (Target::Command { command, .. }, None) => command.join(" "),
    }
}

fn disk_row(header: &Header, disk: &Disk) -> tables::Device {
    tables::Device {
        name: disk.name.clone(),
        sectors: Some(disk.sectors),
        scheduler: Some(disk.scheduler.clone()),
        nr_requests: Some(disk.nr_requests.into()),
        ..device_row(header, disk.dev)
    }
}

fn partition_row(header: &Header, disk: &Disk, part: &Partition) -> tables::Device {
    tables::Device {
        name: part.name.clone(),
        disk_id: Some(disk.dev.0.into()),
        start_sector: Some(part.start_sector),
        sectors: Some(part.sectors),
        ..device_row(header, part.dev)
    }
}

/// The columns that disks and partitions have in common.
fn device_row(header: &Header, dev: Dev) -> tables::Device {
    let mounted = header.mounts.iter().find(|mount| mount.dev == dev);
    tables::Device {
        device_id: dev.0.into(),
        number: dev.to_string(),
        mounted_at: mounted.map(|mount| mount.path.clone()),
        file_system: mounted.map(|mount| mount.kind.clone()),
        ..tables::Device::default()
    }
}
