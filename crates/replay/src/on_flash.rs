//! Replay through the flash core in this process.
//!
//! Time is virtual, so the same trace on the same device gives the same figures everywhere. Each
//! page that is read is compared with what was written to it.

use crate::flash::{Command, Config, Counters, Flash};
use crate::packing::Packing;
use crate::schedule::{Pace, Schedule};
use crate::trace::{Kind, Trace};
use crate::{Error, Stopwatch, TimesByKind};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};

/// Fill level and spare flash of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fill {
    /// Share of the device that the trace's pages take, in per cent from 1 to 100. They are written
    /// once, in order, before the trace begins.
    pub fill_percent: u32,
    /// Spare flash that the host does not see, in per cent of the capacity.
    pub spare_percent: u32,
}

/// Results of a replay on flash.
#[derive(Clone, Debug, Serialize)]
pub struct OnFlash {
    /// Capacity that the host sees, in bytes.
    pub capacity_bytes: u64,
    /// Fill level and spare flash of the device.
    #[serde(flatten)]
    pub fill: Fill,
    /// Number of operations in all repetitions.
    pub operations: u64,
    /// Number of pages of 4 KB that they read and wrote.
    pub page_operations: u64,
    /// Virtual time from the first issue to the last end, in nanoseconds.
    pub virtual_ns: u64,
    /// Times of operations by kind, in virtual time.
    pub times: TimesByKind,
    /// Counters of the device during the replay.
    pub counters: Counters,
    /// Pages programmed for each page written; None if none was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_amplification: Option<f64>,
}

/// Plays `trace` `loops` times on a device that was filled before.
///
/// # Errors
/// [`Error::Flash`], [`Error::Failed`], [`Error::Wrong`], [`Error::TooSmall`] and, when `stop`
/// becomes true, [`Error::Interrupted`].
pub fn on_flash(
    trace: &Trace,
    pace: Pace,
    loops: u32,
    config: &Config,
    fill: Fill,
    progress: &mut dyn FnMut(u64),
    stop: &AtomicBool,
) -> Result<OnFlash, Error> {
    let packing = Packing::of(trace);
    let capacity = (packing.pages() * 100).div_ceil(u64::from(fill.fill_percent).max(1));
    let capacity = u32::try_from(capacity).map_err(|_| Error::TooSmall {
        target: "the largest emulated device".to_owned(),
        needed_bytes: capacity.saturating_mul(crate::flash::PAGE_BYTES),
        size_bytes: u64::from(u32::MAX) * crate::flash::PAGE_BYTES,
    })?;
    let config = config.sized(capacity.max(1), fill.spare_percent);
    let mut player = Player::new(&config, (trace, &packing), progress, stop)?;
    player.fill()?;
    player.flash.reset_counters();
    let begin_ns = player.now_ns;
    for _ in 0..loops {
        player.play(trace, pace)?;
    }
    Ok(OnFlash {
        capacity_bytes: u64::from(config.capacity_pages()) * crate::flash::PAGE_BYTES,
        fill,
        operations: player.operations,
        page_operations: player.page_operations,
        virtual_ns: player.now_ns - begin_ns,
        times: TimesByKind::of(&player.watches),
        write_amplification: player.flash.counters().write_amplification(),
        counters: player.flash.counters(),
    })
}

/// A command in flight.
#[derive(Clone, Debug)]
struct Sent {
    /// Index of its operation.
    index: usize,
    command: Command,
    /// One version for each page. For a read it is the version that was acknowledged when the read
    /// was sent. For a write or discard it is the version that it makes.
    versions: Vec<u32>,
}

/// An operation in flight.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Index of the operation.
    index: usize,
    issued_ns: u64,
    /// Number of its commands in flight, plus 1 while some are still to be sent.
    left: u32,
}

/// Versions of a page, which count its writes and discards.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    issued: u32,
    acknowledged: u32,
    /// Version of the last discard.
    emptied: u32,
    /// Number of its writes and discards in flight, and the version of the first of them.
    under_way: u32,
    first: u32,
    /// A write and a discard in flight overlap: the device may do them in either order.
    disordered: bool,
}

impl Page {
    fn issue(&mut self, empties: bool) -> u32 {
        self.issued += 1;
        if self.under_way == 0 {
            self.first = self.issued;
            self.disordered = false;
        }
        self.under_way += 1;
        // All writes and discards in flight have the same kind, unless they are in disorder
        // already.
        let last_empties = self.emptied == self.issued - 1;
        self.disordered |= self.under_way > 1 && last_empties != empties;
        if empties {
            self.emptied = self.issued;
        }
        self.issued
    }

    fn acknowledge(&mut self, version: u32) {
        self.under_way -= 1;
        let in_force = if self.disordered { self.first } else { version };
        self.acknowledged = self.acknowledged.max(in_force);
    }
}

struct Player<'a> {
    flash: Flash,
    /// First page on this device of each operation.
    first: Vec<u32>,
    now_ns: u64,
    pages: Vec<Page>,
    sent: Vec<Option<Sent>>,
    /// Operations in flight; they are few.
    open: Vec<Open>,
    watches: [Stopwatch; 4],
    operations: u64,
    page_operations: u64,
    progress: &'a mut dyn FnMut(u64),
    stop: &'a AtomicBool,
}

/// The schedule, the trace and the time of its begin; None while the device is filled.
type Playing<'s, 'b, 't> = Option<(&'s mut Schedule<'b>, &'t Trace, u64)>;

/// Number of operations between two checks of the stop flag.
const BETWEEN_LOOKS: u64 = 4096;

impl<'a> Player<'a> {
    fn new(
        config: &Config,
        (trace, packing): (&Trace, &Packing),
        progress: &'a mut dyn FnMut(u64),
        stop: &'a AtomicBool,
    ) -> Result<Self, Error> {
        let pages = trace.operations().iter().map(|it| it.pages());
        let first = pages.map(|it| it.map_or(0, |(first, _)| packing.page(first) as u32));
        Ok(Player {
            flash: Flash::new(config)?,
            now_ns: 0,
            pages: vec![Page::default(); packing.pages() as usize],
            first: first.collect(),
            sent: vec![None; config.queue_depth() as usize],
            open: Vec::new(),
            watches: std::array::from_fn(|_| Stopwatch::new()),
            operations: 0,
            page_operations: 0,
            progress,
            stop,
        })
    }

    /// Writes every page once, in order.
    fn fill(&mut self) -> Result<(), Error> {
        let pages = self.pages.len() as u32;
        let most = self.flash.command_pages();
        let mut lba = 0;
        while lba < pages {
            let command = Command::Write {
                lba,
                pages: most.min(pages - lba),
                fua: false,
            };
            self.send(FILLING, command)?;
            lba += most;
        }
        self.send(FILLING, Command::Flush)?;
        while self.sent.iter().any(Option::is_some) {
            self.step(None, None)?;
        }
        Ok(())
    }

    fn play(&mut self, trace: &Trace, pace: Pace) -> Result<(), Error> {
        let mut schedule = Schedule::new(trace, pace);
        let begin_ns = self.now_ns;
        while !schedule.is_over() {
            match schedule.peek() {
                Some((due_ns, index)) if begin_ns + due_ns <= self.now_ns => {
                    schedule.issue();
                    self.issue(&mut schedule, trace, index, begin_ns)?;
                }
                next => {
                    let due_ns = next.map(|(due_ns, _)| begin_ns + due_ns);
                    self.step(due_ns, Some((&mut schedule, trace, begin_ns)))?;
                }
            }
        }
        Ok(())
    }

    /// Sends the commands of an operation, and waits for slots where none is free.
    fn issue(
        &mut self,
        schedule: &mut Schedule,
        trace: &Trace,
        index: usize,
        begin_ns: u64,
    ) -> Result<(), Error> {
        self.operations += 1;
        if self.operations.is_multiple_of(BETWEEN_LOOKS) {
            (self.progress)(self.operations);
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
        }
        self.open.push(Open {
            index,
            issued_ns: self.now_ns,
            left: 1,
        });
        let operation = trace.operations()[index];
        let Some((first, end)) = operation.pages() else {
            self.send_of(schedule, trace, index, begin_ns, Command::Flush)?;
            return self.ended(index, schedule, trace, begin_ns);
        };
        let mut lba = self.first[index];
        let mut left = (end - first) as u32;
        let most = match operation.kind {
            Kind::Discard => u32::MAX,
            _ => self.flash.command_pages(),
        };
        while left > 0 {
            let pages = left.min(most);
            let command = match operation.kind {
                Kind::Read => Command::Read { lba, pages },
                Kind::Write => Command::Write {
                    lba,
                    pages,
                    fua: false,
                },
                Kind::Discard | Kind::Flush => Command::Discard { lba, pages },
            };
            self.send_of(schedule, trace, index, begin_ns, command)?;
            lba += pages;
            left -= pages;
        }
        self.ended(index, schedule, trace, begin_ns)
    }

    fn send_of(
        &mut self,
        schedule: &mut Schedule,
        trace: &Trace,
        index: usize,
        begin_ns: u64,
        command: Command,
    ) -> Result<(), Error> {
        let at = self.open_at(index);
        self.open[at].left += 1;
        while !self.try_send(index, command) {
            self.step(None, Some((&mut *schedule, trace, begin_ns)))?;
        }
        Ok(())
    }

    /// Sends a command of the filling, which no schedule contains.
    fn send(&mut self, index: usize, command: Command) -> Result<(), Error> {
        while !self.try_send(index, command) {
            self.step(None, None)?;
        }
        Ok(())
    }

    fn try_send(&mut self, index: usize, command: Command) -> bool {
        let pages = &mut self.pages;
        let slot = self.flash.submit(command, self.now_ns, |lba| {
            let version = pages[lba as usize].issued + 1;
            word(lba, version)
        });
        let Some(slot) = slot else {
            return false;
        };
        let mut versions = Vec::new();
        match command {
            Command::Write { lba, pages, .. } | Command::Discard { lba, pages } => {
                let empties = matches!(command, Command::Discard { .. });
                let range = lba as usize..(lba + pages) as usize;
                let pages = self.pages[range].iter_mut();
                versions.extend(pages.map(|page| page.issue(empties)));
            }
            Command::Read { lba, pages } => {
                let range = lba as usize..(lba + pages) as usize;
                versions.extend(self.pages[range].iter().map(|page| page.acknowledged));
            }
            Command::Flush => {}
        }
        if let (Command::Read { pages, .. } | Command::Write { pages, .. }, true) =
            (command, index != FILLING)
        {
            self.page_operations += u64::from(pages);
        }
        self.sent[slot as usize] = Some(Sent {
            index,
            command,
            versions,
        });
        true
    }

    /// Takes back commands that have ended. If none has, advances time to the next event, or to
    /// `due_ns` if that is earlier.
    fn step(&mut self, due_ns: Option<u64>, mut of: Playing) -> Result<(), Error> {
        // A command that takes no time has ended when it was submitted.
        if self.take_ended(&mut of)? {
            return Ok(());
        }
        let next_ns = match (self.flash.next_ns(), due_ns) {
            (Some(event_ns), Some(due_ns)) => event_ns.min(due_ns),
            (Some(only_ns), None) | (None, Some(only_ns)) => only_ns,
            (None, None) => return Err(Error::Stuck),
        };
        self.now_ns = next_ns.max(self.now_ns);
        self.flash.run(self.now_ns);
        self.take_ended(&mut of)?;
        Ok(())
    }

    /// Takes back all commands that have ended; whether there were any.
    fn take_ended(&mut self, of: &mut Playing) -> Result<bool, Error> {
        let mut any = false;
        while let Some((slot, good)) = self.flash.take_done() {
            any = true;
            let sent = self.sent[slot as usize].take().expect("it was sent");
            if !good {
                return Err(Error::Failed(sent.index));
            }
            self.check(slot, &sent)?;
            if let (Some((schedule, trace, begin_ns)), true) = (&mut *of, sent.index != FILLING) {
                self.ended(sent.index, schedule, trace, *begin_ns)?;
            }
        }
        Ok(any)
    }

    /// Acknowledges what a command wrote, or checks what it read.
    fn check(&mut self, slot: u32, sent: &Sent) -> Result<(), Error> {
        match sent.command {
            Command::Write { lba, .. } | Command::Discard { lba, .. } => {
                for (page, version) in self.pages[lba as usize..].iter_mut().zip(&sent.versions) {
                    page.acknowledge(*version);
                }
            }
            Command::Read { lba, pages } => {
                for (at, found) in self.flash.words(slot, pages).enumerate() {
                    let page = lba + at as u32;
                    if !may_be(page, self.pages[page as usize], sent.versions[at], found) {
                        return Err(Error::Wrong { page, found });
                    }
                }
            }
            Command::Flush => {}
        }
        Ok(())
    }

    /// Index in `open` of an operation in flight.
    fn open_at(&self, index: usize) -> usize {
        let mut open = self.open.iter();
        open.rposition(|it| it.index == index)
            .expect("it is under way")
    }

    /// Notes that a command of an operation has ended, or that its last command was sent.
    fn ended(
        &mut self,
        index: usize,
        schedule: &mut Schedule,
        trace: &Trace,
        begin_ns: u64,
    ) -> Result<(), Error> {
        let at = self.open_at(index);
        self.open[at].left -= 1;
        if self.open[at].left > 0 {
            return Ok(());
        }
        let took_ns = self.now_ns - self.open.swap_remove(at).issued_ns;
        let operation = trace.operations()[index];
        let pages = operation.pages().map_or(0, |(first, end)| end - first);
        self.watches[operation.kind as usize].add(took_ns, pages);
        schedule.complete(index, self.now_ns - begin_ns);
        Ok(())
    }
}

/// Stands for the index of an operation while the device is filled.
const FILLING: usize = usize::MAX;

/// The word that a page repeats in a version.
fn word(lba: u32, version: u32) -> u64 {
    u64::from(lba) << 32 | u64::from(version)
}

/// Whether a read may find this word, if version `least` was acknowledged when it was sent.
fn may_be(lba: u32, page: Page, least: u32, found: Option<u64>) -> bool {
    match found {
        Some(0) => page.emptied >= least,
        Some(found) => {
            let version = found as u32;
            found >> 32 == u64::from(lba) && version >= least && version <= page.issued
        }
        None => false,
    }
}

#[cfg(test)]
mod tests;
