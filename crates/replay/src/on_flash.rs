//! Replay through the flash core in this process. Time is virtual, so the same trace on the
//! same device gives the same figures everywhere; each page that is read is held against what
//! was written to it.

use crate::flash::{Command, Config, Counters, Flash};
use crate::packing::Packing;
use crate::schedule::{Pace, Schedule};
use crate::trace::{Kind, Trace};
use crate::{Error, Stopwatch, TimesByKind};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};

/// How full the device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Fill {
    /// Share of the device that the trace's pages take, in per cent: 1 to 100. They are
    /// written once, in order, before the trace begins.
    pub fill_percent: u32,
    /// Flash beyond what the host sees, in per cent of it.
    pub spare_percent: u32,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct OnFlash {
    /// What the host sees of the device.
    pub capacity_bytes: u64,
    /// How full it was.
    #[serde(flatten)]
    pub fill: Fill,
    /// Operations, the repetitions counted.
    pub operations: u64,
    /// Pages of 4 KB that they read and wrote.
    pub page_operations: u64,
    /// The device's time from the first operation to the last end.
    pub virtual_ns: u64,
    /// What operations took, in the device's time.
    pub times: TimesByKind,
    /// What the device did.
    pub counters: Counters,
    /// Programmed over written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_amplification: Option<f64>,
}

/// Plays `trace` `loops` times.
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

/// A command in a slot of the device.
#[derive(Clone, Debug)]
struct Sent {
    /// The operation.
    index: usize,
    command: Command,
    /// For each page, of a read: the version that was acknowledged when it was sent; of a
    /// write or discard: its own.
    versions: Vec<u32>,
}

/// An operation that is under way.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// The operation.
    index: usize,
    issued_ns: u64,
    /// Commands that have not ended, plus one while some are still to be sent.
    left: u32,
}

/// What a page's word may be: versions count writes and discards of it.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    issued: u32,
    acknowledged: u32,
    /// The version that emptied it last.
    emptied: u32,
    /// Writes and discards of it that have not ended, and the version of the first of them.
    under_way: u32,
    first: u32,
    /// A write and a discard of it overlap: the device may do them in either order.
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
        // What is under way has the same kind, or else it is in disorder already.
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
    /// For each operation where its first page is on this device.
    first: Vec<u32>,
    now_ns: u64,
    pages: Vec<Page>,
    sent: Vec<Option<Sent>>,
    /// Few at a time.
    open: Vec<Open>,
    watches: [Stopwatch; 4],
    operations: u64,
    page_operations: u64,
    progress: &'a mut dyn FnMut(u64),
    stop: &'a AtomicBool,
}

/// What is being played, and when that began; nothing during the filling.
type Playing<'s, 'b, 't> = Option<(&'s mut Schedule<'b>, &'t Trace, u64)>;

/// Operations between two looks at the flag that ends it all.
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

    /// Writes every page once.
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

    /// Sends an operation's commands, and waits for slots where there are none.
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

    /// For the filling, which no schedule knows of.
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

    /// Takes back what has ended; if nothing has, lets time go on to the next event, or to
    /// `due_ns` if that is before.
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

    /// Whether there was anything to take back.
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

    /// Acknowledges what was written, and holds what was read against it.
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

    /// Where an operation that is under way is listed.
    fn open_at(&self, index: usize) -> usize {
        let mut open = self.open.iter();
        open.rposition(|it| it.index == index)
            .expect("it is under way")
    }

    /// One of the commands of an operation has ended, or the last of them was sent.
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

/// In place of an operation's index.
const FILLING: usize = usize::MAX;

/// What a page holds.
fn word(lba: u32, version: u32) -> u64 {
    u64::from(lba) << 32 | u64::from(version)
}

/// Whether a read that was sent when version `least` was acknowledged may have found this.
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
