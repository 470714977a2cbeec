//! Samples of where tasks are blocked: of all sleeps at levels 2 and 3, and at level 1 of those that
//! iopro does not tell of.

use crate::live::{MOST_NAMES, OTHERS};
use crate::observe::Wait;
use crate::task::{KernelThreads, Task, counter, numbers};
use iopro::wait::Class;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Prefixes of system calls in a stack, by architecture. Calls without arguments, such as sync,
/// have another prefix.
const CALLS: [&str; 4] = ["__x64_sys_", "__arm64_sys_", "__se_sys_", "__do_sys_"];
/// Functions in which a task waits for a network server or a FUSE process.
const REMOTE: [&str; 7] = [
    "request_wait_answer",
    "fuse_",
    "rpc_wait_bit",
    "nfs_",
    "cifs_",
    "p9_client_",
    "ceph_",
];

/// Functions of waits whose class is known only from the stack. The first entry in the stack
/// decides, after those of [`Class::of_stack`].
const BY_FUNCTION: [(&str, Class); 17] = [
    ("mem_cgroup_handle_over_high", Class::Reclaim),
    ("do_swap_page", Class::Service),
    ("swap_read_folio", Class::Service),
    ("read_swap_cache_async", Class::Service),
    ("__iomap_dio_rw", Class::Service),
    ("iomap_dio_rw", Class::Service),
    ("__blkdev_direct_IO", Class::Service),
    ("blkdev_direct_IO", Class::Service),
    ("filemap_read", Class::Service),
    ("filemap_update_page", Class::Service),
    ("page_cache_ra", Class::Service),
    ("__wait_on_buffer", Class::Service),
    ("__bread", Class::Service),
    ("wait_on_buffer", Class::Service),
    ("rwsem_down", Class::Lock),
    ("__mutex_lock", Class::Lock),
    ("folio_lock", Class::Lock),
];

/// Functions that take the lock of a file or directory. What waits for it is not in a stack, so one
/// of them is the innermost there.
const LOCKING: [&str; 20] = [
    "xfs_ilock",
    "ext4_buffered_write_iter",
    "ext4_dio_write_iter",
    "ext4_file_write_iter",
    "ext4_file_read_iter",
    "ext4_fallocate",
    "generic_file_write_iter",
    "btrfs_inode_lock",
    "f2fs_file_write_iter",
    "path_openat",
    "open_last_lookups",
    "filename_create",
    "lock_rename",
    "lookup_slow",
    "do_unlinkat",
    "do_rmdir",
    "do_truncate",
    "iterate_dir",
    "vfs_fallocate",
    "chmod_common",
];

/// Functions that tell a call where its own is not in the stack: a fault, a worker of io_uring, and
/// the calls that end by calling another function (tail calls).
const BY_WAY: [(&str, &str); 7] = [
    // The call has been left by then: the last one to use a file system takes it apart.
    ("cleanup_mnt", "umount"),
    ("filemap_fault", "read-fault"),
    ("io_fsync", "io_uring:3"),
    ("io_read", "io_uring:22"),
    ("io_write", "io_uring:23"),
    ("vfs_read", "read"),
    ("vfs_write", "write"),
];
/// Functions by which any call waits until data are on the device: fsync, msync, a synchronous write.
/// The first ends by calling one of a file system.
const SYNCS: [&str; 10] = [
    "vfs_fsync_range",
    "generic_write_sync",
    "iomap_dio_complete",
    "ext4_sync_file",
    "xfs_file_fsync",
    "btrfs_sync_file",
    "f2fs_sync_file",
    "f2fs_do_sync_file",
    "generic_file_fsync",
    "blkdev_fsync",
];

/// Functions in which a task waits for a child (`wait_for_vfork_done` in kernel/fork.c), whose own
/// waits count, or for all CPUs to have passed some point; or in which it sleeps or waits for words, if its
/// wait had ended before its stack was read.
const ELSEWHERE: [&str; 10] = [
    "hrtimer_nanosleep",
    "do_poll",
    "do_select",
    "ep_poll",
    "futex_",
    "kernel_clone",
    "synchronize_rcu",
    "__wait_rcu_gp",
    "rcu_barrier",
    "percpu_rwsem_wait",
];

/// What samples have in common that are summed up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    who: String,
    process: u32,
    /// What it waits for.
    told: Told,
    /// The file that is read.
    file: Option<String>,
    /// The holder of the lock that it waits for, and the class of the holder's own wait.
    holder: Option<(String, Class)>,
}

/// Bytes that a thread, and all of its process, had written at two times.
#[derive(Clone, Copy, Debug)]
struct Written {
    process: u32,
    first: (u64, u64),
    last: (u64, u64),
}

/// What a stack tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Told {
    call: Option<String>,
    class: Class,
    /// Whether a remote file system must answer.
    remote: bool,
    /// Whether it waits until data are on the device.
    syncs: bool,
}

impl Told {
    /// Whether it is in a call that reads.
    fn reads(&self) -> bool {
        self.call
            .as_deref()
            .is_some_and(|it| it.contains("read") || it.starts_with("sendfile"))
    }
}

/// A sleep of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sleep {
    /// How often the thread had gone to sleep, with this one.
    number: u64,
    /// Whether it is a wait for a server.
    remote: bool,
}

/// Sleeps that go on, by thread.
type Sleeps = BTreeMap<u32, Sleep>;

/// A thread that is blocked.
struct Blocked {
    thread: u32,
    process: u32,
    /// How often it had gone to sleep; None if the kernel does not say.
    sleep: Option<u64>,
    who: String,
    told: Told,
    /// The file of its call.
    file: Option<String>,
    /// Whether its process has others.
    has_others: bool,
    /// Its directory in `/proc`.
    directory: PathBuf,
}

/// Lost time by process and place.
#[derive(Debug, Default)]
pub struct Stacks {
    found: BTreeMap<Key, (u64, u64)>,
    /// Sleeps that the last sample met.
    met: Sleeps,
    /// For how long those that are no waits for a server had been met by then, by thread.
    asleep_ns: BTreeMap<u32, u64>,
    /// While iopro tells of sleeps: those that had begun before, of which it does not.
    untold: Option<Sleeps>,
    /// While iopro tells of sleeps: those that it will tell of once they end.
    unended: BTreeMap<u32, Key>,
    /// Calls in which processes were blocked.
    calls: BTreeMap<String, String>,
    /// By thread that waited for data to be on the device, in a process with others.
    written: BTreeMap<u32, Written>,
    /// Processes that waited for a server, and the files that they waited for.
    remote: BTreeMap<String, Option<String>>,
    /// Processes, and files for which they waited.
    files: BTreeSet<(String, String)>,
    /// For how long threads of the kernel that use disks of their own accord were met blocked, by name.
    kernel_blocked: BTreeMap<String, u64>,
    kernel_threads: KernelThreads,
}

impl Stacks {
    /// Samples all tasks. A sleep that the last sample met counts for the time since, `since_ns`,
    /// another for `stands_for_ns`.
    pub fn sample(&mut self, root: &Path, since_ns: u64, stands_for_ns: u64) {
        let mut met = Sleeps::new();
        let mut asleep_ns = BTreeMap::new();
        self.unended.clear();
        let found = blocked(root, &mut self.kernel_threads);
        for (place, task) in found.iter().enumerate() {
            let (told, remote) = (&task.told, task.told.remote);
            self.note_written(task);
            self.note_call(&task.who, told.call.as_ref());
            let sleep = task.sleep.map(|number| Sleep { number, remote });
            let was_in =
                |sleeps: &Sleeps| sleep.is_some() && sleeps.get(&task.thread) == sleep.as_ref();
            let lasted = was_in(&self.met);
            if let Some(sleep) = sleep {
                met.insert(task.thread, sleep);
            }
            if sleep.is_some() && !remote {
                let before = self.asleep_ns.get(&task.thread).filter(|_| lasted);
                asleep_ns.insert(task.thread, before.map_or(0, |it| it + since_ns));
            }
            let counts = self.untold.as_ref().is_none_or(was_in);
            let holder = holder(place, &found);
            let key = Key {
                file: task.file.clone(),
                who: task.who.clone(),
                process: task.process,
                told: told.clone(),
                holder: holder.map(|it| (it.who.clone(), it.told.class)),
            };
            if let Some(file) = key.file.clone().filter(|_| self.files.len() < MOST_NAMES) {
                self.files.insert((key.who.clone(), file));
            }
            if remote && self.remote.len() < MOST_NAMES {
                self.remote.insert(key.who.clone(), key.file.clone());
            }
            if counts {
                let lost_ns = if lasted { since_ns } else { stands_for_ns };
                self.add(key, lost_ns);
            } else {
                self.unended.insert(task.thread, key);
            }
        }
        for name in self.kernel_threads.blocked(root) {
            *self.kernel_blocked.entry(name).or_default() += stands_for_ns;
        }
        self.met = met;
        self.asleep_ns = asleep_ns;
        if let Some(untold) = &mut self.untold {
            untold.retain(|thread, sleep| self.met.get(thread) == Some(sleep));
        }
    }

    /// From now on iopro tells of sleeps that begin. Those that the last sample met go on being
    /// sampled.
    pub fn begin_telling(&mut self) {
        self.untold = Some(self.met.clone());
    }

    /// From now on all sleeps are sampled. Those that go on count with the time for which they were
    /// met, as nobody tells of their ends.
    pub fn end_telling(&mut self) {
        self.untold = None;
        for (thread, key) in std::mem::take(&mut self.unended) {
            let lost_ns = self.asleep_ns.get(&thread).copied().unwrap_or(0);
            self.add(key, lost_ns);
        }
    }

    fn note_call(&mut self, who: &str, call: Option<&String>) {
        let is_new = self.calls.len() < MOST_NAMES;
        if let Some(call) = call.filter(|_| is_new || self.calls.contains_key(who)) {
            self.calls.insert(who.to_owned(), call.clone());
        }
    }

    fn note_written(&mut self, task: &Blocked) {
        if !task.told.syncs || !task.has_others {
            return;
        }
        let of = |path: &Path| {
            let text = fs::read_to_string(path.join("io")).ok()?;
            Some(counter(&text, "write_bytes: "))
        };
        // The directory is `PROCESS/task/THREAD`.
        let process = task.directory.ancestors().nth(2);
        let Some((own, all)) = of(&task.directory).zip(process.and_then(of)) else {
            return;
        };
        if self.written.len() >= MOST_NAMES && !self.written.contains_key(&task.thread) {
            return;
        }
        let written = self.written.entry(task.thread).or_insert(Written {
            process: task.process,
            first: (own, all),
            last: (own, all),
        });
        written.last = (own, all);
    }

    /// Of what a process wrote, the share of its threads that waited for data to be on the device.
    fn own_shares(&self) -> BTreeMap<u32, f64> {
        let mut shares: BTreeMap<u32, f64> = BTreeMap::new();
        for it in self.written.values() {
            let own = it.last.0.saturating_sub(it.first.0) as f64;
            let all = it.last.1.saturating_sub(it.first.1) as f64;
            let share = shares.entry(it.process).or_default();
            *share = (*share + if all > 0.0 { own / all } else { 1.0 }).min(1.0);
        }
        shares
    }

    /// Whether the samples are the only ones to tell of some sleep, as far as is known.
    pub fn are_needed(&self) -> bool {
        self.untold.as_ref().is_none_or(|it| !it.is_empty())
    }

    /// Whether a sleep that the last sample met had been met for that long. Waits for a server do not
    /// count.
    pub fn lasted(&self, ns: u64) -> bool {
        self.asleep_ns.values().any(|it| *it >= ns)
    }

    /// Whether a sleep that the last sample met goes on. Waits for a server do not count.
    pub fn last(&self, root: &Path) -> bool {
        let mut sleeps = self.met.iter().filter(|(_, sleep)| !sleep.remote);
        sleeps.any(|(thread, sleep)| {
            let now = sleeps_of(&root.join(format!("proc/{thread}")));
            now == Some(sleep.number)
        })
    }

    /// System calls in which processes were blocked, by their names.
    pub fn calls(&self) -> &BTreeMap<String, String> {
        &self.calls
    }

    /// Whether a process waited for a server when it was met, and for which file.
    pub fn remote(&self, who: &str) -> Option<Option<&str>> {
        self.remote.get(who).map(Option::as_deref)
    }

    /// For how long threads of the kernel that use disks of their own accord were met blocked, by name,
    /// since this was asked last.
    pub fn take_kernel_blocked(&mut self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.kernel_blocked)
    }

    /// A file of this kind for which a process waited when it was met.
    pub fn file_of(&self, who: &str, is_so: impl Fn(&str) -> bool) -> Option<&str> {
        let mut files = self.files.iter().filter(|it| it.0 == who);
        let found = files.find(|it| is_so(&it.1));
        found.map(|it| it.1.as_str())
    }

    fn add(&mut self, mut key: Key, lost_ns: u64) {
        if self.found.len() >= MOST_NAMES && !self.found.contains_key(&key) {
            key.who = OTHERS.to_owned();
            key.process = 0;
            key.file = None;
            key.holder = None;
        }
        let sum = self.found.entry(key).or_default();
        sum.0 += u64::from(lost_ns > 0);
        sum.1 += lost_ns;
    }

    /// The waits that were sampled since this was asked last.
    pub fn take(&mut self) -> Vec<Wait> {
        let shares = self.own_shares();
        self.written.clear();
        let waits = std::mem::take(&mut self.found)
            .into_iter()
            .filter(|(_, (_, lost_ns))| *lost_ns > 0)
            .map(|(key, (samples, lost_ns))| Wait {
                own_share: shares.get(&key.process).copied(),
                cause: key.holder.as_ref().map(|it| it.1),
                other: key.holder.map(|it| it.0),
                who: key.who,
                process: key.process,
                call: key.told.call,
                syncs: key.told.syncs,
                class: key.told.class,
                file: key.file,
                remote: key.told.remote,
                samples,
                lost_ns,
                ..Wait::default()
            });
        waits.collect()
    }
}

/// The holder of the file's lock that the task at this place waits for: a task in a call that needs the
/// lock, which waits for something else there.
fn holder(place: usize, all: &[Blocked]) -> Option<&Blocked> {
    let task = &all[place];
    let file = task
        .file
        .as_ref()
        .filter(|_| task.told.class == Class::Lock)?;
    let changes = |it: &Blocked| {
        let call = it.told.call.as_deref().unwrap_or_default();
        ["write", "truncate", "fallocate"]
            .iter()
            .any(|name| call.contains(name))
    };
    all.iter().find(|it| {
        let is_of_file = it.thread != task.thread && it.file.as_ref() == Some(file);
        is_of_file
            && it.told.class != Class::Lock
            && (changes(it) || changes(task) && it.told.reads())
    })
}

/// All tasks that are blocked for what may be storage, but the kernel's and this process's, which waits
/// for the kernel when it takes programs out. If there are none, those that wait in io_uring for what
/// others do: the kernel counts such waits as I/O, too.
fn blocked(root: &Path, kernel: &mut KernelThreads) -> Vec<Blocked> {
    let (mut found, mut idle) = (Vec::new(), Vec::new());
    // Short waits end while others are looked at, for which this needs the CPU. Apps are younger
    // than what the system has started.
    for process in kernel.others(root).into_iter().rev() {
        let mut name: Option<String> = None;
        let threads = numbers(&root.join(format!("proc/{process}/task")));
        for thread in &threads {
            let directory = root.join(format!("proc/{process}/task/{thread}"));
            let text = fs::read_to_string(directory.join("stat")).unwrap_or_default();
            let task = Task::parse(&text).filter(|it| !kernel.is_kernels(process, it));
            let Some(task) = task.filter(|it| it.is_blocked() || it.is_idle()) else {
                continue;
            };
            let has_others = threads.len() > 1;
            if task.is_idle() {
                idle.push((process, *thread, task.name, directory));
                continue;
            }
            let functions = place(&directory);
            let functions: Vec<&str> = functions.iter().map(String::as_str).collect();
            let told = told_by(&functions);
            if is_elsewhere(told.class, &functions) {
                continue;
            }
            // A process is called by the name of its first thread.
            let name = name.get_or_insert_with(|| {
                let text = fs::read_to_string(root.join(format!("proc/{process}/comm")));
                text.map_or_else(|_| task.name.clone(), |it| it.trim_end().to_owned())
            });
            found.push(Blocked {
                thread: *thread,
                process,
                sleep: sleeps_of(&directory),
                who: name.clone(),
                file: file_called(&directory, told.call.as_deref()),
                told,
                has_others,
                directory,
            });
        }
    }
    if found.is_empty() {
        let events = idle.into_iter().filter(|it| is_for_events(&it.3));
        found.extend(events.map(|(process, thread, who, directory)| Blocked {
            thread,
            process,
            sleep: None,
            who,
            told: Told {
                call: Some(EVENTS.1.to_owned()),
                class: Class::Service,
                ..Told::default()
            },
            file: None,
            has_others: false,
            directory,
        }));
    }
    found
}

/// Begin of the function in which a task waits in io_uring, and the call.
const EVENTS: (&str, &str) = ("io_cqring_wait", "io_uring_enter");

fn is_for_events(directory: &Path) -> bool {
    let place = fs::read_to_string(directory.join("wchan"));
    place.is_ok_and(|it| it.starts_with(EVENTS.0))
}

/// How often a thread has gone to sleep by itself, if it sleeps now for the kernel's sake.
fn sleeps_of(directory: &Path) -> Option<u64> {
    let status = fs::read_to_string(directory.join("status")).ok()?;
    let find = |name| status.lines().find_map(|it| it.strip_prefix(name));
    find("State:").filter(|it| it.trim().starts_with('D'))?;
    find("voluntary_ctxt_switches:")?.trim().parse().ok()
}

/// What the functions of a stack tell.
fn told_by(functions: &[&str]) -> Told {
    let call = functions.iter().find_map(|function| {
        let name = CALLS.iter().find_map(|it| function.strip_prefix(it))?;
        Some(name.to_owned())
    });
    let has = |name: &str| functions.iter().any(|it| it.starts_with(name));
    let call = call.or_else(|| {
        let found = BY_WAY.iter().find(|it| has(it.0));
        found.map(|it| it.1.to_owned())
    });
    let told = || BY_FUNCTION.iter().find(|(name, _)| has(name));
    let takes_lock = |it: &&str| LOCKING.iter().any(|name| it.starts_with(name));
    let lock = functions.first().is_some_and(takes_lock);
    let lock = lock.then_some(Class::Lock);
    let class = Class::of_stack(functions).or_else(|| told().map(|(_, class)| *class));
    let class = class.or(lock);
    Told {
        call,
        class: class.unwrap_or(Class::Other),
        remote: REMOTE.iter().any(|it| has(it)),
        syncs: SYNCS.iter().any(|it| has(it)),
    }
}

/// Whether the task waits for what has nothing to do with storage, as far as that is known.
fn is_elsewhere(class: Class, functions: &[&str]) -> bool {
    let is_in = |name: &str| functions.iter().any(|it| it.starts_with(name));
    class == Class::Other && ELSEWHERE.iter().any(|it| is_in(it))
}

/// Functions of a task's stack; without root the innermost one, for tasks of this user.
fn place(directory: &Path) -> Vec<String> {
    if let Ok(stack) = fs::read_to_string(directory.join("stack")) {
        return stack.lines().filter_map(function).collect();
    }
    let function = fs::read_to_string(directory.join("wchan")).unwrap_or_default();
    match function.as_str() {
        "" | "0" => Vec::new(),
        name => vec![name.to_owned()],
    }
}

/// Calls of an open file, and which of their arguments is its number.
const OF_FILE: [(&str, usize); 18] = [
    ("read", 0),
    ("pread64", 0),
    ("readv", 0),
    ("preadv", 0),
    ("preadv2", 0),
    ("write", 0),
    ("pwrite64", 0),
    ("writev", 0),
    ("pwritev", 0),
    ("pwritev2", 0),
    ("fsync", 0),
    ("fdatasync", 0),
    ("sync_file_range", 0),
    ("syncfs", 0),
    ("ftruncate", 0),
    ("fallocate", 0),
    ("copy_file_range", 0),
    ("sendfile64", 1),
];

/// File of the system call that a task is in, of which an argument is a number of the task's open
/// files.
fn file_called(directory: &Path, call: Option<&str>) -> Option<String> {
    let place = OF_FILE.iter().find(|it| Some(it.0) == call)?.1;
    // `NUMBER ARGUMENT ...`
    let text = fs::read_to_string(directory.join("syscall")).ok()?;
    let argument = text.split(' ').nth(1 + place)?.strip_prefix("0x")?;
    let number = u64::from_str_radix(argument, 16).ok()?;
    let link = fs::read_link(directory.join(format!("fd/{number}"))).ok()?;
    let path = link.to_str().filter(|it| it.starts_with('/'))?;
    // The task may be in another call by now.
    if path.starts_with("/dev/") || path.starts_with("/proc/") {
        return None;
    }
    (!path.ends_with(" (deleted)")).then(|| path.to_owned())
}

/// Function in a line of `/proc/PID/stack`, such as `[<0>] folio_wait_writeback+0x2e/0x80`.
fn function(line: &str) -> Option<String> {
    let (_, place) = line.split_once("] ")?;
    Some(place.split(['+', ' ']).next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_of_a_blocked_task_tells_call_and_class() {
        let text = "[<0>] folio_wait_writeback+0x2e/0x80\n\
            [<0>] file_write_and_wait_range+0x90/0xc0\n[<0>] ext4_sync_file+0x1/0x2\n\
            [<0>] __x64_sys_fsync+0x38/0x60\n";
        let names: Vec<String> = text.lines().filter_map(function).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let told = told_by(&names);
        assert_eq!(
            (told.call.as_deref(), told.class),
            (Some("fsync"), Class::Sync)
        );
        let fault = ["folio_wait_bit_common", "filemap_fault", "handle_mm_fault"];
        assert_eq!(told_by(&fault).call.as_deref(), Some("read-fault"));
        assert!(told_by(&["rpc_wait_bit_killable", "nfs4_run"]).remote);
        let gone = [
            "folio_wait_writeback",
            "sync_filesystem",
            "cleanup_mnt",
            "task_work_run",
        ];
        assert_eq!(told_by(&gone).call.as_deref(), Some("umount"));
        let synchronous = ["jbd2_log_wait_commit", "vfs_fsync_range", "vfs_write"];
        let told = told_by(&synchronous);
        assert!(told.syncs && told.call.as_deref() == Some("write"));
        assert_eq!(told_by(&["io_fsync"]).call.as_deref(), Some("io_uring:3"));
        let frozen = ["percpu_rwsem_wait", "__percpu_down_read", "vfs_write"];
        assert_eq!(told_by(&frozen).class, Class::Frozen);
        let child = ["percpu_rwsem_wait", "cgroup_can_fork", "kernel_clone"];
        assert_eq!(told_by(&child).class, Class::Other);
        assert_eq!(told_by(&[]), Told::default());
        let parent = ["kernel_clone", "__x64_sys_vfork"];
        assert!(is_elsewhere(Class::Other, &parent));
        assert!(!is_elsewhere(Class::Reclaim, &parent));
        assert!(!is_elsewhere(Class::Other, &["io_schedule"]));
    }

    #[test]
    fn whoever_is_in_a_call_on_a_file_holds_its_lock() {
        assert_eq!(told_by(&["xfs_ilock", "vfs_read"]).class, Class::Lock);
        let throttled = ["balance_dirty_pages", "ext4_buffered_write_iter"];
        assert_eq!(told_by(&throttled).class, Class::DirtyThrottle);
        let task = |thread, call: &str, class, file: &str| Blocked {
            thread,
            process: thread,
            sleep: None,
            who: thread.to_string(),
            told: Told {
                call: Some(call.to_owned()),
                class,
                ..Told::default()
            },
            file: Some(file.to_owned()),
            has_others: false,
            directory: PathBuf::new(),
        };
        let all = [
            task(1, "pread64", Class::Lock, "/film"),
            task(2, "write", Class::DirtyThrottle, "/other"),
            task(3, "pread64", Class::Service, "/film"),
            task(4, "write", Class::DirtyThrottle, "/film"),
            task(5, "pwrite64", Class::Lock, "/film"),
        ];
        let holder = |place| holder(place, &all).map(|it| it.thread);
        assert_eq!((holder(0), holder(1)), (Some(4), None));
        assert_eq!(holder(4), Some(3), "a writer waits for readers, too");
        assert_eq!(super::holder(0, &all[..3]).map(|it| it.thread), None);
    }

    #[test]
    fn bytes_of_a_thread_are_told_from_those_of_its_process() {
        let root = tempfile::tempdir().unwrap();
        asleep(root.path(), 1);
        let at = root.path().join("proc/7");
        fs::create_dir_all(at.join("task/8")).unwrap();
        let stack = "[<0>] jbd2_log_wait_commit+0x1/0x2\n[<0>] ext4_sync_file+0x1/0x2\n";
        fs::write(at.join("task/7/stack"), stack).unwrap();
        let wrote = |own: u64, all: u64| {
            let text = |bytes| format!("write_bytes: {bytes}\n");
            fs::write(at.join("task/7/io"), text(own)).unwrap();
            fs::write(at.join("io"), text(all)).unwrap();
        };
        let mut stacks = Stacks::default();
        wrote(10, 1000);
        stacks.sample(root.path(), 10, 10);
        wrote(20, 2000);
        stacks.sample(root.path(), 10, 10);
        assert_eq!(stacks.take()[0].own_share, Some(0.01));
    }

    #[test]
    fn a_wait_for_words_in_io_uring_is_met_where_nobody_is_blocked() {
        let root = tempfile::tempdir().unwrap();
        asleep(root.path(), 1);
        let task = root.path().join("proc/7/task/7");
        let stat = "7 (iggy) S 1 2 3 4 5 4194304 0 0 0 0 7 8 0 0 20 0 1 0 99 0\n";
        fs::write(task.join("stat"), stat).unwrap();
        for (place, is_met) in [("ep_poll", false), ("io_cqring_wait", true)] {
            fs::write(task.join("wchan"), place).unwrap();
            let mut stacks = Stacks::default();
            stacks.sample(root.path(), 10, 10);
            let waits = stacks.take();
            assert_eq!(!waits.is_empty(), is_met, "{place}");
            let call = waits.first().and_then(|it| it.call.as_deref());
            assert_eq!(call.is_some_and(|it| it == "io_uring_enter"), is_met);
        }
    }

    /// A tree with one process, blocked in its sleep of this number.
    fn asleep(root: &Path, sleep: u64) {
        let task = root.join("proc/7/task/7");
        fs::create_dir_all(&task).unwrap();
        let stat = "7 (cp) D 1 2 3 4 5 4194304 0 0 0 0 7 8 0 0 20 0 1 0 99 0\n";
        fs::write(task.join("stat"), stat).unwrap();
        let status = format!("State:\tD (disk sleep)\nvoluntary_ctxt_switches:\t{sleep}\n");
        fs::write(task.join("status"), &status).unwrap();
        fs::write(root.join("proc/7/status"), status).unwrap();
        let stack = "[<0>] balance_dirty_pages+0x1/0x2\n[<0>] __x64_sys_write+0x1/0x2\n";
        fs::write(task.join("stack"), stack).unwrap();
    }

    #[test]
    fn samples_stand_for_the_time_between_them() {
        let root = tempfile::tempdir().unwrap();
        let mut stacks = Stacks::default();
        asleep(root.path(), 1);
        stacks.sample(root.path(), 0, 0);
        assert_eq!(stacks.calls()["cp"], "write");
        assert_eq!(stacks.remote("cp"), None);
        asleep(root.path(), 2);
        stacks.sample(root.path(), 150, 100);
        assert!(stacks.last(root.path()) && !stacks.lasted(1));
        asleep(root.path(), 3);
        assert!(!stacks.last(root.path()), "it was awake in between");
        asleep(root.path(), 2);
        stacks.sample(root.path(), 150, 100);
        assert!(stacks.lasted(150) && !stacks.lasted(151));
        let waits = stacks.take();
        assert_eq!((waits[0].samples, waits[0].lost_ns), (2, 250));
        assert_eq!((waits.len(), waits[0].waits), (1, 0));
        assert_eq!(waits[0].class, Class::DirtyThrottle);
    }

    #[test]
    fn a_read_is_of_the_file_that_its_call_names() {
        let task = tempfile::tempdir().unwrap();
        fs::write(task.path().join("syscall"), "0 0x3 0x7ffd0 0x1000\n").unwrap();
        fs::create_dir(task.path().join("fd")).unwrap();
        std::os::unix::fs::symlink("/home/film", task.path().join("fd/3")).unwrap();
        let file = |call| file_called(task.path(), Some(call));
        assert_eq!(file("read").as_deref(), Some("/home/film"));
        assert_eq!(file("fsync").as_deref(), Some("/home/film"));
        assert_eq!((file("rename"), file("read-fault")), (None, None));
        let copies = "40 0x9 0x3 0x0 0x1000\n";
        fs::write(task.path().join("syscall"), copies).unwrap();
        assert_eq!(file("sendfile64").as_deref(), Some("/home/film"));
        fs::write(task.path().join("syscall"), "running\n").unwrap();
        assert_eq!(file("read"), None);
    }

    #[test]
    fn what_iopro_tells_of_is_not_sampled_as_well() {
        let root = tempfile::tempdir().unwrap();
        let mut stacks = Stacks::default();
        asleep(root.path(), 1);
        stacks.sample(root.path(), 0, 0);
        stacks.begin_telling();
        assert!(stacks.are_needed(), "this sleep had begun before");
        stacks.sample(root.path(), 20, 20);
        asleep(root.path(), 2);
        stacks.sample(root.path(), 20, 20);
        assert!(!stacks.are_needed());
        stacks.end_telling();
        stacks.sample(root.path(), 7, 5);
        let waits = stacks.take();
        assert_eq!(
            (waits.len(), waits[0].samples, waits[0].lost_ns),
            (1, 2, 27)
        );
    }
}
