//! The programs in the kernel: loading, attaching, and their counters.

mod types;

use self::types::Btf;
use super::Error;
use super::ring::{Layout, Rings, SLACK_BYTES};
use crate::event::{CallKind, LostKind};
use libbpf_rs::{
    AsRawLibbpf, Link, MapCore, MapFlags, Object, ObjectBuilder, OpenObject, PrintLevel,
};
use std::cell::LazyCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The programs for kernels that know their own types and let functions be traced, and those for
/// all others (`bpf/program.h`).
static TYPED: &[u8] = include_bytes!(env!("IOPRO_BPF_TYPED"));
static UNTYPED: &[u8] = include_bytes!(env!("IOPRO_BPF_UNTYPED"));

/// Size of all rings; with the other maps this is below 50 MB.
const RINGS_BYTES: usize = 32 << 20;
/// Smallest size of a ring: a smaller one is full before the recorder looks.
const RING_MIN_BYTES: usize = 64 << 10;
/// Largest value of a map that every kernel allows.
const SEGMENT_MAX_BYTES: usize = 2 << 20;

/// System call numbers from here on are not recorded (`MAX_CALLS` of `bpf/state.h`).
const CALL_NUMBERS: usize = 512;
/// Map with `struct settings` of `bpf/state.h`.
const SETTINGS: &str = ".rodata.settings";

/// Programs without which nothing can be recorded. If one of the others is missing, the recording
/// says so.
const NEEDED: [&str; 9] = [
    "call_begins",
    "call_ends",
    "bio_queued",
    "request_issued",
    "request_completed",
    "page_dirtied",
    "switched",
    "woken",
    // It tells that known data of an inode are out of date.
    "inode_wait_begins",
];

/// The loaded and attached programs.
#[derive(Debug)]
pub struct Programs {
    object: Object,
    /// By the programs' names.
    links: Vec<(String, Link)>,
    /// Ring buffers with the programs' events.
    pub rings: Rings,
    /// What this kernel cannot record, in one sentence each.
    pub missing: Vec<String>,
}

/// Messages of libbpf: it reports details of errors only by printing them.
static COMPLAINTS: Mutex<String> = Mutex::new(String::new());

fn note_complaint(_: PrintLevel, text: String) {
    if let Ok(mut complaints) = COMPLAINTS.lock() {
        complaints.push_str(&text);
    }
}

fn complaints() -> String {
    COMPLAINTS
        .lock()
        .map(|mut it| std::mem::take(&mut *it))
        .unwrap_or_default()
}

/// How the programs see this kernel.
#[derive(Clone, Copy, Debug)]
enum Sight<'a> {
    /// It knows its types, and lets its functions be traced.
    Typed,
    /// Its tracepoints only. The types are its own, or those of a file.
    Untyped(Option<&'a Path>),
}

impl Programs {
    /// Loads the programs into the running kernel and begins to capture. `btf` is raw type
    /// information of this kernel, which is taken instead of its own.
    pub fn load(cpus: usize, btf: Option<&[u8]>) -> Result<Programs, Error> {
        libbpf_rs::set_print(Some((PrintLevel::Warn, note_complaint)));
        try_any_program()?;
        if let Some(btf) = btf {
            let (_file, path) = file_of(btf).map_err(Error::System)?;
            return Programs::load_with(cpus, Sight::Untyped(Some(&path)));
        }
        if !types::are_shown() {
            return Err(Error::NoBtf);
        }
        match Programs::load_with(cpus, Sight::Typed) {
            Err(Error::FunctionsNotTraced) => Programs::load_with(cpus, Sight::Untyped(None)),
            loaded => loaded,
        }
    }

    fn load_with(cpus: usize, sight: Sight<'_>) -> Result<Programs, Error> {
        let layout = layout(cpus);
        let (object, mut missing) = load(layout, sight)?;
        let rings = map_rings(&object, layout)?;
        let links = attach(&object, &mut missing)?;
        Ok(Programs {
            object,
            links,
            rings,
            missing,
        })
    }

    /// Ends the capture. The kernel waits for each program until no CPU can be in it any more, so
    /// all programs are detached at the same time.
    pub fn detach(&mut self) {
        let links = std::mem::take(&mut self.links);
        std::thread::scope(|scope| {
            for link in links {
                scope.spawn(|| drop(link));
            }
        });
    }

    /// Attaches the programs again after [`rest`](Programs::rest).
    pub fn attach_again(&mut self) -> Result<(), Error> {
        // What could not be attached the first time is in `missing`.
        self.links = attach(&self.object, &mut Vec::new())?;
        Ok(())
    }

    /// Ends the capture and forgets all state, so that it can begin anew.
    pub fn rest(&mut self) -> Result<(), Error> {
        self.detach();
        let mut left = Vec::new();
        for cpu in 0..self.rings.count() {
            self.rings.drain(cpu, &mut left);
            left.clear();
        }
        for name in ["threads", "seen", "cpus"] {
            self.clear(name)
                .map_err(|error| Error::Load(format!("cannot clear {name}: {error}")))?;
        }
        Ok(())
    }

    /// Fills an array with zeroes.
    fn clear(&self, name: &str) -> libbpf_rs::Result<()> {
        let Some(map) = self.map(name) else {
            return Ok(());
        };
        let zeroes = vec![0; map.value_size() as usize];
        let of_cpus = match map.map_type().is_percpu() {
            true => vec![zeroes.clone(); self.rings.count()],
            false => Vec::new(),
        };
        for place in 0..map.max_entries() {
            let place = place.to_le_bytes();
            match of_cpus.is_empty() {
                true => map.update(&place, &zeroes, MapFlags::ANY)?,
                false => map.update_percpu(&place, &of_cpus, MapFlags::ANY)?,
            }
        }
        Ok(())
    }

    /// Whether they tell of pages that are taken for writeback.
    pub fn tell_taken(&self) -> bool {
        self.links.iter().any(|(name, _)| name == "page_cleaned")
    }

    /// Number of events lost so far, by kind.
    pub fn lost(&self) -> Vec<(LostKind, u64)> {
        let mut sums = vec![0; LostKind::ALL.len()];
        let values = self.map("cpus").and_then(|map| {
            map.lookup_percpu(&0u32.to_le_bytes(), MapFlags::ANY)
                .ok()
                .flatten()
        });
        for value in values.into_iter().flatten() {
            for (sum, count) in sums.iter_mut().zip(value.chunks_exact(8)) {
                *sum += u64::from_le_bytes(count.try_into().unwrap_or_default());
            }
        }
        LostKind::ALL.iter().copied().zip(sums).collect()
    }

    /// How often each program did not run because it was running already on that CPU.
    pub fn missed(&self) -> Vec<(String, u64)> {
        self.object
            .progs()
            .filter_map(|program| {
                // SAFETY: the kernel fills what it knows of the plain structure.
                let mut info: libbpf_sys::bpf_prog_info = unsafe { std::mem::zeroed() };
                let mut length = size_of_val(&info) as u32;
                // SAFETY: descriptor and structure are valid for the call.
                let status = unsafe {
                    libbpf_sys::bpf_obj_get_info_by_fd(
                        program.as_fd().as_raw_fd(),
                        (&raw mut info).cast(),
                        &mut length,
                    )
                };
                let name = program.name().to_string_lossy().into_owned();
                (status == 0 && info.recursion_misses > 0).then_some((name, info.recursion_misses))
            })
            .collect()
    }

    /// The programs' state of all threads; most entries are free.
    pub fn threads(&self) -> Vec<Vec<u8>> {
        let places = self.entries("threads", |_| true).into_iter();
        places.map(|(_, state)| state).collect()
    }

    /// The addresses of all stacks but the `known` ones, by the stack's id.
    pub fn stacks_but(&self, known: &BTreeSet<u32>) -> Vec<(u32, Vec<u64>)> {
        let addresses = |value: Vec<u8>| {
            value
                .chunks_exact(8)
                .map(|it| u64::from_le_bytes(it.try_into().unwrap_or_default()))
                .take_while(|&address| address != 0)
                .collect()
        };
        self.entries("stacks", |id| !known.contains(&id))
            .into_iter()
            .map(|(id, value)| (id, addresses(value)))
            .collect()
    }

    fn entries(&self, name: &str, is_wanted: impl Fn(u32) -> bool) -> Vec<(u32, Vec<u8>)> {
        let Some(map) = self.map(name) else {
            return Vec::new();
        };
        map.keys()
            .filter_map(|key| {
                let number = u32::from_le_bytes(key.as_slice().try_into().ok()?);
                // The program may have deleted it meanwhile.
                let value = || map.lookup(&key, MapFlags::ANY).ok()?;
                Some((number, is_wanted(number).then(value)??))
            })
            .collect()
    }

    fn map(&self, name: &str) -> Option<libbpf_rs::Map<'_>> {
        self.object.maps().find(|map| map.name() == name)
    }
}

/// A file in memory with these bytes, and its path, by which libbpf opens it.
fn file_of(bytes: &[u8]) -> io::Result<(File, PathBuf)> {
    // SAFETY: the name is terminated, and the descriptor is nobody else's.
    let mut file = unsafe {
        match libc::memfd_create(c"btf".as_ptr(), libc::MFD_CLOEXEC) {
            -1 => return Err(io::Error::last_os_error()),
            descriptor => File::from_raw_fd(descriptor),
        }
    };
    file.write_all(bytes)?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    Ok((file, path))
}

fn layout(cpus: usize) -> Layout {
    let part = RINGS_BYTES / cpus.max(1);
    let power = (part + 1).next_power_of_two() / 2;
    let ring_bytes = power.max(RING_MIN_BYTES);
    let segment_bytes = ring_bytes.min(SEGMENT_MAX_BYTES);
    Layout {
        cpus,
        segments: ring_bytes / segment_bytes,
        segment_bytes,
    }
}

fn set_up(object: &mut OpenObject, layout: Layout) -> Result<(), Error> {
    let failed = |error: libbpf_rs::Error| Error::Load(error.to_string());
    for mut map in object.maps_mut() {
        match map.name().to_str() {
            Some("positions") => map.set_max_entries(layout.cpus as u32).map_err(failed)?,
            Some("segments") => {
                let count = layout.cpus * layout.segments;
                let bytes = layout.segment_bytes + SLACK_BYTES;
                map.set_max_entries(count as u32).map_err(failed)?;
                map.set_value_size(bytes as u32).map_err(failed)?;
            }
            Some(SETTINGS) => {
                let settings = settings(layout);
                let memory = map.initial_value_mut();
                let memory = memory.filter(|memory| memory.len() == settings.len());
                let wrong = || Error::Load(format!("{SETTINGS} has another size"));
                memory.ok_or_else(wrong)?.copy_from_slice(&settings);
            }
            _ => {}
        }
    }
    Ok(())
}

/// The bytes of `struct settings`: constants that the programs are loaded with.
fn settings(layout: Layout) -> Vec<u8> {
    let mut call_kinds = [0; CALL_NUMBERS];
    for (number, kind) in calls() {
        call_kinds[number] = kind as u8;
    }
    let segments = layout.segments as u32;
    let segment_shift = layout.segment_bytes.trailing_zeros();
    let page_shift = super::machine::page_bytes().trailing_zeros();
    [
        &call_kinds[..],
        &segments.to_le_bytes(),
        &segment_shift.to_le_bytes(),
        &page_shift.to_le_bytes(),
    ]
    .concat()
}

/// Calls that later architectures were not given.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: [(libc::c_long, CallKind); 6] = [
    (libc::SYS_open, CallKind::Open),
    (libc::SYS_creat, CallKind::Creat),
    (libc::SYS_rename, CallKind::Rename),
    (libc::SYS_unlink, CallKind::Unlink),
    (libc::SYS_rmdir, CallKind::Rmdir),
    (libc::SYS_mkdir, CallKind::Mkdir),
];
/// Calls that later architectures were not given.
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: [(libc::c_long, CallKind); 0] = [];

/// The numbers that recorded calls have on this machine.
fn calls() -> Vec<(usize, CallKind)> {
    let calls = [
        (libc::SYS_read, CallKind::Read),
        (libc::SYS_pread64, CallKind::Pread64),
        (libc::SYS_readv, CallKind::Readv),
        (libc::SYS_preadv, CallKind::Preadv),
        (libc::SYS_preadv2, CallKind::Preadv2),
        (libc::SYS_write, CallKind::Write),
        (libc::SYS_pwrite64, CallKind::Pwrite64),
        (libc::SYS_writev, CallKind::Writev),
        (libc::SYS_pwritev, CallKind::Pwritev),
        (libc::SYS_pwritev2, CallKind::Pwritev2),
        (libc::SYS_fsync, CallKind::Fsync),
        (libc::SYS_fdatasync, CallKind::Fdatasync),
        (libc::SYS_sync_file_range, CallKind::SyncFileRange),
        (libc::SYS_sync, CallKind::Sync),
        (libc::SYS_syncfs, CallKind::Syncfs),
        (libc::SYS_msync, CallKind::Msync),
        (libc::SYS_truncate, CallKind::Truncate),
        (libc::SYS_ftruncate, CallKind::Ftruncate),
        (libc::SYS_fallocate, CallKind::Fallocate),
        (libc::SYS_openat, CallKind::Openat),
        (libc::SYS_openat2, CallKind::Openat2),
        (libc::SYS_renameat, CallKind::Renameat),
        (libc::SYS_renameat2, CallKind::Renameat2),
        (libc::SYS_unlinkat, CallKind::Unlinkat),
        (libc::SYS_mkdirat, CallKind::Mkdirat),
        (libc::SYS_sendfile, CallKind::Sendfile),
        (libc::SYS_copy_file_range, CallKind::CopyFileRange),
        (libc::SYS_splice, CallKind::Splice),
        (libc::SYS_getdents64, CallKind::Getdents64),
        (libc::SYS_io_uring_enter, CallKind::IoUringEnter),
        (libc::SYS_io_submit, CallKind::IoSubmit),
        (libc::SYS_io_getevents, CallKind::IoGetevents),
        (libc::SYS_fadvise64, CallKind::Fadvise64),
        (libc::SYS_readahead, CallKind::Readahead),
        (libc::SYS_execve, CallKind::Execve),
    ];
    calls
        .into_iter()
        .chain(OLD_CALLS)
        .map(|(number, kind)| (number as usize, kind))
        .filter(|(number, _)| *number < CALL_NUMBERS)
        .collect()
}

/// Leaves out the programs whose tracepoint or function is neither in the kernel's BTF nor in that
/// of a loaded module. Returns a sentence for each.
fn leave_out_missing(object: &mut OpenObject) -> Result<Vec<String>, Error> {
    let kernel = Btf::of_kernel()?;
    // Where a file system is a module, so are the functions of its journal.
    let modules = LazyCell::new(|| kernel.names_in_modules());
    let is_known = |name: &str, kind| kernel.has(name, kind) || modules.contains(name);
    let mut missing = Vec::new();
    for mut program in object.progs_mut() {
        let section = program.section().to_string_lossy().into_owned();
        let name = program.name().to_string_lossy().into_owned();
        let (kind, target) = section.split_once('/').unwrap_or_default();
        let there = match kind {
            "tp_btf" => is_known(&format!("btf_trace_{target}"), libbpf_sys::BTF_KIND_TYPEDEF),
            _ => is_known(target, libbpf_sys::BTF_KIND_FUNC),
        };
        if there {
            continue;
        }
        if NEEDED.contains(&name.as_str()) {
            return Err(Error::KernelLacks(target.to_owned()));
        }
        program.set_autoload(false);
        let sentence = format!("This kernel has no {target}, so {name} is not recorded.");
        missing.push(sentence);
    }
    Ok(missing)
}

/// Leaves out the programs on functions.
fn leave_out_functions(object: &mut OpenObject) -> Vec<String> {
    for mut program in object.progs_mut() {
        if !program.section().to_string_lossy().starts_with("raw_tp/") {
            program.set_autoload(false);
        }
    }
    vec![
        "This kernel's functions are not traced: why a task waits is told by its stack, and page \
         faults, truncation, renames and the flusher's turns are not recorded."
            .to_owned(),
    ]
}

/// Loads all programs whose place exists and whose arguments have the known form. Returns a
/// sentence for each of the others.
fn load(layout: Layout, sight: Sight<'_>) -> Result<(Object, Vec<String>), Error> {
    let mut unknown: Vec<(String, String)> = Vec::new();
    loop {
        let (mut object, mut missing) = open(sight)?;
        for (name, sentence) in &unknown {
            leave_out(&mut object, name);
            missing.push(sentence.clone());
        }
        set_up(&mut object, layout)?;
        let error = match object.load() {
            Ok(object) => return Ok((object, missing)),
            Err(error) => error,
        };
        let text = [error.to_string(), complaints()].join("\n");
        match rejected(&text, sight) {
            Some((name, why)) if !NEEDED.contains(&name) => {
                if unknown.iter().any(|(known, _)| known == name) {
                    return Err(load_error(&text));
                }
                unknown.push((
                    name.to_owned(),
                    format!("{why}, so {name} is not recorded."),
                ));
            }
            _ => return Err(load_error(&text)),
        }
    }
}

/// The programs that this kernel has a place for, and a sentence for each of the others.
fn open(sight: Sight<'_>) -> Result<(OpenObject, Vec<String>), Error> {
    let failed = |error: libbpf_rs::Error| Error::Load(error.to_string());
    let mut builder = ObjectBuilder::default();
    let bytes = match sight {
        Sight::Typed => TYPED,
        Sight::Untyped(_) => UNTYPED,
    };
    if let Sight::Untyped(Some(btf)) = sight {
        builder.btf_custom_path(btf).map_err(failed)?;
    }
    let mut object = builder.open_memory(bytes).map_err(failed)?;
    let missing = match sight {
        Sight::Typed => leave_out_missing(&mut object)?,
        Sight::Untyped(_) => leave_out_functions(&mut object),
    };
    Ok((object, missing))
}

fn leave_out(object: &mut OpenObject, name: &str) {
    for mut program in object.progs_mut() {
        if program.name().to_string_lossy() == name {
            program.set_autoload(false);
        }
    }
}

/// The program that the verifier rejects, and why, if recording can do without it: the kernel's
/// function has fewer or other arguments than it reads, or a file of types lacks those of a module.
fn rejected<'a>(log: &'a str, sight: Sight<'_>) -> Option<(&'a str, String)> {
    let (before, _) = log.split_once("': BPF program load failed: ")?;
    let (_, name) = before.rsplit_once('\'')?;
    if log.contains("invalid bpf_context access") {
        return Some((
            name,
            "This kernel's arguments are other than known".to_owned(),
        ));
    }
    let field = unresolved(log)?;
    matches!(sight, Sight::Untyped(_))
        .then(|| (name, format!("The type information has no known {field}")))
}

fn map_rings(object: &Object, layout: Layout) -> Result<Rings, Error> {
    let find = |name: &str| {
        let found = object.maps().find(|map| map.name() == name);
        found.ok_or_else(|| Error::Load(format!("the object has no map {name}")))
    };
    let (positions, segments) = (find("positions")?, find("segments")?);
    Rings::new(layout, positions.as_fd(), segments.as_fd()).map_err(Error::System)
}

/// Attaches the programs. A kernel may know a function and still forbid to trace it.
fn attach(object: &Object, missing: &mut Vec<String>) -> Result<Vec<(String, Link)>, Error> {
    let mut links = Vec::new();
    let mut programs: Vec<_> = object.progs_mut().collect();
    // What begins before its end is attached would never end: a thread's later sleeps would all
    // be taken for that wait. Sleeps are told once all else is.
    programs.sort_by_key(|it| match it.name().to_string_lossy().as_ref() {
        "switched" => 2,
        name => u8::from(!name.ends_with("_ends")),
    });
    for program in programs {
        // SAFETY: the program lives as long as its object.
        let loaded =
            unsafe { libbpf_sys::bpf_program__autoload(program.as_libbpf_object().as_ptr()) };
        if !loaded {
            continue;
        }
        let name = program.name().to_string_lossy().into_owned();
        match program.attach() {
            Ok(link) => links.push((name, link)),
            Err(_) if NEEDED.contains(&name.as_str()) => {
                return Err(attach_error(&name, &complaints()));
            }
            Err(_) => {
                let section = program.section().to_string_lossy().into_owned();
                missing.push(format!(
                    "This kernel does not let {section} be traced, so {name} is not recorded."
                ));
            }
        }
    }
    Ok(links)
}

/// libbpf's words for a kernel that has no trampolines: `prog 'NAME': failed to attach: -ENOTSUPP`.
fn attach_error(name: &str, text: &str) -> Error {
    let of_program = format!("prog '{name}': ");
    let mut lines = text.lines().filter(|line| line.contains(&of_program));
    match lines.any(|line| line.contains("-ENOTSUPP")) {
        true => Error::FunctionsNotTraced,
        false => Error::Load(format!("{name}: {}", text.trim())),
    }
}

fn load_error(text: &str) -> Error {
    if is_forbidden(text) {
        return super::permission::why_refused();
    }
    match unresolved(text) {
        Some(field) => Error::UnknownField(field.to_owned()),
        None => Error::Load(text.trim().to_owned()),
    }
}

/// Whether the kernel forbids real programs, although it allows the smallest one. A program that
/// the verifier rejects has another error, -EACCES.
fn is_forbidden(log: &str) -> bool {
    log.contains("BPF program load failed: -EPERM")
}

/// The field that the kernel's types lack or have in another form, from what libbpf adds to the
/// verifier's log: `failed to resolve CO-RE relocation <byte_off> [27] struct folio.flags (0:0 @
/// offset 0)`.
fn unresolved(log: &str) -> Option<&str> {
    let (_, relocation) = log.split_once("failed to resolve CO-RE relocation ")?;
    let (_, field) = relocation.lines().next()?.split_once("] ")?;
    Some(field.split_once(" (").map_or(field, |(field, _)| field))
}

/// Loads the smallest possible tracing program. If that is refused, all are; any later error is a
/// fault of frontrow.
fn try_any_program() -> Result<(), Error> {
    /// `r0 = 0; exit`
    const INSTRUCTIONS: [libbpf_sys::bpf_insn; 2] = [instruction(0xb7), instruction(0x95)];
    // SAFETY: the instructions and the strings live until the call returns.
    let fd = unsafe {
        libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_RAW_TRACEPOINT,
            c"iopro_try".as_ptr(),
            c"GPL".as_ptr(),
            INSTRUCTIONS.as_ptr(),
            INSTRUCTIONS.len() as _,
            std::ptr::null_mut(),
        )
    };
    if fd >= 0 {
        // SAFETY: the kernel just gave it to us.
        drop(unsafe { OwnedFd::from_raw_fd(fd) });
        return Ok(());
    }
    Err(match -fd {
        libc::EPERM | libc::EACCES => super::permission::why_refused(),
        libc::ENOSYS => Error::Refused {
            reason: "it was built without BPF",
        },
        code => Error::System(io::Error::from_raw_os_error(code)),
    })
}

const fn instruction(code: u8) -> libbpf_sys::bpf_insn {
    libbpf_sys::bpf_insn {
        code,
        _bitfield_align_1: [],
        _bitfield_1: libbpf_sys::__BindgenBitfieldUnit::new([0]),
        off: 0,
        imm: 0,
    }
}

#[cfg(test)]
mod layout_tests;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_trampolines_is_told_from_one_that_refuses_a_program() {
        let log = "libbpf: prog 'page_cleaned': failed to attach: -ENOTSUPP\n\
                   libbpf: prog 'inode_wait_begins': failed to attach: -EBUSY\n";
        let error = attach_error("page_cleaned", log);
        assert!(matches!(error, Error::FunctionsNotTraced), "{error}");
        let error = attach_error("inode_wait_begins", log);
        assert!(matches!(error, Error::Load(_)), "{error}");
    }

    #[test]
    fn all_rings_stay_below_the_bound_and_are_powers_of_two() {
        for cpus in [1, 2, 3, 8, 64, 96, 256] {
            let layout = layout(cpus);
            let bytes = layout.ring_bytes();
            assert!(bytes.is_power_of_two(), "{cpus}");
            assert!(layout.segment_bytes <= SEGMENT_MAX_BYTES, "{cpus}");
            let with_slack = (layout.segment_bytes + SLACK_BYTES) * layout.segments * cpus;
            assert!(with_slack < 40 << 20, "{cpus}: {with_slack}");
        }
    }

    #[test]
    fn what_is_forbidden_is_told_from_what_the_verifier_does_not_accept() {
        assert!(is_forbidden(
            "libbpf: prog 'switched': BPF program load failed: -EPERM"
        ));
        assert!(!is_forbidden(
            "libbpf: prog 'switched': BPF program load failed: -EACCES"
        ));
    }

    #[test]
    fn a_program_for_other_arguments_is_named() {
        let log = "Permission denied (os error 13)\n\
             libbpf: prog 'ring_completed': BPF program load failed: -EACCES\n\
             func 'io_uring_complete' doesn't have 4-th argument\n\
             invalid bpf_context access off=24 size=8\n";
        let name = rejected(log, Sight::Typed).map(|(name, _)| name);
        assert_eq!(name, Some("ring_completed"));
        let log =
            "libbpf: prog 'switched': BPF program load failed: -EACCES\nR3 invalid mem access";
        assert_eq!(rejected(log, Sight::Typed), None);
    }

    #[test]
    fn a_program_whose_types_are_in_no_file_is_left_out() {
        let log = "libbpf: prog 'commit_starts': BPF program load failed: -EINVAL\n\
             failed to resolve CO-RE relocation <byte_off> [9] struct journal_s.j_fs_dev (0:0 @ \
             offset 0)";
        let (name, why) = rejected(log, Sight::Untyped(None)).unwrap();
        assert_eq!(name, "commit_starts");
        assert!(why.ends_with("struct journal_s.j_fs_dev"), "{why}");
        assert_eq!(rejected(log, Sight::Typed), None);
    }

    #[test]
    fn a_field_that_the_kernel_lacks_is_named() {
        let log = "0: R1=ctx()\n<invalid CO-RE relocation>\n\
             failed to resolve CO-RE relocation <byte_off> [27] struct folio.flags (0:0 @ offset 0)\n\
             processed 12 insns";
        assert_eq!(unresolved(log), Some("struct folio.flags"));
        assert_eq!(unresolved("R3 invalid mem access 'scalar'"), None);
    }

    #[test]
    fn each_kind_of_call_has_one_number() {
        let mut numbers: Vec<_> = calls().into_iter().map(|(number, _)| number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), calls().len());
    }
}
