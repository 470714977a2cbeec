//! Tasks as `/proc` shows them.

use crate::kernel_threads::{Work, work};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Flag in `/proc/PID/stat`: kernel thread (PF_KTHREAD).
const KERNEL_THREAD: u64 = 0x20_0000;

/// Fields of a line of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub name: String,
    state: String,
    pub parent: u32,
    flags: u64,
    pub cpu_ticks: u64,
    pub started: u64,
}

impl Task {
    pub fn parse(text: &str) -> Option<Task> {
        // The name may contain brackets and blanks.
        let (head, tail) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = tail.split(' ').collect();
        let number = |place: usize| fields.get(place)?.trim().parse::<u64>().ok();
        Some(Task {
            name: head.split_once('(')?.1.to_owned(),
            state: (*fields.first()?).to_owned(),
            parent: fields.get(1)?.parse().ok()?,
            flags: number(6)?,
            cpu_ticks: number(11)? + number(12)?,
            started: number(19)?,
        })
    }

    /// Whether it is in uninterruptible sleep.
    pub fn is_blocked(&self) -> bool {
        self.state == "D"
    }

    /// Whether it sleeps until something happens, which may be counted as I/O.
    pub fn is_idle(&self) -> bool {
        self.state == "S"
    }

    pub fn is_kernels(&self) -> bool {
        self.flags & KERNEL_THREAD != 0
    }
}

/// Number in a line such as `write_bytes: 12` of `/proc/PID/io`.
pub(crate) fn counter(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|it| it.strip_prefix(name));
    line.map_or(0, |it| it.trim().parse().unwrap_or(0))
}

/// Looks after which a number that was a kernel thread's is looked at again.
const LOOKS: u32 = 64;

/// Numbers of kernel threads. These are most of a small machine's tasks, and reading each of them
/// is most of what a look at all tasks costs.
#[derive(Debug, Default)]
pub(crate) struct KernelThreads {
    known: BTreeSet<u32>,
    /// Those that use disks of their own accord.
    own: BTreeSet<u32>,
    looks: u32,
}

impl KernelThreads {
    /// Begins a look at all tasks: the numbers of all processes but the known kernel threads and
    /// this process.
    pub fn others(&mut self, root: &Path) -> Vec<u32> {
        self.looks = (self.looks + 1) % LOOKS;
        if self.looks == 0 {
            self.known.clear();
            self.own.clear();
        }
        let mut others = numbers(&root.join("proc"));
        others.retain(|it| *it != std::process::id() && !self.known.contains(it));
        others
    }

    /// Tells whose task the process is, and remembers a kernel thread.
    pub fn is_kernels(&mut self, process: u32, task: &Task) -> bool {
        let is_kernels = task.is_kernels();
        if is_kernels {
            self.known.insert(process);
            if matches!(work(&task.name), Work::Own(_)) {
                self.own.insert(process);
            }
        }
        is_kernels
    }

    /// Names of those that use disks of their own accord and are blocked now.
    pub fn blocked(&self, root: &Path) -> Vec<String> {
        let found = self.own.iter().filter_map(|number| {
            let text = fs::read_to_string(root.join(format!("proc/{number}/stat"))).ok()?;
            Task::parse(&text).filter(|it| it.is_kernels() && it.is_blocked())
        });
        found.map(|it| it.name).collect()
    }
}

/// Entries of a directory that are numbers.
pub(crate) fn numbers(path: &Path) -> Vec<u32> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernels_is_read() {
        let stat = "12 (a ) b) D 1 2 3 4 5 4194304 0 0 0 0 7 8 0 0 20 0 1 0 99 0\n";
        let task = Task::parse(stat).unwrap();
        assert_eq!(
            (task.name.as_str(), task.cpu_ticks, task.started),
            ("a ) b", 15, 99)
        );
        assert!(task.is_blocked() && !task.is_kernels());
        let kernel = stat.replace("4194304", "2129984");
        assert!(Task::parse(&kernel).unwrap().is_kernels());
    }

    #[test]
    fn a_thread_of_the_kernel_that_uses_a_disk_of_its_own_accord_is_met_while_it_is_blocked() {
        let root = tempfile::tempdir().unwrap();
        let mut threads = KernelThreads::default();
        for (number, name, state) in [
            (2, "ext4lazyinit", "D"),
            (3, "jbd2/sda-8", "D"),
            (4, "ext4lazyinit", "S"),
        ] {
            let stat = format!(
                "{number} ({name}) {state} 0 0 0 0 0 2129984 0 0 0 0 7 8 0 0 20 0 1 0 9 0\n"
            );
            let at = root.path().join(format!("proc/{number}"));
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("stat"), &stat).unwrap();
            assert!(threads.is_kernels(number, &Task::parse(&stat).unwrap()));
        }
        assert_eq!(threads.blocked(root.path()), ["ext4lazyinit"]);
    }

    #[test]
    fn a_kernel_threads_number_is_looked_at_again_one_day() {
        let task = Task::parse("2 (kthreadd) S 0 0 0 0 0 2129984 0 0 0 0 7 8 0 0 20 0 1 0 9 0\n");
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/2")).unwrap();
        let mut threads = KernelThreads::default();
        assert_eq!(threads.others(root.path()), [2]);
        assert!(threads.is_kernels(2, &task.unwrap()));
        let looks: Vec<_> = (1..LOOKS).map(|_| threads.others(root.path())).collect();
        let (last, before) = looks.split_last().unwrap();
        assert!(before.iter().all(Vec::is_empty));
        assert_eq!(last, &[2]);
    }
}
