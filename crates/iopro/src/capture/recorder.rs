//! Life cycle of a recording: load the programs, start the command, empty the rings in rounds, and
//! write.
//!
//! One thread empties the rings and another one writes. A disk that stalls, which is what one looks
//! for, thus does not let the rings run full.

use super::command::Subject;
use super::programs::Programs;
use super::symbols::Symbols;
use super::{Error, machine};
use crate::event::{Lost, LostKind};
use crate::recording::{Header, Target, WRITE_BYTES, Writer};
use crate::wire;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, PipeWriter};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant};
use sys::PathError;
use sys::confine::{self, Capabilities};

/// Pause between two rounds.
const ROUND: Duration = Duration::from_millis(100);
/// Pause if a ring is at least this full.
const SHORT_ROUND: Duration = Duration::from_millis(5);
const FILLING: f64 = 0.125;

/// Name of a recording without a file, in errors.
const PIPE: &str = "the pipe";

/// Time between two calls of `check`. What links a recording in progress tells of a second each
/// time, and knows a wait by its stack.
const CHECKS: Duration = Duration::from_millis(500);

/// Most bytes in memory that wait for the disk, without the last round's. Beyond it the rings fill
/// up, and lost events are counted.
const QUEUE_BYTES: usize = 64 << 20;
/// Most buffers that are kept for reuse, and the largest size of one: a burst must not hold memory
/// for ever.
const SPARE_BUFFERS: usize = 16;
const SPARE_BYTES: usize = 1 << 20;

/// Arguments of a recording.
#[derive(Clone, Debug)]
pub struct Request {
    /// Path of the recording's file.
    pub output: PathBuf,
    /// The foreground and the duration.
    pub what: What,
    /// Raw BTF of the running kernel, taken instead of its own. Only tracepoints are used then.
    pub btf: Option<Vec<u8>>,
}

/// The tasks whose waiting is of interest, and how long to record.
#[derive(Clone, Debug)]
pub enum What {
    /// All tasks, for this time, or until the recording is stopped.
    System(Option<Duration>),
    /// The process with this id, until it ends.
    Process(u32),
    /// The cgroup at this path, until the recording is stopped.
    Cgroup(PathBuf),
    /// A command with its arguments, until it ends.
    Command(Vec<String>),
}

/// State of a recording in progress.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Time since its begin.
    pub elapsed: Duration,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Number of lost events.
    pub lost: u64,
}

/// Results of a finished recording.
#[derive(Debug)]
pub struct Summary {
    /// State at the end of the recording.
    pub progress: Progress,
    /// Lost events by kind; empty most of the time.
    pub lost: Vec<Lost>,
    /// Programs that did not run because they were running already on that CPU, and how often.
    /// These are part of `lost` as well.
    pub missed: Vec<(String, u64)>,
    /// What this kernel cannot record, in one sentence each.
    pub missing: Vec<String>,
    /// Exit status of the command; None without one.
    pub command: Option<ExitStatus>,
}

/// One event in this many may be missed ([`LostKind::Missed`]). A task may be preempted while the
/// kernel counts it as in a program before or after it is, which no program can prevent
/// (bpf/program.h).
pub const EVENTS_PER_MISSED: u64 = 1000;

impl Summary {
    /// Checks that no more was lost than a preemptible kernel's share of `events` recorded ones.
    ///
    /// # Errors
    /// A sentence that names what was lost.
    pub fn check_lost(&self, events: u64) -> Result<(), String> {
        let is_allowed =
            |it: &Lost| it.kind == LostKind::Missed && it.count * EVENTS_PER_MISSED <= events;
        if self.lost.iter().all(is_allowed) {
            return Ok(());
        }
        Err(format!(
            "of {events} events some were lost: {:?} {:?}",
            self.lost, self.missed
        ))
    }
}

/// The programs after a recording. They are detached when it is dropped, which takes some seconds:
/// for each program the kernel waits until no CPU can be in it any more. The recording is whole
/// before.
#[derive(Debug)]
pub struct Loaded(Programs);

impl Drop for Loaded {
    fn drop(&mut self) {
        self.0.detach();
    }
}

impl Loaded {
    /// Detaches the programs, so that they cost nothing. They can record again.
    ///
    /// # Errors
    /// [`Error::Load`], if their state cannot be cleared.
    pub fn rest(&mut self) -> Result<(), Error> {
        self.0.rest()
    }

    /// Attaches the programs again after [`rest`](Loaded::rest), and records all tasks as
    /// [`stream()`] does. It is a recording of its own.
    ///
    /// # Errors
    /// As those of [`stream()`].
    pub fn stream(
        &mut self,
        pipe: PipeWriter,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Summary, Error> {
        self.0.attach_again()?;
        let header = machine::header(Target::System, self.0.rings.count(), &self.0);
        let output = Output::start(File::from(OwnedFd::from(pipe)), Path::new(PIPE), &header);
        Recorder::new(&mut self.0, output, Subject::Open, None).run(stop, progress)
    }
}

/// Records as `request` says, until `stop` is set or the recording ends by itself. When `progress` is called
/// first, the programs are loaded, the file is open and the command runs: the caller may confine itself then,
/// with [`Programs::Loaded`](sys::confine::Programs::Loaded) and [`kept()`].
///
/// # Errors
/// Before anything is recorded: for want of permission and the like. Later [`Error::DiskFull`] and
/// [`Error::File`]; the events recorded so far can be read.
pub fn record(
    request: &Request,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Summary, Loaded), Error> {
    let open = || sys::output::create(&request.output);
    let btf = request.btf.as_deref();
    record_to(&request.what, btf, (&request.output, &open), stop, progress)
}

/// Records into a pipe, whose other end has to be read meanwhile. Events that are not read in time
/// are lost and counted. `btf`: as in [`Request`].
///
/// # Errors
/// As [`record()`]; [`Error::File`] once the other end is closed.
pub fn stream(
    what: &What,
    btf: Option<&[u8]>,
    pipe: PipeWriter,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Summary, Loaded), Error> {
    let pipe = File::from(OwnedFd::from(pipe));
    let open = || pipe.try_clone();
    record_to(what, btf, (Path::new(PIPE), &open), stop, progress)
}

fn record_to(
    what: &What,
    btf: Option<&[u8]>,
    (output, open): (&Path, &dyn Fn() -> io::Result<File>),
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(Summary, Loaded), Error> {
    let cpus = libbpf_rs::num_possible_cpus().map_err(|error| Error::Load(error.to_string()))?;
    // Errors of the user are reported before anything is loaded or written.
    let (target, subject) = match what {
        What::System(_) | What::Command(_) => (Target::System, Subject::Open),
        What::Process(pid) => (Target::Process { pid: *pid }, Subject::process(*pid)?),
        What::Cgroup(path) => (machine::find_cgroup(path)?, Subject::Open),
    };
    let mut programs = Programs::load(cpus, btf)?;
    let file = open().map_err(PathError::of("access", output))?;
    let mut header = machine::header(target, cpus, &programs);
    let mut subject = subject;
    if let What::Command(command) = what {
        subject = Subject::start(command)?;
        if let Subject::Child(child) = &subject {
            header.target = Target::Command {
                command: command.clone(),
                pid: child.id(),
            };
        }
    }
    let limit = match what {
        What::System(limit) => *limit,
        _ => None,
    };
    let output = Output::start(file, output, &header);
    let recorder = Recorder::new(&mut programs, output, subject, limit);
    let summary = recorder.run(stop, progress)?;
    Ok((summary, Loaded(programs)))
}

/// Capabilities that recording `what` takes once `progress` is called. Kernels before 5.19 let nobody look at
/// a map without CAP_BPF; a command may have become another user's, and is asked to end nevertheless.
pub fn kept(what: &What) -> Capabilities {
    match what {
        What::Command(_) => Capabilities::BPF | Capabilities::KILL,
        What::System(_) | What::Process(_) | What::Cgroup(_) => Capabilities::BPF,
    }
}

struct Recorder<'a> {
    programs: &'a mut Programs,
    output: Output,
    subject: Subject,
    limit: Option<Duration>,
    begun: Instant,
    checked: Instant,
    lost: BTreeMap<LostKind, u64>,
    /// How often programs were missed in earlier recordings, which their counters have as well.
    missed_before: u64,
    told_stacks: BTreeSet<u32>,
    /// The kernel's functions, opened before the caller drops its capabilities and read when a stack is
    /// told.
    kernel: io::Result<File>,
    symbols: Option<Symbols>,
}

impl Recorder<'_> {
    fn new(
        programs: &mut Programs,
        output: Output,
        subject: Subject,
        limit: Option<Duration>,
    ) -> Recorder<'_> {
        Recorder {
            missed_before: total(&programs.missed()),
            programs,
            output,
            subject,
            limit,
            begun: Instant::now(),
            checked: Instant::now(),
            lost: BTreeMap::new(),
            told_stacks: BTreeSet::new(),
            kernel: Symbols::open(),
            symbols: None,
        }
    }

    fn run(
        mut self,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Summary, Error> {
        self.tell_cgroups();
        while !stop.load(Ordering::Relaxed) && !self.is_over() && !self.output.failed() {
            let pause = self.round();
            progress(self.progress());
            thread::sleep(pause);
        }
        self.subject.ask_to_end();
        // The command may take time to end, in which the rings must not run full.
        while self.subject.is_running_command() && !self.output.failed() {
            let pause = self.round();
            progress(self.progress());
            thread::sleep(pause);
        }
        let command = self.subject.end();
        self.round();
        self.tell_unfinished();
        self.check();
        let progress = self.progress();
        let lost = self.lost.into_iter();
        let lost = lost.filter(|(_, count)| *count > 0);
        let summary = Summary {
            progress,
            lost: lost.map(|(kind, count)| Lost { kind, count }).collect(),
            missed: self.programs.missed(),
            missing: self.programs.missing.clone(),
            command,
        };
        let bytes = self.output.end(now_ns())?;
        Ok(Summary {
            progress: Progress { bytes, ..progress },
            ..summary
        })
    }

    fn is_over(&mut self) -> bool {
        self.limit
            .is_some_and(|limit| self.begun.elapsed() >= limit)
            || self.subject.ended()
    }

    fn progress(&self) -> Progress {
        Progress {
            elapsed: self.begun.elapsed(),
            bytes: self.output.written(),
            lost: self.lost.values().sum(),
        }
    }

    /// Empties all rings once, and returns the pause until the next round.
    fn round(&mut self) -> Duration {
        if self.output.is_behind() {
            return SHORT_ROUND;
        }
        let begin_ns = now_ns();
        let mut filling = false;
        for cpu in 0..self.programs.rings.count() {
            filling |= self.programs.rings.fill(cpu) > FILLING;
            if self.programs.rings.is_empty(cpu) {
                continue;
            }
            let mut records = self.output.buffer();
            self.programs.rings.drain(cpu, &mut records);
            self.output.data(cpu as u16, records);
        }
        let lost = self.programs.lost();
        self.tell_lost(lost);
        if self.checked.elapsed() >= CHECKS {
            self.checked = Instant::now();
            self.check();
        }
        self.output.round(begin_ns);
        if filling { SHORT_ROUND } else { ROUND }
    }

    /// Checks what changes seldom or takes long to read.
    fn check(&mut self) {
        let missed = total(&self.programs.missed());
        let missed = missed.saturating_sub(self.missed_before);
        self.tell_lost(vec![(LostKind::Missed, missed)]);
        self.tell_stacks();
    }

    fn tell_lost(&mut self, counts: Vec<(LostKind, u64)>) {
        for (kind, count) in counts {
            let known = self.lost.entry(kind).or_default();
            if count > *known {
                let count_since = count - *known;
                *known = count;
                let lost = Lost {
                    kind,
                    count: count_since,
                };
                self.output.data(0, wire::lost(now_ns(), lost));
            }
        }
    }

    fn tell_cgroups(&mut self) {
        let Some(root) = machine::cgroup_root() else {
            return;
        };
        let now = now_ns();
        let records = machine::cgroups(&root)
            .into_iter()
            .flat_map(|(id, path)| wire::cgroup(now, id, &path));
        self.output.data(0, records.collect());
    }

    fn tell_stacks(&mut self) {
        for (id, addresses) in self.programs.stacks_but(&self.told_stacks) {
            self.told_stacks.insert(id);
            let kernel = &mut self.kernel;
            let symbols = self.symbols.get_or_insert_with(|| match kernel {
                Ok(list) => Symbols::read(list),
                Err(_) => Symbols::default(),
            });
            let names: Vec<_> = addresses.iter().map(|&it| symbols.name(it)).collect();
            self.output.data(0, wire::stack(now_ns(), id, &names));
        }
    }

    fn tell_unfinished(&mut self) {
        let now = now_ns();
        for state in self.programs.threads() {
            if let Some(record) = wire::unfinished(now, &state) {
                self.output.data(0, record);
            }
        }
        self.output.round(now);
    }
}

fn total(missed: &[(String, u64)]) -> u64 {
    missed.iter().map(|(_, count)| count).sum()
}

fn now_ns() -> u64 {
    machine::clock_ns(libc::CLOCK_MONOTONIC)
}

enum Piece {
    Data(u16, Vec<u8>),
    Round(u64),
    End(u64),
}

/// State that the two threads share.
#[derive(Debug, Default)]
struct Shared {
    waiting_bytes: AtomicUsize,
    written_bytes: AtomicU64,
    failed: AtomicBool,
}

/// The thread that writes, and the channel to it.
struct Output {
    pieces: Sender<Piece>,
    written: Receiver<Vec<u8>>,
    shared: Arc<Shared>,
    thread: thread::JoinHandle<io::Result<u64>>,
    path: PathBuf,
}

impl Output {
    fn start(file: File, path: &Path, header: &Header) -> Output {
        let (pieces, receiver) = mpsc::channel();
        let (give_back, written) = mpsc::sync_channel(SPARE_BUFFERS);
        let shared = Arc::new(Shared::default());
        let (theirs, header) = (Arc::clone(&shared), header.clone());
        let thread = thread::spawn(move || {
            // It writes a file that is open.
            let written = confine::drop_capabilities()
                .map_err(io::Error::other)
                .and_then(|()| write(file, &header, &receiver, &give_back, &theirs));
            theirs.failed.store(written.is_err(), Ordering::Relaxed);
            written
        });
        Output {
            pieces,
            written,
            shared,
            thread,
            path: path.to_owned(),
        }
    }

    /// An empty buffer, if possible one that was used: fresh memory takes more time than the copy
    /// into it.
    fn buffer(&self) -> Vec<u8> {
        self.written.try_recv().unwrap_or_default()
    }

    fn data(&self, cpu: u16, bytes: Vec<u8>) {
        self.shared
            .waiting_bytes
            .fetch_add(bytes.capacity(), Ordering::Relaxed);
        self.send(Piece::Data(cpu, bytes));
    }

    fn round(&self, begin_ns: u64) {
        self.send(Piece::Round(begin_ns));
    }

    fn send(&self, piece: Piece) {
        // The send fails only if the writer failed, which `failed` and `end` report.
        let _ = self.pieces.send(piece);
    }

    fn failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }

    fn is_behind(&self) -> bool {
        self.shared.waiting_bytes.load(Ordering::Relaxed) > QUEUE_BYTES
    }

    fn written(&self) -> u64 {
        self.shared.written_bytes.load(Ordering::Relaxed)
    }

    /// Waits until all is written, and returns the size of the file.
    fn end(self, end_ns: u64) -> Result<u64, Error> {
        self.send(Piece::End(end_ns));
        let Output { path, thread, .. } = self;
        let written = thread
            .join()
            .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        written.map_err(|source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Error::DiskFull { path },
            _ => PathError::of("access", &path)(source).into(),
        })
    }
}

fn write(
    file: File,
    header: &Header,
    pieces: &Receiver<Piece>,
    give_back: &SyncSender<Vec<u8>>,
    shared: &Shared,
) -> io::Result<u64> {
    let mut writer = Writer::new(BufWriter::with_capacity(WRITE_BYTES, file), header)?;
    for piece in pieces {
        match piece {
            Piece::Data(cpu, mut bytes) => {
                writer.data(cpu, &[&bytes])?;
                shared
                    .waiting_bytes
                    .fetch_sub(bytes.capacity(), Ordering::Relaxed);
                bytes.clear();
                if bytes.capacity() <= SPARE_BYTES {
                    // The channel may be full or closed; the buffer is then dropped.
                    let _ = give_back.try_send(bytes);
                }
            }
            // After each round the file is whole, so a kill costs one round at most.
            Piece::Round(begin_ns) => {
                writer.round(begin_ns)?;
                writer.flush()?;
            }
            Piece::End(end_ns) => {
                writer.end(end_ns)?;
                break;
            }
        }
        shared
            .written_bytes
            .store(writer.bytes(), Ordering::Relaxed);
    }
    Ok(writer.bytes())
}
