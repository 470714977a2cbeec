//! Levels 2 and 3: samples of where tasks are blocked.

use crate::live::{MOST_NAMES, OTHERS};
use crate::observe::Wait;
use crate::watch::Task;
use iopro::wait::Class;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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

/// Process, call, class, whether remote.
type Key = (String, Option<String>, Class, bool);

/// Lost time by process and place.
#[derive(Debug, Default)]
pub struct Stacks {
    found: BTreeMap<Key, (u64, u64)>,
}

impl Stacks {
    /// Samples all tasks; each sample counts for `since_ns`.
    pub fn sample(&mut self, root: &Path, since_ns: u64) {
        for (who, stack) in blocked(root) {
            let functions: Vec<&str> = stack.iter().map(String::as_str).collect();
            self.add(&who, &functions, since_ns);
        }
    }

    fn add(&mut self, who: &str, functions: &[&str], since_ns: u64) {
        let (call, class, remote) = told_by(functions);
        let mut key = (who.to_owned(), call, class, remote);
        if self.found.len() >= MOST_NAMES && !self.found.contains_key(&key) {
            key.0 = OTHERS.to_owned();
        }
        let sum = self.found.entry(key).or_default();
        sum.0 += 1;
        sum.1 += since_ns;
    }

    /// All sampled waits.
    pub fn end(self) -> Vec<Wait> {
        let waits = self
            .found
            .into_iter()
            .map(|(key, (samples, lost_ns))| Wait {
                who: key.0,
                call: key.1,
                class: key.2,
                cause: None,
                file: None,
                other: None,
                remote: key.3,
                waits: samples,
                lost_ns,
                longest_ns: 0,
            });
        waits.collect()
    }
}

/// System call in which each process is blocked, by its name.
pub fn calls_under_way(root: &Path) -> BTreeMap<String, String> {
    let calls = blocked(root).filter_map(|(who, stack)| {
        let functions: Vec<&str> = stack.iter().map(String::as_str).collect();
        Some((who, told_by(&functions).0?))
    });
    calls.collect()
}

/// Names and stacks of blocked tasks.
fn blocked(root: &Path) -> impl Iterator<Item = (String, Vec<String>)> {
    tasks(root).into_iter().filter_map(|(process, thread)| {
        let directory = root.join(format!("proc/{process}/task/{thread}"));
        let text = fs::read_to_string(directory.join("stat")).ok()?;
        let task = Task::parse(&text).filter(Task::is_blocked)?;
        Some((task.name, place(&directory)))
    })
}

/// System call, class, and whether a remote file system must answer.
fn told_by(functions: &[&str]) -> (Option<String>, Class, bool) {
    let call = functions.iter().find_map(|function| {
        let name = CALLS.iter().find_map(|it| function.strip_prefix(it))?;
        Some(name.to_owned())
    });
    let has = |name: &str| functions.iter().any(|it| it.starts_with(name));
    let call = call.or_else(|| has("filemap_fault").then(|| "read-fault".to_owned()));
    let told = || BY_FUNCTION.iter().find(|(name, _)| has(name));
    let class = Class::of_stack(functions).or_else(|| told().map(|(_, class)| *class));
    let class = class.unwrap_or(Class::Other);
    (call, class, REMOTE.iter().any(|it| has(it)))
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

/// Function in a line of `/proc/PID/stack`, such as `[<0>] folio_wait_writeback+0x2e/0x80`.
fn function(line: &str) -> Option<String> {
    let (_, place) = line.split_once("] ")?;
    Some(place.split(['+', ' ']).next()?.to_owned())
}

fn tasks(root: &Path) -> Vec<(u32, u32)> {
    let numbers = |path: &Path| -> Vec<u32> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .collect()
    };
    let processes = numbers(&root.join("proc")).into_iter();
    let threads = processes.flat_map(|process| {
        let threads = numbers(&root.join(format!("proc/{process}/task")));
        threads.into_iter().map(move |thread| (process, thread))
    });
    threads.collect()
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
        assert_eq!(
            told_by(&names),
            (Some("fsync".to_owned()), Class::Sync, false)
        );
        let fault = ["folio_wait_bit_common", "filemap_fault", "handle_mm_fault"];
        assert_eq!(told_by(&fault).0.as_deref(), Some("read-fault"));
        assert!(told_by(&["rpc_wait_bit_killable", "nfs4_run"]).2);
        assert_eq!(told_by(&[]), (None, Class::Other, false));
    }

    #[test]
    fn samples_stand_for_the_time_between_them() {
        let mut stacks = Stacks::default();
        stacks.add("cp", &["balance_dirty_pages"], 100);
        stacks.add("cp", &["balance_dirty_pages"], 150);
        let waits = stacks.end();
        assert_eq!((waits.len(), waits[0].waits, waits[0].lost_ns), (1, 2, 250));
        assert_eq!(waits[0].class, Class::DirtyThrottle);
    }
}
