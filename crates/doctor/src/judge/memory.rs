//! Verdicts about a lack of memory: who takes it, whose limit it is, and who is short of it.

use super::causes::Causes;
use super::{HOG_SHARE, PRESSED_UNSEEN, Verdict, whole};
use crate::cause::{Cause, Kind};
use crate::groups::Group;
use crate::observe::Observation;
use record::number;
use std::collections::BTreeSet;

/// Growth of a process's memory from which it is told of, in bytes a second.
const GROWS_BYTES_PER_S: f64 = 1e6;

/// The process whose memory grew most, if it grew much.
pub(super) fn taker(seen: &Observation) -> Option<&str> {
    let user = seen.users.iter().max_by_key(|it| it.grown_bytes)?;
    let rate = user.grown_bytes as f64 * 1e9 / seen.watched_ns.max(1) as f64;
    (rate >= GROWS_BYTES_PER_S).then_some(&user.name)
}

/// That the group of a process is at its limit, in words.
pub(super) fn limit_of(who: &str, seen: &Observation) -> Option<String> {
    let group = seen.group_of(who).filter(|it| it.is_short())?;
    let bytes = number::bytes(group.memory_bytes?);
    Some(format!(
        "{who} is in the group {}, which was at its limit of {bytes} ({}) {} times",
        group.name(),
        group.memory_file,
        group.memory_hits
    ))
}

/// Whether the CPUs are busy with reclaim. The kernel counts reclaim as memory pressure, which then
/// exceeds CPU pressure; and the process with most CPU time also waits most for memory, or no
/// process has much CPU time.
pub(super) fn frees(seen: &Observation, causes: &Causes) -> bool {
    let waits = seen.waits.iter();
    let short = waits
        .filter(|it| causes.of(it).row().kind == Kind::Memory)
        .map(|it| it.who.as_str());
    let mut short: BTreeSet<&str> = short.collect();
    short.extend(pressed(seen).and_then(|it| user_of(it, seen)));
    let hog = seen.users.iter().max_by_key(|it| it.cpu_ns);
    let is_another = hog.is_some_and(|it| {
        let share = seen.share(it.cpu_ns);
        share >= HOG_SHARE * seen.cpu_busy && !short.contains(it.name.as_str())
    });
    seen.pressure.memory_ns >= seen.pressure.cpu_ns && !short.is_empty() && !is_another
}

/// The group that was held up longest for want of memory, and is at its limit.
fn pressed(seen: &Observation) -> Option<&Group> {
    let groups = seen.groups.iter().filter(|it| it.is_short());
    let most = groups.max_by_key(|it| it.memory_ns)?;
    (seen.share(most.memory_ns) >= PRESSED_UNSEEN).then_some(most)
}

/// The process of a group that had a CPU longest.
fn user_of<'a>(group: &Group, seen: &'a Observation) -> Option<&'a str> {
    let users = seen.users.iter().filter(|it| {
        let path = it.cgroup.as_deref();
        path.is_some_and(|it| group.has(it))
    });
    let most = users.max_by_key(|it| it.cpu_ns);
    most.map(|it| it.name.as_str())
}

/// Verdict about memory pressure without observed waits, as swapping to memory (zram) has none.
pub(super) fn unseen(seen: &Observation) -> Option<Verdict> {
    let lost_ns = seen.pressure.memory_ns;
    let share = seen.share(lost_ns);
    if share < PRESSED_UNSEEN {
        return None;
    }
    let said = format!(
        "some task was short of memory {:.0} % of the time",
        share * 100.0
    );
    let is_swapping = seen.memory.swapped_in_bytes > 0;
    let cause = if is_swapping {
        Cause::Swap
    } else {
        Cause::Reclaim
    };
    let who = pressed(seen).and_then(|it| user_of(it, seen));
    let culprit = taker(seen).filter(|it| Some(*it) != who);
    let mut verdict = whole(cause, lost_ns, culprit, said);
    if let Some(who) = who {
        who.clone_into(&mut verdict.who);
        verdict.evidence.extend(limit_of(who, seen));
    }
    verdict.to_do = super::to_do::of_memory(&verdict.who, culprit, seen);
    Some(verdict)
}
