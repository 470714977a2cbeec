//! From an observation to verdicts: pure functions.

mod blame;
mod causes;
mod memory;
mod to_do;

use self::causes::Causes;
use crate::account::Account;
use crate::cause::{Cause, Kind};
use crate::machine::Disk;
use crate::observe::{HeldUp, Level, Observation, Pressure, Span, Traffic, Wait};
use crate::stall::Ended;
use record::number;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Smallest share of the observed time for a verdict.
const WORTH: f64 = 0.01;
/// Smallest share of all lost time for a verdict.
const WORTH_OF_LOST: f64 = 0.05;
/// Smallest share of the observed time that a process loses if it is held up by another.
const FELT: f64 = 0.05;
/// Share of time from which a busy disk is saturated.
const SATURATED: f64 = 0.8;
/// Smallest CPU pressure for a verdict, while all CPUs were busy.
const CPU_PRESSED: f64 = 0.1;
const CPU_BUSY: f64 = 0.5;
const CPU_FULL: f64 = 0.9;
/// Share of busy CPU time from which a process is named.
const NAMED_SHARE: f64 = 0.2;
/// The same, from which it alone keeps the CPUs busy.
const HOG_SHARE: f64 = 0.5;
/// Smallest I/O or memory pressure for a verdict without observed waits.
const PRESSED_UNSEEN: f64 = 0.1;
/// Number of samples from which a verdict is likely.
const SAMPLES: u64 = 10;

/// Confidence in a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// Each wait was linked to its cause.
    Sure,
    /// Enough samples, or the culprit is inferred from the bytes written.
    Likely,
    /// Fewer samples than a likely verdict has.
    Guess,
}

/// Advice: a command that helps, and its effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// Command to run.
    pub command: String,
    /// Effect of the command.
    pub changes: String,
    /// Command that undoes it.
    pub undo: String,
    /// Expected benefit, with the measurement it comes from.
    pub brings: &'static str,
    /// The same in a form for programs; None if the command asks for a passphrase.
    pub remedy: Option<Remedy>,
}

/// Changes that advice proposes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Remedy {
    /// Use the scheduler for a disk.
    Scheduler {
        /// Name of the disk.
        disk: String,
    },
    /// Set dirty limits for removable and slow disks.
    DirtyLimits,
}

/// A verdict: who waited, for what, and who caused it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Cause of the lost time.
    pub cause: Cause,
    /// Name of the cause.
    pub name: &'static str,
    /// Whose matter it is.
    pub kind: Kind,
    /// Process that waited most.
    pub who: String,
    /// File with most of these waits.
    pub file: Option<String>,
    /// Process, thread of the kernel or group that caused the waits, if it is another one.
    pub culprit: Option<String>,
    /// Relation of the culprit to `who`, as words that follow its name; empty for another process.
    pub relation: String,
    /// Disk that was waited for, if it is known.
    pub disk: Option<String>,
    /// Time lost, summed over tasks.
    pub lost_ns: u64,
    /// Part of the time that `who` lost.
    pub who_ns: u64,
    /// Number of waits that were linked.
    pub waits: u64,
    /// Number of samples of waits that were not.
    pub samples: u64,
    /// Longest wait; 0 if unknown.
    pub longest_ns: u64,
    /// Share of all lost time.
    pub share: f64,
    /// Confidence in the verdict.
    pub confidence: Confidence,
    /// Figures that support it.
    pub evidence: Vec<String>,
    /// Advice, if any is known.
    pub advice: Option<Advice>,
    /// What else to do, in a sentence; it was not measured what that brings.
    pub to_do: Option<String>,
}

/// Whether nobody of another name is to blame.
fn is_by_itself(who: &str, culprit: Option<&String>) -> bool {
    culprit.is_none_or(|it| it == who)
}

/// A finding about the machine's configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The finding, in one sentence.
    pub sentence: String,
    /// Advice, if a measurement supports one.
    pub advice: Option<Advice>,
}

/// Content of the page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Disks that report errors or are worn out, one sentence each: they come before all else.
    pub failing: Vec<String>,
    /// Level of observation.
    pub level: Level,
    /// Limits of this level, and what would remove them.
    pub cannot_see: Vec<String>,
    /// Observed time in nanoseconds.
    pub watched_ns: u64,
    /// Requested time in nanoseconds, if it was ended before.
    pub ended_early_of_ns: Option<u64>,
    /// Result of the wait for a stall, if one was awaited.
    pub until_stall: Option<Ended>,
    /// Time in which some task lacked a resource.
    pub pressure: Pressure,
    /// Verdicts, most lost time first.
    pub verdicts: Vec<Verdict>,
    /// Findings about the configuration.
    pub findings: Vec<Finding>,
    /// The pressure by parts of the observed time, without gaps.
    pub over_time: Vec<Span>,
    /// The apps that were held up by I/O longest.
    pub held_up: Vec<HeldUp>,
}

/// Makes a diagnosis from an observation.
pub fn judge(seen: &Observation) -> Diagnosis {
    let seen = &causes::told_once(seen.on_a_page());
    let causes = Causes::of_all(seen);
    let mut verdicts = storage(seen, &causes);
    if !verdicts.iter().any(|it| it.kind == Kind::Memory) {
        verdicts.extend(memory::unseen(seen));
    }
    if !memory::frees(seen, &causes) {
        verdicts.extend(cpu(seen));
    }
    let all: u64 = verdicts.iter().map(|it| it.lost_ns).sum();
    for verdict in &mut verdicts {
        verdict.share = verdict.lost_ns as f64 / all.max(1) as f64;
    }
    // A process that wrote most, or that another verdict names, causes the waits of others; its own
    // waits come after theirs.
    let is_blaming = |it: &&Verdict| {
        let is_felt = seen.share(it.lost_ns) >= WORTH;
        is_felt && it.kind == Kind::Storage && it.culprit.as_ref() != Some(&it.who)
    };
    let of_storage = verdicts.iter().filter(is_blaming);
    let blamed: BTreeSet<String> = of_storage.filter_map(|it| it.culprit.clone()).collect();
    // A process that waits for itself does not explain other waits.
    let is_for_itself = |it: &&Verdict| {
        let is_blamed = is_by_itself(&it.who, it.culprit.as_ref()) && blamed.contains(&it.who);
        it.cause == Cause::OwnWrites || is_blamed && is_of_its_own(it.cause)
    };
    let by_others = verdicts.iter().filter(|it| !is_for_itself(it));
    let by_others: u64 = by_others.map(|it| it.lost_ns).sum();
    verdicts.retain(|it| it.lost_ns as f64 >= WORTH_OF_LOST * by_others as f64);
    verdicts.sort_by_key(|it| {
        let is_own = matches!(it.cause, Cause::OwnWrites | Cause::Idle);
        let is_blamed = blamed.contains(&it.who);
        let wrote_most = causes::wrote_most(&it.who, None, seen);
        (is_own, wrote_most, is_blamed, Reverse(it.lost_ns))
    });
    let mut cannot_see = seen.lacks();
    cannot_see.extend(seen.machine.hidden.iter().cloned());
    if seen.lost_events > 0 {
        let lost = seen.lost_events;
        cannot_see.push(format!(
            "{lost} events, which were lost as too many happened"
        ));
    }
    Diagnosis {
        failing: seen.machine.failing.clone(),
        level: seen.level,
        cannot_see,
        watched_ns: seen.watched_ns,
        ended_early_of_ns: None,
        until_stall: None,
        pressure: seen.pressure,
        verdicts,
        findings: findings(seen),
        over_time: seen.over_time.clone(),
        held_up: seen.held_up.clone(),
    }
}

/// Whether a process may have brought this on itself, where nobody else is to blame.
fn is_of_its_own(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::OwnWrites
            | Cause::OwnCommits
            | Cause::DeviceBusy
            | Cause::QueueFull
            | Cause::Unexplained
    )
}

/// Verdicts from waits in the storage stack, if there are enough.
fn storage(seen: &Observation, causes: &Causes) -> Vec<Verdict> {
    let groups = grouped(seen, causes, |_, _| ());
    let lost_ns: u64 = groups.values().flatten().map(|it| it.lost_ns).sum();
    if seen.share(lost_ns) >= WORTH {
        let verdicts = groups.into_iter();
        return verdicts
            .map(|((cause, _, ()), waits)| verdict(cause, &waits, seen))
            .collect();
    }
    if seen.share(seen.pressure.io_ns) < PRESSED_UNSEEN {
        return Vec::new();
    }
    let said = "the kernel counts it, and no task was seen to wait".to_owned();
    vec![whole(Cause::Unexplained, seen.pressure.io_ns, None, said)]
}

/// Waits by cause, by whether the waiter is to blame itself, and by what else they are told apart.
/// Without pressure of their kind, apparent waits are left out.
fn grouped<'a, By: Ord>(
    seen: &'a Observation,
    causes: &Causes,
    by: impl Fn(Cause, &'a Wait) -> By,
) -> BTreeMap<(Cause, bool, By), Vec<&'a Wait>> {
    // Who keeps a disk busy for itself is another matter than who waits for that.
    let mut groups: BTreeMap<_, Vec<&Wait>> = BTreeMap::new();
    for wait in &seen.waits {
        let cause = causes.of(wait);
        let key = (cause, causes.is_for_itself(cause, wait), by(cause, wait));
        groups.entry(key).or_default().push(wait);
    }
    // Without any I/O pressure, apparent waits have no relation to storage. Pressure does not
    // include waits for servers and for frozen file systems.
    if seen.share(seen.pressure.io_ns) < WORTH {
        let is_short = seen.share(seen.pressure.memory_ns) >= WORTH;
        groups.retain(|(cause, ..), _| match cause.row().kind {
            Kind::Storage => matches!(cause, Cause::Frozen | Cause::NoAnswer),
            Kind::Memory => is_short,
            Kind::Elsewhere => true,
        });
    }
    groups
}

/// Makes a verdict for each app and cause, most lost time first, with the waits that it is about.
pub(crate) fn by_app<T>(
    seen: &Observation,
    mut tell: impl FnMut(Verdict, &[&Wait], &Account) -> T,
) -> Vec<T> {
    let seen = &causes::told_once(seen.on_a_page());
    let causes = Causes::of_all(seen);
    let groups = grouped(seen, &causes, |_, wait| wait.who.as_str());
    let all: u64 = groups.values().flatten().map(|it| it.lost_ns).sum();
    let mut verdicts: Vec<_> = groups
        .iter()
        .map(|((cause, ..), waits)| {
            let mut verdict = verdict(*cause, waits, seen);
            verdict.share = verdict.lost_ns as f64 / all.max(1) as f64;
            (verdict, waits)
        })
        .collect();
    verdicts.sort_by_key(|(verdict, _)| Reverse(verdict.lost_ns));
    let told = verdicts.into_iter();
    told.map(|(verdict, waits)| tell(verdict, waits, &Account::of(waits, seen)))
        .collect()
}

fn verdict(cause: Cause, waits: &[&Wait], seen: &Observation) -> Verdict {
    let Held {
        who,
        waits: of_who,
        account,
        blame,
    } = held_by_others(cause, waits, seen);
    let file = most(of_who.iter().map(|it| (it.file.as_deref(), it.lost_ns)));
    let sum = |of: fn(&Wait) -> u64| -> u64 { waits.iter().map(|it| of(it)).sum() };
    let (lost_ns, samples) = (sum(|it| it.lost_ns), sum(|it| it.samples));
    let linked = waits.iter().filter(|it| it.waits > 0);
    let is_linked = 2 * linked.map(|it| it.lost_ns).sum::<u64>() >= lost_ns;
    let is_told = is_linked && blame.is_linked && seen.lost_events == 0;
    let disk = disk_named(cause, &of_who, &account, seen);
    let confidence = match seen.level {
        Level::Linked if is_told && blame::is_held(cause, &account, seen) => Confidence::Sure,
        // The counters of the kernel say so themselves.
        Level::Linked | Level::Sampled
            if cause == Cause::NoAnswer && causes::is_known_silent(disk.as_deref(), seen) =>
        {
            Confidence::Sure
        }
        Level::Linked if is_linked => Confidence::Likely,
        // Nobody else waits at that place of the kernel, and few samples are met without pressure.
        Level::Linked | Level::Sampled if cause == Cause::Frozen => Confidence::Likely,
        Level::Linked | Level::Sampled if samples >= SAMPLES => Confidence::Likely,
        _ => Confidence::Guess,
    };
    Verdict {
        cause,
        name: cause.row().name,
        kind: cause.row().kind,
        // What the kernel does of its own accord was not measured against the scheduler.
        advice: advice(cause, disk.as_deref(), file, seen).filter(|_| !blame.is_kernel),
        to_do: to_do::to_do(cause, who, &blame, disk.as_deref(), file, seen),
        who: who.to_owned(),
        file: file.map(str::to_owned),
        evidence: rate_of_commits(cause, who, &of_who, seen)
            .into_iter()
            .chain(through(&of_who))
            .chain(blame::evidence(cause, &blame, &account, seen))
            .chain(evidence(cause, who, disk.as_deref(), file, seen))
            .collect(),
        relation: match blame.name {
            Some(_) => blame.relation,
            None => String::new(),
        },
        culprit: blame.name,
        disk,
        lost_ns,
        who_ns: of_who.iter().map(|it| it.lost_ns).sum(),
        waits: sum(|it| it.waits),
        samples,
        longest_ns: waits.iter().map(|it| it.longest_ns).max().unwrap_or(0),
        share: 0.0,
        confidence,
    }
}

/// A process that waits, and who is to blame for that.
struct Held<'a> {
    who: &'a str,
    waits: Vec<&'a Wait>,
    account: Account,
    blame: blame::Blame,
}

/// The process that waited most. Its waits are part of what it does to another one that feels it, if nobody
/// of another name holds it up, or if the disk served each for the other's time and this one moves more.
fn held_by_others<'a>(cause: Cause, waits: &[&'a Wait], seen: &Observation) -> Held<'a> {
    let most = victim(cause, waits, seen).unwrap_or_default();
    let most = held(cause, most, waits, seen);
    let others = waits.iter().copied().filter(|it| it.who != most.who);
    let others: Vec<&Wait> = others.collect();
    let Some(next) = victim(cause, &others, seen) else {
        return most;
    };
    let next = held(cause, next, &others, seen);
    let blames = |it: &Held, who: &str| it.blame.name.as_deref() == Some(who);
    let is_felt = seen.share(next.waits.iter().map(|it| it.lost_ns).sum()) >= FELT;
    let moves_more = seen.moved_by(most.who) > seen.moved_by(next.who);
    let are_served = most.blame.served_ns > 0 && next.blame.served_ns > 0;
    let is_mutual = are_served && blames(&most, next.who) && moves_more;
    let is_by_itself = is_by_itself(most.who, most.blame.name.as_ref());
    match is_felt && blames(&next, most.who) && (is_by_itself || is_mutual) {
        true => next,
        false => most,
    }
}

fn held<'a>(cause: Cause, who: &'a str, waits: &[&'a Wait], seen: &Observation) -> Held<'a> {
    let waits: Vec<&Wait> = waits.iter().copied().filter(|it| it.who == who).collect();
    let account = Account::of(&waits, seen);
    Held {
        blame: blame::blame(cause, who, &waits, &account, seen),
        who,
        waits,
        account,
    }
}

/// Through which process of a FUSE file system it waited, in words.
fn through(waits: &[&Wait]) -> Option<String> {
    let server = waits.iter().find_map(|it| it.through.as_deref())?;
    let who = &waits.first()?.who;
    Some(format!(
        "{who} waited through {server}, whose file system it is"
    ))
}

/// The disk that a verdict is about: of its stack the one that shows the cause.
fn disk_named(
    cause: Cause,
    waits: &[&Wait],
    account: &Account,
    seen: &Observation,
) -> Option<String> {
    let longest = waits.iter().max_by_key(|it| it.lost_ns)?;
    let shown = match cause {
        Cause::SlowDevice => causes::slow_disk(longest, seen),
        Cause::NoAnswer => causes::silent_disk(longest, seen),
        _ => None,
    };
    let named = shown.or(seen.disk_of(longest)).map(str::to_owned);
    let is_told = account.measured || cause == Cause::SyncAll;
    named.or_else(|| account.disk.clone().filter(|_| is_told))
}

/// Process that waited most. A process that fills a removable disk is throttled for its own pages
/// as well, one that takes the memory is short of it too, and one in a group with a limit waits for
/// it: they are victims only if nobody else is.
fn victim<'a>(cause: Cause, waits: &[&'a Wait], seen: &Observation) -> Option<&'a str> {
    let filled = filled(seen).filter(|_| cause == Cause::DirtyThrottling);
    let fills = |who: &str| {
        let user = seen.users.iter().find(|it| it.name == who);
        let disks = user.map(|it| it.writes_to.iter().collect::<Vec<_>>());
        filled.is_some_and(|disk| disks == Some(vec![&disk.name]))
    };
    let takes = memory::taker(seen).filter(|_| cause.row().kind == Kind::Memory);
    let limits = |who: &str| cause == Cause::Limit && causes::own_limit(who, seen).is_some();
    let waited = |it: &&'a Wait| (Some(it.who.as_str()), it.lost_ns);
    let others = waits
        .iter()
        .filter(|it| !fills(&it.who) && takes != Some(&it.who) && !limits(&it.who));
    most(others.map(waited)).or_else(|| most(waits.iter().map(waited)))
}

/// How often a task waits for its own syncs, of which each has a wait or two. Samples do not tell.
fn rate_of_commits(cause: Cause, who: &str, waits: &[&Wait], seen: &Observation) -> Option<String> {
    let waits: u64 = waits.iter().map(|it| it.waits).sum();
    if cause != Cause::OwnCommits || waits == 0 {
        return None;
    }
    let rate = waits as f64 * 1e9 / seen.linked_ns.max(1) as f64;
    Some(format!(
        "{who} waited for its own syncs {rate:.1} times a second"
    ))
}

/// Name with the largest total.
fn most<'a>(named: impl Iterator<Item = (Option<&'a str>, u64)>) -> Option<&'a str> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, ns) in named {
        if let Some(name) = name {
            *sums.entry(name).or_default() += ns;
        }
    }
    let most = sums.into_iter().max_by_key(|it| it.1);
    most.map(|(name, _)| name)
}

fn evidence(
    cause: Cause,
    who: &str,
    disk: Option<&str>,
    file: Option<&str>,
    seen: &Observation,
) -> Vec<String> {
    let mut said = Vec::new();
    if matches!(cause, Cause::SlowDevice | Cause::DeviceBusy)
        && let Some(traffic) = seen.traffic(disk)
    {
        said.push(format!(
            "{} was busy {:.0} % of the time, {:.1} ms for each of {} requests",
            seen.machine.titled(&traffic.disk),
            seen.share(traffic.busy_ns).min(1.0) * 100.0,
            traffic.request_ns as f64 / traffic.requests.max(1) as f64 / 1e6,
            traffic.requests
        ));
    }
    if let (Cause::NoAnswer, Some(traffic)) = (cause, seen.traffic(disk)) {
        let title = seen.machine.titled(&traffic.disk);
        said.push(match traffic.requests {
            0 => format!("{title} finished no request in the time watched"),
            _ => format!(
                "{title} had requests and finished none for {}",
                number::with_unit(traffic.unanswered_ns as f64, "ns")
            ),
        });
        let stack = seen.machine.stack(&traffic.disk).into_iter();
        let troubles = stack.filter_map(|it| Some((it, seen.machine.disk(it)?.trouble.as_ref()?)));
        said.extend(
            troubles.map(|(it, trouble)| format!("{}: {trouble}", seen.machine.titled(it))),
        );
    }
    if let (Cause::Fragments, Some(file)) = (cause, file)
        && let Some(pieces) = seen.pieces.get(file)
    {
        said.push(format!(
            "{file} lies in {} pieces, of {} on average",
            pieces.count,
            number::bytes(pieces.mean_bytes())
        ));
    }
    match cause {
        Cause::Evicted => said.push(format!(
            "{} of the {} that were read had been evicted just before",
            number::bytes(seen.memory.refaulted_bytes),
            number::bytes(seen.memory.paged_in_bytes)
        )),
        Cause::Swap => said.push(format!(
            "{} came back from swap",
            number::bytes(seen.memory.swapped_in_bytes)
        )),
        Cause::SyncAll if seen.memory.dirty_bytes > 0 => said.push(format!(
            "{} were still to be written when the measurement began, {} when it ended",
            number::bytes(seen.memory.dirty_before_bytes),
            number::bytes(seen.memory.dirty_bytes)
        )),
        _ => {}
    }
    if cause.row().kind == Kind::Memory {
        said.extend(memory::limit_of(who, seen));
    }
    said
}

/// Advice that a measurement supports.
fn advice(
    cause: Cause,
    disk: Option<&str>,
    file: Option<&str>,
    seen: &Observation,
) -> Option<Advice> {
    if cause == Cause::DirtyThrottling {
        return filled(seen).map(limit);
    }
    if cause == Cause::Fragments {
        return in_one_piece(file?, seen);
    }
    // Of *change behind writeback* the scheduler wins less than half back (docs/use/doctor-trial.md).
    if cause != Cause::FsyncBehindWriteback {
        return None;
    }
    let disk = disk.or(seen.written_disk().map(|it| it.disk.as_str()))?;
    if let Some(volume) = write_thread(disk, seen) {
        return Some(without_write_thread(volume));
    }
    let disk = scheduled(disk, seen)?;
    let (disk, now) = (&disk.name, disk.scheduler.as_deref()?);
    if now == "frontrow" {
        return None;
    }
    Some(Advice {
        command: format!("sudo frontrow sched enable {disk}"),
        changes: format!(
            "{disk}'s I/O scheduler from {now} to frontrow, which serves early the writes that somebody waits for; its module has to be there"
        ),
        undo: format!("sudo frontrow sched disable {disk}"),
        brings: "in the lab, an fsync of 4 KB beside a writer took 19.7 ms instead of 69.5 ms (docs/use/doctor.md)",
        remedy: Some(Remedy::Scheduler { disk: disk.clone() }),
    })
}

/// Advice to move a file in pieces. Only ext4 can move one that is in use.
fn in_one_piece(file: &str, seen: &Observation) -> Option<Advice> {
    let mount = seen.machine.mount_of(file)?;
    if mount.filesystem != "ext4" {
        return None;
    }
    Some(Advice {
        command: format!("sudo frontrow defrag --all {}", quoted(file)),
        changes: format!(
            "{file} is copied to where it lies in fewer pieces, which takes free space for a second copy; it may be in use, and what is in it stays"
        ),
        undo: "nothing to undo; --try cannot try it, as no move puts it back into pieces"
            .to_owned(),
        brings: "in the lab, a file of 8 MB on a slow stick was read in 116 ms instead of 544 ms once it was in 1 piece instead of 512 (docs/use/doctor-trial.md)",
        remedy: None,
    })
}

/// The text as one word of a shell.
pub fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// A removable disk that cannot keep up with what is written to it and has no dirty limit of its
/// own. One that keeps up has few dirty pages, so it throttles nobody.
fn filled(seen: &Observation) -> Option<&Disk> {
    let is_behind = |it: &&Traffic| it.written_bytes > 0 && seen.share(it.busy_ns) >= SATURATED;
    let written = seen.disks.iter().filter(is_behind);
    let mut disks = written.filter_map(|it| seen.machine.disk(&it.disk));
    disks.find(|it| it.removable && it.limit.as_ref().is_some_and(|limit| !limit.strict))
}

/// The disk, or the disk below it (encryption, LVM) that has a scheduler.
fn scheduled<'a>(disk: &str, seen: &'a Observation) -> Option<&'a Disk> {
    let found = seen.machine.disk(disk)?;
    // The writers beside a loop device's file are on the disk that has it.
    if let [below] = &found.on[..] {
        return scheduled(below, seen);
    }
    if found.scheduler.is_some() {
        return Some(found);
    }
    let [below] = &found.below[..] else {
        return None;
    };
    let disks = seen.machine.disks.iter();
    let holds = |it: &&Disk| it.scheduler.is_some() && below.starts_with(&it.name);
    // Both sda and sdaa are prefixes of sdaa1: the longer one has it.
    disks.filter(holds).max_by_key(|it| it.name.len())
}

/// Name of the encrypted volume whose one thread submits all that is written to `disk`, which is the
/// volume or something above it.
fn write_thread<'a>(disk: &str, seen: &'a Observation) -> Option<&'a str> {
    let disk = seen.machine.disk(disk)?;
    let mut encrypted = seen.machine.disks.iter();
    let volume = encrypted.find(|it| {
        let is_below = it.name == disk.name || it.below == disk.below;
        is_below && it.write_thread.is_some()
    })?;
    volume.write_thread.as_deref()
}

/// No scheduler reaches a write before dm-crypt's thread has submitted it.
fn without_write_thread(volume: &str) -> Advice {
    let refresh = "sudo cryptsetup refresh";
    Advice {
        command: format!("{refresh} --perf-no_write_workqueue {volume}"),
        changes: format!(
            "each task that writes to {volume} encrypts for itself, instead of one thread for all; it asks for the passphrase, and holds until the volume is closed"
        ),
        undo: format!("{refresh} {volume}"),
        brings: "in the lab, an fsync of 4 KB beside a writer took 47 ms instead of 432 ms, and 6 ms with the scheduler as well (docs/use/encrypted.md)",
        remedy: None,
    }
}

/// Verdict about a lack of CPUs.
fn cpu(seen: &Observation) -> Option<Verdict> {
    let pressed = seen.share(seen.pressure.cpu_ns) >= CPU_PRESSED && seen.cpu_busy >= CPU_BUSY;
    if !pressed && seen.cpu_busy < CPU_FULL {
        return None;
    }
    let user = seen.users.iter().max_by_key(|it| it.cpu_ns)?;
    let all = "others than this command kept the CPUs busy";
    let percent = seen.cpu_busy * 100.0;
    // Processes that live for less than a second are not seen to use it.
    let is_hog = seen.share(user.cpu_ns) >= NAMED_SHARE * seen.cpu_busy;
    let busy = match is_hog {
        true => format!(
            "{} had a CPU for {:.1} s; {all} {percent:.0} % of the time",
            user.name,
            user.cpu_ns as f64 / 1e9,
        ),
        false => format!(
            "{all} {percent:.0} % of the time, most of it by processes that lived too short to be seen or by many"
        ),
    };
    let hog = is_hog.then_some(user.name.as_str());
    Some(whole(Cause::Cpu, seen.pressure.cpu_ns, hog, busy))
}

/// Verdict about the whole machine, from its pressure.
fn whole(cause: Cause, lost_ns: u64, culprit: Option<&str>, evidence: String) -> Verdict {
    Verdict {
        cause,
        name: cause.row().name,
        kind: cause.row().kind,
        who: "some task".to_owned(),
        file: None,
        culprit: culprit.map(str::to_owned),
        relation: String::new(),
        disk: None,
        to_do: None,
        // A busy process is reported even if no task waits.
        lost_ns: lost_ns.max(1),
        who_ns: lost_ns,
        waits: 0,
        samples: 0,
        longest_ns: 0,
        share: 0.0,
        confidence: Confidence::Likely,
        evidence: vec![evidence],
        advice: None,
    }
}

/// Findings about the configuration.
fn findings(seen: &Observation) -> Vec<Finding> {
    let machine = &seen.machine;
    let mut found = Vec::new();
    let mut say = |sentence: String, advice| found.push(Finding { sentence, advice });
    for disk in &machine.disks {
        let mounted = machine
            .mounts
            .iter()
            .find(|it| it.disk.as_deref() == Some(&disk.name));
        if let Some(scheduler) = &disk.scheduler
            && !disk.name.starts_with("loop")
        {
            let taken = if disk.removable {
                ", can be taken out"
            } else {
                ""
            };
            let (name, depth) = (&disk.name, disk.depth);
            say(
                format!("{name}: scheduler {scheduler}, {depth} requests at most{taken}"),
                None,
            );
        }
        if disk.mapper.as_deref() == Some("CRYPT") {
            let (name, below) = (&disk.name, disk.below.join(", "));
            let through = match disk.write_thread {
                Some(_) => ", and one thread submits all that is written, whoever waits for it",
                None => "",
            };
            say(
                format!("{name}: encryption above {below}: a scheduler is set on {below}{through}"),
                disk.write_thread.as_deref().map(without_write_thread),
            );
        }
        if disk.removable && mounted.is_some() && disk.limit.as_ref().is_some_and(|it| !it.strict) {
            say(
                format!(
                    "{}: a disk that can be taken out may fill all of the memory for dirty pages, for which all who write are throttled",
                    disk.name
                ),
                Some(limit(disk)),
            );
        }
    }
    for disk in &machine.untrimmed {
        say(
            format!(
                "{disk} is never told which blocks are free, and flash may write slower as it fills: sudo systemctl enable --now fstrim.timer does so each week"
            ),
            None,
        );
    }
    for rule in &machine.scheduler_rules {
        say(format!("{rule} chooses schedulers as disks appear"), None);
    }
    for mount in machine.mounts.iter().filter(|it| it.remote) {
        say(
            format!(
                "{} is {}: a server or a process answers for it, and no scheduler here",
                mount.point, mount.filesystem
            ),
            None,
        );
    }
    found
}

/// Advice to limit the disk's dirty pages by frontrowd's rule. A limit that is set once would be
/// wrong for the next stick.
fn limit(disk: &Disk) -> Advice {
    Advice {
        command: "sudo systemctl enable --now frontrowd".to_owned(),
        changes: format!(
            "what is dirty for {} and others like it is held to a second of the rate that they show; where the scheduler is enabled, the app with the focus comes first as well",
            disk.name
        ),
        undo: "sudo systemctl disable --now frontrowd".to_owned(),
        brings: "in the lab, saves of 24 MB beside a copy to a stick of 10 MB/s took 347 to 393 ms instead of 1616 to 1955 ms (docs/use/foreground.md)",
        remedy: Some(Remedy::DirtyLimits),
    }
}

#[cfg(test)]
mod reports;
#[cfg(test)]
pub(crate) mod tests;
