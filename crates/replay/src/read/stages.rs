//! Requests by device, and by the stage at which the trace has them. One request may be in a trace
//! three times: when it is queued as a bio, when the driver gets it, and when it is complete. It is
//! played once, from the stage that says most.

use super::{Requests, of_sectors};
use crate::account::{Account, Fate};
use crate::{Kind, Operation};

/// Most devices that are told apart.
const DEVICES_LIMIT: usize = 4096;

/// Most devices that an error names.
const NAMED: usize = 12;

/// Stages of a request, by what they tell, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The driver gets it.
    Issued,
    /// It is queued as a bio: all that a device without requests has, such as dm, md and zram.
    Queued,
    /// It is complete.
    Completed,
}

impl Stage {
    const ALL: [Stage; 3] = [Stage::Issued, Stage::Queued, Stage::Completed];

    fn note(self) -> Option<&'static str> {
        match self {
            Stage::Issued => None,
            Stage::Queued => Some(
                "the trace has no requests that a driver got: played are the bios that were queued (Q), as of dm, md and zram",
            ),
            Stage::Completed => Some(
                "the trace has completions only (C): each is played at the time at which it ended",
            ),
        }
    }
}

/// A request of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Played(Operation),
    /// The reason, and whether it may have moved data.
    LeftOut(&'static str, bool),
}

/// The requests of each device.
#[derive(Default)]
pub(super) struct Stages {
    /// The device that the caller asked for.
    wanted: Option<String>,
    devices: Vec<Device>,
    /// Index of the last event's device.
    last: usize,
    /// Nobody said which of several devices is meant: their requests are only counted.
    ambiguous: bool,
}

#[derive(Default)]
struct Device {
    name: String,
    counts: [u64; 3],
    played: [Vec<Operation>; 3],
    accounts: [Account; 3],
    /// Kind, offset and size of requests that the driver put back and has not got again.
    put_back: Vec<(Kind, u64, u64)>,
}

/// Account of the second issue of such a request.
const ISSUED_AGAIN: &str =
    "issued again after the driver put them back, played at their first issue";

impl Device {
    fn stage(&self) -> Option<Stage> {
        Stage::ALL
            .into_iter()
            .find(|it| self.counts[*it as usize] > 0)
    }

    /// Whether the driver put this request back before. It has few of them at a time.
    fn takes_again(&mut self, operation: &Operation) -> bool {
        let extent = extent_of(operation);
        let at = self.put_back.iter().position(|it| *it == extent);
        let Some(at) = at else {
            return false;
        };
        self.put_back.swap_remove(at);
        true
    }
}

fn extent_of(operation: &Operation) -> (Kind, u64, u64) {
    let Operation {
        kind,
        offset_bytes,
        size_bytes,
        ..
    } = *operation;
    (kind, offset_bytes, size_bytes)
}

impl Stages {
    pub(super) fn of(wanted: Option<&str>) -> Self {
        Stages {
            wanted: wanted.map(str::to_owned),
            ..Stages::default()
        }
    }

    /// # Errors
    /// A sentence if there are more devices than a machine has.
    pub(super) fn take(
        &mut self,
        device: &str,
        stage: Stage,
        request: Request,
    ) -> Result<(), String> {
        let at = self.index(device)?;
        let is_meant = self.wanted.as_deref().is_none_or(|it| it == device);
        let device = &mut self.devices[at];
        let first = device.counts[stage as usize] == 0;
        device.counts[stage as usize] += 1;
        if stage == Stage::Issued && first {
            for other in [Stage::Queued, Stage::Completed] {
                device.played[other as usize] = Vec::new();
            }
            self.see_issuer();
        }
        let device = &mut self.devices[at];
        let is_known_otherwise =
            stage != Stage::Issued && device.counts[Stage::Issued as usize] > 0;
        if !is_meant || self.ambiguous || is_known_otherwise {
            return Ok(());
        }
        match request {
            Request::Played(operation)
                if stage == Stage::Issued && device.takes_again(&operation) =>
            {
                device.accounts[stage as usize].leave_out(ISSUED_AGAIN, 1, 0);
            }
            Request::Played(operation) => {
                device.accounts[stage as usize].count(&Fate::Played, 1);
                device.played[stage as usize].push(operation);
            }
            Request::LeftOut(reason, moves) => {
                device.accounts[stage as usize].leave_out(reason, 1, u64::from(moves));
            }
        }
        Ok(())
    }

    /// Hears that the driver put a request back, which the trace has once more when the driver gets it again.
    ///
    /// # Errors
    /// As [`Stages::take`].
    pub(super) fn put_back(&mut self, device: &str, request: Request) -> Result<(), String> {
        let at = self.index(device)?;
        let device = &mut self.devices[at];
        if let Request::Played(operation) = request
            && device.counts[Stage::Issued as usize] > 0
        {
            device.put_back.push(extent_of(&operation));
        }
        Ok(())
    }

    fn index(&mut self, name: &str) -> Result<usize, String> {
        if self
            .devices
            .get(self.last)
            .is_some_and(|it| it.name == name)
        {
            return Ok(self.last);
        }
        let at = self.devices.iter().position(|it| it.name == name);
        self.last = match at {
            Some(at) => at,
            None if self.devices.len() == DEVICES_LIMIT => {
                return Err("the trace has more devices than a machine has".to_owned());
            }
            None => {
                self.devices.push(Device {
                    name: name.to_owned(),
                    ..Device::default()
                });
                self.devices.len() - 1
            }
        };
        Ok(self.last)
    }

    /// Gives up what is held of all devices once two are candidates.
    fn see_issuer(&mut self) {
        let issuers = self
            .devices
            .iter()
            .filter(|it| it.stage() == Some(Stage::Issued));
        if self.wanted.is_none() && issuers.count() > 1 {
            self.ambiguous = true;
            self.devices
                .iter_mut()
                .for_each(|it| it.played = Default::default());
        }
    }

    /// Number of operations that are held.
    pub(super) fn held(&self) -> usize {
        let played = self.devices.iter().flat_map(|it| &it.played);
        let put_back = self.devices.iter().map(|it| it.put_back.len());
        played.map(Vec::len).chain(put_back).max().unwrap_or(0)
    }

    /// Hands over the requests of the one device that is meant.
    ///
    /// # Errors
    /// A sentence that names the devices, if it is not clear which one is meant.
    pub(super) fn finish(&mut self, requests: &mut Requests) -> Result<(), String> {
        let devices = std::mem::take(&mut self.devices);
        let Some(best) = Stage::ALL
            .into_iter()
            .find(|stage| devices.iter().any(|it| it.stage() == Some(*stage)))
        else {
            return Ok(());
        };
        let meant: Vec<usize> = match &self.wanted {
            Some(wanted) => (0..devices.len())
                .filter(|it| devices[*it].name == *wanted)
                .collect(),
            None => (0..devices.len())
                .filter(|it| devices[*it].stage() == Some(best))
                .collect(),
        };
        let [meant] = meant.as_slice() else {
            return Err(choose(&devices, self.wanted.as_deref()));
        };
        let others = devices.iter().enumerate().filter(|(at, _)| at != meant);
        let others: u64 = others
            .filter_map(|(_, it)| it.stage().map(|stage| it.counts[stage as usize]))
            .sum();
        let Some(device) = devices.into_iter().nth(*meant) else {
            return Ok(());
        };
        let Some(stage) = device.stage() else {
            return Ok(());
        };
        let [issued, queued, completed] = device.played;
        // They are taken over, not copied: a trace is long.
        requests.operations = match stage {
            Stage::Issued => issued,
            Stage::Queued => queued,
            Stage::Completed => completed,
        };
        let mut account = device.accounts[stage as usize].clone();
        account.leave_out("of other devices", others, 0);
        if let Some(note) = stage.note() {
            account.note(note);
        }
        requests.account.merge(account);
        Ok(())
    }
}

fn choose(devices: &[Device], wanted: Option<&str>) -> String {
    let mut named: Vec<String> = devices
        .iter()
        .take(NAMED)
        .filter_map(|it| {
            let count = it.counts[it.stage()? as usize];
            Some(format!("{} ({count})", it.name))
        })
        .collect();
    if devices.len() > NAMED {
        named.push(format!("{} more", devices.len() - NAMED));
    }
    let named = named.join(", ");
    match wanted {
        Some(wanted) => format!("it has no requests of device {wanted}, but of {named}"),
        None => {
            format!("it has requests of several devices, {named}: choose one with --trace-device")
        }
    }
}

/// The request of an event as the block layer's tracepoints print it: kind of operation in `rwbs`
/// (`blk_fill_rwbs` in kernel/trace/blktrace.c), first sector and number of sectors.
///
/// # Errors
/// A sentence if no device has such sectors.
pub(super) fn of_event(
    time_ns: u64,
    rwbs: &str,
    extent: Option<(u64, u64)>,
    lane: u32,
) -> Result<Request, String> {
    let flush = || of_sectors(time_ns, Kind::Flush, 0, 0, lane).map(Request::Played);
    // The flush machinery has split requests by the time of their issue (block/blk-flush.c). A
    // request that asks for a flush and moves nothing is only a flush.
    let flushes = rwbs.starts_with('F');
    match (kind(rwbs), extent) {
        (Some(Kind::Flush), _) => flush(),
        (Some(_), None | Some((_, 0))) if flushes => flush(),
        (Some(_), Some((_, 0))) => Ok(Request::LeftOut("requests that move nothing", false)),
        (Some(kind), Some((sector, sectors))) => {
            of_sectors(time_ns, kind, sector, sectors, lane).map(Request::Played)
        }
        (Some(_), None) => Ok(Request::LeftOut(PASSTHROUGH, true)),
        (None, _) => Ok(Request::LeftOut(PASSTHROUGH, true)),
    }
}

/// Commands of programs to the drive itself, such as those of smartctl.
const PASSTHROUGH: &str = "passthrough requests";

/// An F in the first place is a flush; one after the direction is FUA. `None` for a request of
/// another kind.
fn kind(rwbs: &str) -> Option<Kind> {
    let rest = rwbs.strip_prefix('F').unwrap_or(rwbs);
    match rest.bytes().next() {
        Some(b'R') => Some(Kind::Read),
        Some(b'W') => Some(Kind::Write),
        Some(b'D') => Some(Kind::Discard),
        _ if rwbs.starts_with('F') => Some(Kind::Flush),
        _ => None,
    }
}
