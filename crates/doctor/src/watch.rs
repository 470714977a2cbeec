//! Counters and samples from `/proc`, at each level.

use crate::apps;
use crate::groups::Groups;
use crate::live::{MOST_NAMES, OTHERS};
use crate::machine::Machine;
use crate::observe::{HeldUp, Level, Memory, Observation, Pressure, Traffic, User, Wait};
use crate::over_time::OverTime;
use crate::pieces;
use crate::silence::Silences;
use crate::stacks::Stacks;
use crate::task::{KernelThreads, Task, counter};
use rustix::fs::OFlags;
use rustix::time::{ClockId, clock_gettime};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::device::Statistics;
use sys::random::Random;

/// Shortest mean interval of samples under pressure. Samples take at most 2 % of a CPU, so machines
/// with thousands of threads are sampled less often.
const SAMPLE: Duration = Duration::from_millis(20);
const SAMPLE_AT_MOST: Duration = Duration::from_millis(200);
const SAMPLING_COST: u32 = 50;
/// What a sample costs is the mean of about so many.
const COST_OF: u32 = 8;
/// Length of a sleep from which on a task is called held up.
pub const HELD_UP: Duration = Duration::from_millis(20);
/// Interval of samples without pressure.
const SAMPLE_AT_REST: Duration = Duration::from_secs(1);
/// Interval of reading processes' counters; shorter-lived processes may be missed.
const LOOK: Duration = Duration::from_secs(1);
/// Most apps of which it is told that they were held up.
const MOST_HELD_UP: usize = 5;
/// Unit of CPU time in `/proc` (USER_HZ of the kernel's ABI).
const TICK_NS: u64 = 10_000_000;
const PAGE_BYTES: u64 = 4096;
/// Bytes made dirty in an interval from which a process's open files are read.
const ASKED_BYTES: u64 = 64 << 10;
/// Mode bit of a link in `/proc/PID/fd`: open for writing.
const OPEN_TO_WRITE: u32 = 0o200;

/// Resources that a process has used.
#[derive(Clone, Debug, Default)]
struct Used {
    name: String,
    read_bytes: u64,
    written_bytes: u64,
    cpu_ns: u64,
}

impl Used {
    fn read(&mut self) -> &mut u64 {
        &mut self.read_bytes
    }

    fn written(&mut self) -> &mut u64 {
        &mut self.written_bytes
    }
}

/// An observed process.
#[derive(Clone, Debug, Default)]
struct Process {
    parent: u32,
    /// Use at the first sample.
    begin: Used,
    /// Use at the last sample, plus what its parent inherited at its end.
    end: Used,
    /// Use of ended children, which the kernel adds to their parent's (`wait_task_zombie` in
    /// kernel/exit.c).
    inherited: Used,
    /// The file systems on which it had files open for writing (`st_dev`).
    writes_to: BTreeSet<u64>,
    /// Whether one of these goes through the page cache.
    buffers: bool,
    /// Path of its cgroup.
    cgroup: Option<String>,
    /// Anonymous memory at the first look, and at the last.
    memory_bytes: (u64, u64),
    lives: bool,
}

impl Process {
    /// From now on its use counts anew.
    fn begin_anew(&mut self) {
        self.begin = self.end.clone();
        self.inherited = Used::default();
        let (first, last) = self.memory_bytes;
        self.memory_bytes = (first.max(last), 0);
    }

    /// Its own use in the observed time.
    fn own(&self, of: fn(&Used) -> u64) -> u64 {
        of(&self.end).saturating_sub(of(&self.begin) + of(&self.inherited))
    }
}

/// Use of ended processes, by name.
#[derive(Clone, Debug, Default)]
struct Ended {
    used: Used,
    writes_to: BTreeSet<u64>,
    buffers: bool,
    cgroup: Option<String>,
    written_by: BTreeMap<u32, u64>,
    grown_bytes: u64,
}

/// Most processes of one name of which each one's bytes are remembered.
const MOST_PROCESSES: usize = 64;

impl Ended {
    fn add(&mut self, number: u32, process: &Process) {
        self.used.read_bytes += process.own(|it| it.read_bytes);
        self.used.written_bytes += process.own(|it| it.written_bytes);
        self.used.cpu_ns += process.own(|it| it.cpu_ns);
        self.writes_to.extend(&process.writes_to);
        // Its files are not known, or what it wrote is too little to ask.
        let is_unknown = process.writes_to.is_empty() && process.own(|it| it.written_bytes) > 0;
        self.buffers |= process.buffers || is_unknown;
        self.cgroup = self.cgroup.take().or_else(|| process.cgroup.clone());
        let (first, last) = process.memory_bytes;
        self.grown_bytes = self.grown_bytes.max(last.saturating_sub(first));
        if self.written_by.len() < MOST_PROCESSES {
            let written = process.own(|it| it.written_bytes);
            *self.written_by.entry(number).or_default() += written;
        }
    }
}

/// Processes by id and start time.
type Processes = BTreeMap<(u32, u64), Process>;

/// System counters at one time.
#[derive(Clone, Debug, Default)]
struct Counters {
    pressure: Pressure,
    memory: Memory,
    cpu_busy: u64,
    cpu_all: u64,
    own_cpu: u64,
    disks: BTreeMap<String, Traffic>,
    /// Time for which I/O held up each app since its start, in nanoseconds.
    held_up: BTreeMap<String, u64>,
    groups: Groups,
}

/// A running observation.
#[derive(Debug)]
pub struct Watch {
    root: PathBuf,
    started: Instant,
    /// Begin of the time that is told of.
    begun: Instant,
    before: Counters,
    processes: Processes,
    ended: BTreeMap<String, Ended>,
    kernel_threads: KernelThreads,
    looked: Instant,
    stacks: Stacks,
    silences: Silences,
    sampled: Instant,
    /// CPU time of a sample.
    cost: Duration,
    sample_every: Duration,
    pressure_seen: Instant,
    /// From then to the next look at the pressure, which decides whether a sample is taken.
    pause: Duration,
    chance: Random,
    io_seen_ns: u64,
    over_time: OverTime,
    /// Whether it was looked if the sleeps that the last sample met go on.
    looked_again: bool,
    /// Whether one did.
    held_up: bool,
    /// Since when iopro tells of waits; None if it does not.
    linking: Option<Instant>,
    /// Time in which it did before.
    linked: Duration,
    /// Counters at the end, and the elapsed time.
    after: Option<(Counters, Duration)>,
}

impl Watch {
    /// Starts an observation of the system below `root`.
    pub fn begin(root: &Path) -> Watch {
        let now = Instant::now();
        let before = counters(root);
        let mut watch = Watch {
            root: root.to_owned(),
            started: now,
            begun: now,
            pressure_seen: now,
            io_seen_ns: before.pressure.io_ns,
            over_time: OverTime::begin(before.pressure),
            before,
            processes: BTreeMap::new(),
            ended: BTreeMap::new(),
            kernel_threads: KernelThreads::default(),
            looked: now,
            stacks: Stacks::default(),
            silences: Silences::default(),
            sampled: now,
            cost: Duration::ZERO,
            sample_every: SAMPLE,
            pause: SAMPLE,
            chance: Random::new(seed()),
            looked_again: true,
            held_up: false,
            linking: None,
            linked: Duration::ZERO,
            after: None,
        };
        watch.stacks.sample(root, 0, 0);
        watch.look(true);
        watch
    }

    /// From now on iopro tells of waits that begin.
    pub fn begin_linking(&mut self) {
        self.sample();
        self.stacks.begin_telling();
        self.begin_pause(Instant::now());
        self.linking = Some(Instant::now());
    }

    /// From now on all waits are sampled.
    pub fn end_linking(&mut self) {
        self.sample();
        self.stacks.end_telling();
        self.begin_pause(Instant::now());
        let since = self.linking.take();
        self.linked += since.map_or(Duration::ZERO, |it| it.elapsed());
    }

    /// Whether some task was held up since this was asked last, as far as samples tell.
    pub fn take_held_up(&mut self) -> bool {
        std::mem::take(&mut self.held_up)
    }

    /// Time since the observation began.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// I/O pressure of the system from its start to the begin of the observation, in nanoseconds.
    pub fn first_io_pressure_ns(&self) -> u64 {
        self.before.pressure.io_ns
    }

    /// I/O pressure of the system since its start, in nanoseconds.
    pub fn io_pressure_ns(&self) -> u64 {
        io_pressure_ns(&self.root)
    }

    /// Reads what is due. While iopro tells of waits, tasks are sampled for those it does not tell
    /// of: seldom, unless some began before.
    pub fn turn(&mut self) {
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            self.look(false);
        }
        let elapsed = self.begun.elapsed();
        if self.over_time.is_due(elapsed) {
            self.over_time.add(elapsed, all_pressure(&self.root));
        }
        self.silences.turn(&self.root, self.started.elapsed());
        let since = self.sampled.elapsed();
        if since >= HELD_UP && !std::mem::replace(&mut self.looked_again, true) {
            self.held_up |= self.stacks.last(&self.root);
        }
        if self.until_due() > Duration::ZERO {
            return;
        }
        let io_ns = pressure(&self.root, "io");
        let pressed = io_ns != std::mem::replace(&mut self.io_seen_ns, io_ns);
        if pressed || since >= SAMPLE_AT_REST {
            self.sample();
        } else {
            self.begin_pause(Instant::now());
        }
    }

    /// Time until a sample may be due.
    pub fn until_due(&self) -> Duration {
        self.pause.saturating_sub(self.pressure_seen.elapsed())
    }

    /// Begins the time until the next look at the pressure.
    fn begin_pause(&mut self, now: Instant) {
        self.pressure_seen = now;
        self.pause = pause(self.due(), &mut self.chance);
    }

    /// Mean interval of samples under pressure.
    fn due(&self) -> Duration {
        match self.stacks.are_needed() {
            true => self.sample_every,
            false => SAMPLE_AT_REST,
        }
    }

    fn sample(&mut self) {
        let since = self.sampled.elapsed();
        self.sampled = Instant::now();
        self.looked_again = false;
        let begun = cpu_time();
        // Nobody waited between looks at the same pressure.
        let stands_for = since.min(self.pressure_seen.elapsed());
        let nanoseconds = |it: Duration| it.as_nanos() as u64;
        self.stacks
            .sample(&self.root, nanoseconds(since), nanoseconds(stands_for));
        self.held_up |= self.stacks.lasted(nanoseconds(HELD_UP));
        let cost = cpu_time().saturating_sub(begun);
        self.cost = match self.cost.is_zero() {
            true => cost,
            // One that meets a blocked task costs more: if it alone decided on the next, the app's
            // turns and the samples' would depend on one another.
            false => (self.cost * (COST_OF - 1) + cost) / COST_OF,
        };
        self.sample_every = (self.cost * SAMPLING_COST).clamp(SAMPLE, SAMPLE_AT_MOST);
        self.begin_pause(self.sampled);
    }

    fn look(&mut self, is_first: bool) {
        // Whose memory grows is asked only where some task is short of it.
        let memory_ns = pressure(&self.root, "memory");
        let is_short = !is_first && memory_ns != self.before.pressure.memory_ns;
        let mut now = BTreeMap::new();
        for (number, task) in processes(&self.root, &mut self.kernel_threads) {
            let used = used(&self.root, number, &task);
            now.insert((number, task.started), (task.parent, used));
        }
        bequeath(&mut self.processes, &now);
        self.forget_ended();
        for (key, (parent, used)) in now {
            let begin = match is_first {
                true => used.clone(),
                // The process started during the observation.
                false => Used::default(),
            };
            let known = self.processes.entry(key).or_insert_with(|| Process {
                begin,
                cgroup: cgroup_of(&self.root, key.0),
                memory_bytes: (
                    if is_first {
                        memory_of(&self.root, key.0)
                    } else {
                        0
                    },
                    0,
                ),
                ..Default::default()
            });
            known.parent = parent;
            // A shell moves itself to a group before it becomes what it starts.
            if known.lives && known.end.name != used.name {
                known.cgroup = cgroup_of(&self.root, key.0).or(known.cgroup.take());
            }
            let since = used.written_bytes.saturating_sub(known.end.written_bytes);
            if !is_first && since >= ASKED_BYTES {
                for (device, is_direct) in open_to_write(&self.root, key.0) {
                    known.writes_to.insert(device);
                    known.buffers |= !is_direct;
                }
            }
            known.end = used;
            known.lives = true;
            if is_short {
                known.memory_bytes.1 = memory_of(&self.root, key.0);
            }
        }
    }

    /// Sums up ended processes, so that memory does not grow with time.
    fn forget_ended(&mut self) {
        let ended = self.processes.extract_if(.., |_, it| !it.lives);
        for (key, process) in ended.collect::<Vec<_>>() {
            self.add_ended(key.0, &process);
        }
    }

    fn add_ended(&mut self, number: u32, process: &Process) {
        let name = &process.end.name;
        let is_new = self.ended.len() >= MOST_NAMES && !self.ended.contains_key(name);
        let name = if is_new { OTHERS } else { name };
        let ended = self.ended.entry(name.to_owned()).or_default();
        ended.add(number, process);
    }

    /// Ends the observed time.
    pub fn stop(&mut self) {
        self.end_linking();
        self.after = Some(self.count());
    }

    /// Looks for the last time at what is observed: counters, and the time since the begin.
    fn count(&mut self) -> (Counters, Duration) {
        self.look(false);
        let processes = std::mem::take(&mut self.processes);
        for (key, process) in &processes {
            self.add_ended(key.0, process);
        }
        self.processes = processes;
        let (after, elapsed) = (counters(&self.root), self.begun.elapsed());
        self.over_time.add(elapsed, after.pressure);
        (after, elapsed)
    }

    /// Result of the time since the begin or the last cut; the observation goes on from here.
    pub fn cut(
        &mut self,
        level: Level,
        machine: Machine,
        linked: Option<(Vec<Wait>, u64)>,
    ) -> Observation {
        self.sample();
        let (after, watched) = self.count();
        let now = Instant::now();
        if let Some(since) = &mut self.linking {
            self.linked += now - std::mem::replace(since, now);
        }
        for process in self.processes.values_mut() {
            process.begin_anew();
        }
        let seen = self.observed(&after, watched, (level, machine), linked);
        self.begun = now;
        self.linked = Duration::ZERO;
        self.over_time = OverTime::begin(after.pressure);
        self.silences.begin_anew();
        self.before = after;
        seen
    }

    /// Result; `linked` has iopro's waits and the number of lost events.
    pub fn end(
        mut self,
        level: Level,
        machine: Machine,
        linked: Option<(Vec<Wait>, u64)>,
    ) -> Observation {
        if self.after.is_none() {
            self.stop();
        }
        let (after, watched) = self.after.take().unwrap_or_default();
        self.observed(&after, watched, (level, machine), linked)
    }

    /// Observation up to these counters.
    fn observed(
        &mut self,
        after: &Counters,
        watched: Duration,
        (level, machine): (Level, Machine),
        linked: Option<(Vec<Wait>, u64)>,
    ) -> Observation {
        let before = &self.before;
        let (mut waits, lost_events) = linked.unwrap_or_default();
        // The call started before the probes, or they do not tell of it.
        for wait in waits.iter_mut().filter(|it| it.call.is_none()) {
            wait.call = self.stacks.calls().get(&wait.who).cloned();
        }
        // Requests to a server are no requests of a disk, and its files have no names here. Pages that were
        // read ahead from one are waited for like a disk's: only the file tells.
        let is_unserved = |it: &Wait| {
            let served_ns: u64 = it.parts.iter().map(|part| part.ns).sum();
            it.file.is_none() && 2 * served_ns < it.lost_ns
        };
        let is_remote = |file: &str| machine.mount_of(file).is_some_and(|it| it.remote);
        for wait in waits.iter_mut().filter(|it| is_unserved(it)) {
            let in_stack = self.stacks.remote(&wait.who);
            let by_file = || self.stacks.file_of(&wait.who, is_remote).map(Some);
            if let Some(file) = in_stack.or_else(by_file) {
                wait.remote = true;
                wait.file = file.map(str::to_owned);
            }
        }
        let kernel_blocked = self.stacks.take_kernel_blocked();
        waits.extend(self.stacks.take());
        let own = after.own_cpu.saturating_sub(before.own_cpu);
        let busy = after.cpu_busy.saturating_sub(before.cpu_busy);
        let all = after.cpu_all.saturating_sub(before.cpu_all);
        Observation {
            level,
            watched_ns: watched.as_nanos() as u64,
            linked_ns: self.linked.as_nanos() as u64,
            pressure: after.pressure.since(before.pressure),
            over_time: self.over_time.end(),
            memory: Memory {
                refaulted_bytes: after.memory.refaulted_bytes - before.memory.refaulted_bytes,
                paged_in_bytes: after.memory.paged_in_bytes - before.memory.paged_in_bytes,
                swapped_in_bytes: after.memory.swapped_in_bytes - before.memory.swapped_in_bytes,
                dirty_before_bytes: before.memory.dirty_bytes,
                dirty_bytes: after.memory.dirty_bytes,
            },
            cpu_busy: busy.saturating_sub(own) as f64 / all.max(1) as f64,
            pieces: pieces::of_read(&self.root, &waits, &machine),
            waits,
            users: users(
                std::mem::take(&mut self.ended),
                &mounted(&self.root, &machine),
            ),
            disks: disks(before, after, &self.silences),
            groups: after
                .groups
                .since(&before.groups, watched.as_nanos() as u64, &machine),
            kernel_blocked,
            held_up: held_up(before, after),
            lost_events,
            machine,
        }
    }
}

/// A time until the next sample, by chance: an app that waits in even turns, such as a save each 80
/// ms, may keep step with even samples, which then meet it at the same point of each turn.
fn pause(mean: Duration, chance: &mut Random) -> Duration {
    let mean_ns = mean.as_nanos() as u64;
    Duration::from_nanos(chance.between(mean_ns / 2, mean_ns * 3 / 2))
}

/// CPU time of this thread.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Each observation's samples come at other times.
fn seed() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_nsec as u64 ^ u64::from(std::process::id()) << 32
}

/// Attributes to processes that ended since the last sample the use that only their parents show.
/// `now` has the living processes, their parents and their use.
fn bequeath(known: &mut Processes, now: &BTreeMap<(u32, u64), (u32, Used)>) {
    let ended = known
        .iter()
        .filter(|(key, it)| it.lives && !now.contains_key(key));
    let mut by_parent: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
    for (key, it) in ended {
        by_parent.entry(it.parent).or_default().push(*key);
    }
    for (parent, children) in by_parent {
        let parent = now.iter().find(|(key, _)| key.0 == parent);
        for of in [Used::read, Used::written] {
            let told = parent.and_then(|(key, (_, used))| {
                let seen = of(&mut known.get_mut(key)?.end).to_owned();
                Some(of(&mut used.clone()).saturating_sub(seen))
            });
            let inherited = inherit(known, &children, told.unwrap_or(0), of);
            if let Some(parent) = parent.and_then(|(key, _)| known.get_mut(key)) {
                *of(&mut parent.inherited) += inherited;
            }
        }
        for key in &children {
            if let Some(child) = known.get_mut(key) {
                child.lives = false;
            }
        }
    }
}

/// Distributes what a parent inherited (`told`) to its ended children; returns the distributed
/// part. What exceeds the known use goes to the last child that used any. If none did, unobserved
/// children used it, and it stays with the parent.
fn inherit(
    known: &mut Processes,
    children: &[(u32, u64)],
    told: u64,
    of: fn(&mut Used) -> &mut u64,
) -> u64 {
    let mut had = 0;
    let mut heir = None;
    for key in children {
        let Some(child) = known.get_mut(key) else {
            continue;
        };
        let used = *of(&mut child.end);
        had += used;
        heir = if used > 0 { Some(*key) } else { heir };
    }
    let Some(heir) = heir.and_then(|key| known.get_mut(&key)) else {
        return 0;
    };
    *of(&mut heir.end) += told.saturating_sub(had);
    told
}

/// File systems on which a process has files open for writing, and whether they bypass the page cache.
fn open_to_write(root: &Path, process: u32) -> BTreeSet<(u64, bool)> {
    let entries = fs::read_dir(root.join(format!("proc/{process}/fd")));
    let files = entries.into_iter().flatten().flatten().filter_map(|entry| {
        let link = entry.path().symlink_metadata().ok()?;
        let file = fs::metadata(entry.path()).ok().filter(|it| it.is_file())?;
        let is_to_write = link.mode() & OPEN_TO_WRITE != 0;
        is_to_write.then(|| (file.dev(), is_direct(root, process, &entry.file_name())))
    });
    files.collect()
}

/// Whether a process opened this file with `O_DIRECT`.
fn is_direct(root: &Path, process: u32, descriptor: &OsStr) -> bool {
    let path = root.join(format!("proc/{process}/fdinfo")).join(descriptor);
    let text = fs::read_to_string(path).unwrap_or_default();
    let flags = text.lines().find_map(|it| it.strip_prefix("flags:"));
    let flags = flags.and_then(|it| i32::from_str_radix(it.trim(), 8).ok());
    flags.is_some_and(|it| it & OFlags::DIRECT.bits() as i32 != 0)
}

/// Disks of mounted file systems, by device number.
fn mounted(root: &Path, machine: &Machine) -> BTreeMap<u64, String> {
    let mounts = machine.mounts.iter().filter_map(|it| {
        // A dead server would block the call for ever.
        let disk = it.disk.clone().filter(|_| !it.remote)?;
        let point = root.join(it.point.trim_start_matches('/'));
        Some((fs::metadata(point).ok()?.dev(), disk))
    });
    mounts.collect()
}

/// Path of a process's cgroup.
fn cgroup_of(root: &Path, process: u32) -> Option<String> {
    let text = fs::read_to_string(root.join(format!("proc/{process}/cgroup"))).ok()?;
    let path = text.lines().find_map(|it| it.strip_prefix("0::"))?;
    Some(path.to_owned())
}

/// Anonymous memory of a process, in RAM and swapped.
fn memory_of(root: &Path, process: u32) -> u64 {
    let text = fs::read_to_string(root.join(format!("proc/{process}/status")));
    let text = text.unwrap_or_default();
    let kib = |name: &str| -> u64 {
        let line = text.lines().find_map(|it| it.strip_prefix(name));
        let number = line.and_then(|it| it.split_whitespace().next()?.parse().ok());
        number.unwrap_or(0)
    };
    (kib("RssAnon:") + kib("VmSwap:")) * 1024
}

/// Users with the names of their disks.
fn users(ended: BTreeMap<String, Ended>, mounted: &BTreeMap<u64, String>) -> Vec<User> {
    let users = ended.into_iter().map(|(name, ended)| {
        let disks = ended.writes_to.iter().filter_map(|it| mounted.get(it));
        User {
            name,
            read_bytes: ended.used.read_bytes,
            written_bytes: ended.used.written_bytes,
            cpu_ns: ended.used.cpu_ns,
            app: ended
                .cgroup
                .as_deref()
                .and_then(apps::app)
                .map(str::to_owned),
            is_direct: !ended.buffers && !ended.writes_to.is_empty(),
            writes_to: disks.cloned().collect(),
            cgroup: ended.cgroup,
            written_by: ended.written_by,
            grown_bytes: ended.grown_bytes,
        }
    });
    users.collect()
}

/// The apps that were held up, longest first.
fn held_up(before: &Counters, after: &Counters) -> Vec<HeldUp> {
    let since = after.held_up.iter().map(|(app, ns)| HeldUp {
        app: app.clone(),
        io_ns: ns.saturating_sub(before.held_up.get(app).copied().unwrap_or(0)),
    });
    let mut found: Vec<_> = since.filter(|it| it.io_ns > 0).collect();
    found.sort_by_key(|it| Reverse(it.io_ns));
    found.truncate(MOST_HELD_UP);
    found
}

fn disks(before: &Counters, after: &Counters, silences: &Silences) -> Vec<Traffic> {
    let none = Traffic::default();
    let since = after.disks.values().map(|end| {
        let begin = before.disks.get(&end.disk).unwrap_or(&none);
        Traffic {
            disk: end.disk.clone(),
            requests: end.requests.saturating_sub(begin.requests),
            request_ns: end.request_ns.saturating_sub(begin.request_ns),
            read_bytes: end.read_bytes.saturating_sub(begin.read_bytes),
            written_bytes: end.written_bytes.saturating_sub(begin.written_bytes),
            busy_ns: end.busy_ns.saturating_sub(begin.busy_ns),
            unanswered_ns: silences.longest_ns(&end.disk),
        }
    });
    since.collect()
}

fn counters(root: &Path) -> Counters {
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_default();
    let (cpu_busy, cpu_all) = cpu(&read("proc/stat"));
    let own = Task::parse(&read("proc/self/stat"));
    Counters {
        pressure: all_pressure(root),
        memory: memory(&read("proc/vmstat")),
        cpu_busy,
        cpu_all,
        own_cpu: own.map_or(0, |it| it.cpu_ticks),
        disks: all_traffic(root),
        held_up: apps::held_up(root),
        groups: Groups::look(root),
    }
}

/// I/O pressure of the system below `root` since its start, in nanoseconds.
pub fn io_pressure_ns(root: &Path) -> u64 {
    pressure(root, "io")
}

fn all_pressure(root: &Path) -> Pressure {
    Pressure {
        io_ns: pressure(root, "io"),
        memory_ns: pressure(root, "memory"),
        cpu_ns: pressure(root, "cpu"),
    }
}

fn pressure(root: &Path, of: &str) -> u64 {
    let path = root.join("proc/pressure").join(of);
    some_ns(&fs::read_to_string(path).unwrap_or_default())
}

/// Nanoseconds in a line `some avg10=0.00 avg60=0.00 avg300=0.00 total=123`, which has
/// microseconds.
pub(crate) fn some_ns(text: &str) -> u64 {
    let line = text.lines().find(|it| it.starts_with("some "));
    let total = line.and_then(|it| it.split_once("total="));
    total.map_or(0, |(_, us)| us.trim().parse::<u64>().unwrap_or(0) * 1000)
}

fn memory(vmstat: &str) -> Memory {
    let number = |name: &str| -> u64 {
        let mut lines = vmstat.lines().filter_map(|it| it.split_once(' '));
        let found = lines.find(|(key, _)| *key == name);
        found.map_or(0, |(_, value)| value.trim().parse().unwrap_or(0))
    };
    Memory {
        refaulted_bytes: number("workingset_refault_file") * PAGE_BYTES,
        // The counter is in KiB (mm/vmstat.c).
        paged_in_bytes: number("pgpgin") * 1024,
        swapped_in_bytes: number("pswpin") * PAGE_BYTES,
        dirty_before_bytes: 0,
        dirty_bytes: (number("nr_dirty") + number("nr_writeback")) * PAGE_BYTES,
    }
}

/// Busy and all ticks of the CPUs, from `cpu user nice system idle iowait irq softirq steal …`.
fn cpu(stat: &str) -> (u64, u64) {
    let line = stat.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .take(8)
        .filter_map(|it| it.parse().ok())
        .collect();
    let all: u64 = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    (all - idle, all)
}

fn all_traffic(root: &Path) -> BTreeMap<String, Traffic> {
    let entries = fs::read_dir(root.join("sys/block")).into_iter().flatten();
    let found = entries.flatten().filter_map(|entry| {
        let disk = entry.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(entry.path().join("stat")).ok()?;
        Some((disk.clone(), traffic(disk, &text)?))
    });
    found.collect()
}

fn traffic(disk: String, stat: &str) -> Option<Traffic> {
    let all = Statistics::parse(stat)?;
    Some(Traffic {
        disk,
        requests: all.reads + all.writes,
        request_ns: (all.read_ms + all.write_ms) * 1_000_000,
        read_bytes: all.read_bytes,
        written_bytes: all.written_bytes,
        busy_ns: all.busy_ms * 1_000_000,
        unanswered_ns: 0,
    })
}

/// All processes but this one and kernel threads.
fn processes(root: &Path, kernel: &mut KernelThreads) -> Vec<(u32, Task)> {
    let found = kernel.others(root).into_iter().filter_map(|number| {
        let text = fs::read_to_string(root.join(format!("proc/{number}/stat"))).ok()?;
        let task = Task::parse(&text)?;
        (!kernel.is_kernels(number, &task)).then_some((number, task))
    });
    found.collect()
}

fn used(root: &Path, process: u32, task: &Task) -> Used {
    let path = root.join(format!("proc/{process}/io"));
    let text = fs::read_to_string(path).unwrap_or_default();
    let cancelled = counter(&text, "cancelled_write_bytes: ");
    Used {
        name: task.name.clone(),
        read_bytes: counter(&text, "read_bytes: "),
        written_bytes: counter(&text, "write_bytes: ").saturating_sub(cancelled),
        cpu_ns: task.cpu_ticks * TICK_NS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_bypass_the_page_cache_are_told_apart() {
        use std::os::unix::fs::OpenOptionsExt;
        let directory = tempfile::tempdir().unwrap();
        let open = |name: &str, flags: OFlags| {
            let mut options = fs::OpenOptions::new();
            options.write(true).create(true);
            options.custom_flags(flags.bits() as i32);
            options.open(directory.path().join(name)).unwrap()
        };
        let files = [open("a", OFlags::DIRECT), open("b", OFlags::empty())];
        use std::os::fd::AsRawFd;
        let told = files.map(|it| {
            let name = it.as_raw_fd().to_string();
            is_direct(Path::new("/"), std::process::id(), OsStr::new(&name))
        });
        assert_eq!(told, [true, false]);
    }

    #[test]
    fn the_kernels_texts_are_read() {
        assert_eq!(
            some_ns("some avg10=0 avg60=0 avg300=0 total=7\nfull total=3\n"),
            7000
        );
        assert_eq!(cpu("cpu  10 1 5 80 4 0 0 0 0 0\ncpu0 1\n"), (16, 100));
        let memory = memory("pgpgin 2\npswpin 1\nworkingset_refault_file 3\n");
        assert_eq!(memory.paged_in_bytes, 2048);
        assert_eq!(memory.refaulted_bytes, 3 * 4096);
        let traffic = traffic("a".to_owned(), " 1 0 8 5 2 0 16 20 0 9 25 0 0 0 0 0 0").unwrap();
        assert_eq!((traffic.requests, traffic.request_ns), (3, 25_000_000));
        assert_eq!((traffic.written_bytes, traffic.busy_ns), (8192, 9_000_000));
    }

    #[test]
    fn an_app_that_waits_in_even_turns_is_met_as_often_as_it_waits() {
        for mean_ms in [20, 41, 82, 200] {
            for turn_ms in [20, 40, 41, 80, 82, 123, 200] {
                let mut chance = Random::new(7);
                let (mut now_ms, mut met) = (0.0, 0);
                for _ in 0..2000 {
                    now_ms +=
                        pause(Duration::from_millis(mean_ms), &mut chance).as_secs_f64() * 1e3;
                    // It waits for 0.6 of each of its turns.
                    met += u32::from((now_ms / f64::from(turn_ms)).fract() < 0.6);
                }
                let share = f64::from(met) / 2000.0;
                let every_ms = now_ms / 2000.0 / mean_ms as f64;
                assert!(
                    (0.55..0.65).contains(&share),
                    "{mean_ms} {turn_ms}: {share}"
                );
                assert!((0.97..1.03).contains(&every_ms), "{every_ms}");
            }
        }
    }

    #[test]
    fn a_process_that_was_met_as_a_shell_is_in_the_group_that_it_was_moved_to() {
        let root = tempfile::tempdir().unwrap();
        let is = |name: &str, group: &str| {
            let process = root.path().join("proc/7");
            fs::create_dir_all(&process).unwrap();
            let stat = format!("7 ({name}) S 1{}", " 0".repeat(48));
            fs::write(process.join("stat"), stat).unwrap();
            fs::write(process.join("cgroup"), format!("0::{group}\n")).unwrap();
        };
        is("sh", "/");
        let mut watch = Watch::begin(root.path());
        is("cat", "/small");
        watch.look(false);
        let met = watch.processes.values().next().unwrap();
        assert_eq!(met.end.name, "cat");
        assert_eq!(met.cgroup.as_deref(), Some("/small"));
    }

    fn wrote(name: &str, bytes: u64) -> Used {
        Used {
            name: name.to_owned(),
            written_bytes: bytes,
            ..Default::default()
        }
    }

    #[test]
    fn what_a_child_wrote_is_not_its_parents_when_it_has_ended() {
        let process = |parent, begin: Used, end: Used| Process {
            parent,
            begin,
            end,
            lives: true,
            ..Default::default()
        };
        // The shell had written 5 before. The child was seen to write 60, and wrote 100.
        let mut known = Processes::from([
            ((1, 1), process(0, wrote("sh", 5), wrote("sh", 5))),
            ((2, 2), process(1, Used::default(), wrote("dd", 60))),
        ]);
        let now = BTreeMap::from([((1, 1), (0, wrote("sh", 105)))]);
        bequeath(&mut known, &now);
        known.get_mut(&(1, 1)).unwrap().end = wrote("sh", 105);
        bequeath(&mut known, &now);
        let written: Vec<_> = known
            .values()
            .map(|it| (it.end.name.as_str(), it.own(|used| used.written_bytes)))
            .collect();
        assert_eq!(written, [("sh", 0), ("dd", 100)]);

        // Who was not seen to write did not: it was another child, which was never seen.
        let mut known = Processes::from([
            ((1, 1), process(0, wrote("sh", 5), wrote("sh", 5))),
            ((2, 2), process(1, Used::default(), wrote("sleep", 0))),
        ]);
        bequeath(&mut known, &now);
        let sleep = &known[&(2, 2)];
        assert_eq!(sleep.own(|used| used.written_bytes), 0);
        assert!(!sleep.lives);
        assert_eq!(known[&(1, 1)].inherited.written_bytes, 0);
    }
}
