//! Problems of the kernel in its log.

/// Words that a healthy kernel never prints, and what they stand for. They are
/// looked for in this order, so that what a panic was about comes before it.
const PROBLEMS: [(&str, &str); 23] = [
    ("Out of memory", "it ran out of memory"),
    ("WARNING: ", "its kernel printed a WARNING"),
    ("BUG: ", "its kernel printed a BUG"),
    ("kernel BUG at", "its kernel hit a BUG"),
    ("Oops: ", "its kernel oopsed"),
    ("Internal error: ", "its kernel oopsed"),
    ("general protection fault", "its kernel faulted"),
    ("blocked for more than", "a task hung in it"),
    ("soft lockup", "its CPU was stuck in the kernel"),
    ("hard LOCKUP", "its CPU was stuck in the kernel"),
    ("rcu_preempt detected stalls", "RCU stalled in it"),
    ("rcu_preempt self-detected stall", "RCU stalled in it"),
    ("possible circular locking", "lockdep complained in it"),
    ("possible recursive locking", "lockdep complained in it"),
    ("inconsistent lock state", "lockdep complained in it"),
    ("suspicious RCU usage", "lockdep complained in it"),
    ("sleeping function called", "it slept where it must not"),
    ("KASAN: ", "it used memory wrongly"),
    ("UBSAN: ", "it did what C leaves undefined"),
    ("new suspected memory leaks", "it leaked memory"),
    ("Kernel panic", "its kernel panicked"),
    ("Call Trace:", "its kernel printed a call trace"),
    ("Call trace:", "its kernel printed a call trace"),
];

/// The same, for problems that the removal of a device causes on purpose.
const IO_PROBLEMS: [(&str, &str); 3] = [
    ("EXT4-fs error", "its file system broke"),
    ("EXT4-fs warning", "its file system complained"),
    ("I/O error", "its device gave an I/O error"),
];

/// Kind and line of the first problem in `log`.
pub fn problem(log: &str) -> Option<(&'static str, &str)> {
    first(&PROBLEMS, log.lines()).or_else(|| first(&IO_PROBLEMS, without_expected(log)))
}

fn first<'a>(
    problems: &[(&str, &'static str)],
    lines: impl Iterator<Item = &'a str> + Clone,
) -> Option<(&'static str, &'a str)> {
    problems.iter().find_map(|(sign, meaning)| {
        let line = lines.clone().find(|line| line.contains(sign))?;
        Some((*meaning, line.trim()))
    })
}

/// The lines outside the marks of a trial that takes the device away. The marks
/// speak of I/O errors themselves and are left out too.
fn without_expected(log: &str) -> impl Iterator<Item = &str> + Clone {
    let mut expected = false;
    log.lines().filter(move |line| {
        let was_expected = expected;
        if line.contains(::torture::IO_ERRORS_BEGIN) {
            expected = true;
        } else if line.contains(::torture::IO_ERRORS_END) {
            expected = false;
        }
        !expected && !was_expected
    })
}

/// `lines` lines of `log` in which one sees what happened: from its first problem
/// on, or else the last ones.
pub fn excerpt(log: &str, lines: usize) -> String {
    let all: Vec<_> = log
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    let last = all.len().saturating_sub(lines);
    let found =
        problem(log).and_then(|(_, problem)| all.iter().position(|it| it.trim() == problem));
    let first = found.map_or(last, |line| line.min(last));
    all[first..(first + lines).min(all.len())].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clean_log_has_no_problem() {
        assert_eq!(
            problem("[    0.1] Linux version 6.12\n[    0.2] mounted\n"),
            None
        );
    }

    #[test]
    fn each_kind_is_seen_in_the_kernels_own_words() {
        for (line, word) in [
            (
                "[ 1.0] Kernel panic - not syncing: Attempted to kill init!",
                "panicked",
            ),
            (
                "[ 1.0] WARNING: CPU: 0 PID: 1 at block/blk-mq.c:1 f+0x1/0x2",
                "WARNING",
            ),
            (
                "[ 1.0] WARNING: possible circular locking dependency detected",
                "WARNING",
            ),
            (
                "[ 1.0] Out of memory: Killed process 7 (m1)",
                "out of memory",
            ),
            (
                "[ 1.0] INFO: task jbd2:9 blocked for more than 120 seconds.",
                "hung",
            ),
            (
                "[ 1.0] watchdog: BUG: soft lockup - CPU#0 stuck for 22s!",
                "BUG",
            ),
            ("[ 1.0] BUG: KASAN: slab-use-after-free in f", "BUG"),
            (
                "[ 1.0] rcu: INFO: rcu_preempt self-detected stall on CPU",
                "RCU",
            ),
            (
                "[ 1.0] Buffer I/O error on dev simflash0, logical block 1",
                "I/O error",
            ),
        ] {
            let (meaning, found) = problem(line).unwrap_or_else(|| panic!("{line}"));
            assert!(meaning.contains(word), "{line}: {meaning}");
            assert_eq!(found, line);
        }
    }

    #[test]
    fn io_errors_are_excused_only_where_the_device_is_taken_away() {
        let error = "[ 2.0] Buffer I/O error on dev simflash0, logical block 1\n";
        let (begin, end) = (::torture::IO_ERRORS_BEGIN, ::torture::IO_ERRORS_END);
        let excused = format!("{begin}\n{error}{end}\n");
        assert_eq!(problem(&excused), None);
        assert!(problem(&format!("{excused}{error}")).is_some());
        let bug = format!("{begin}\n[ 2.0] BUG: unable to handle page fault\n{end}\n");
        assert_eq!(problem(&bug).unwrap().0, "its kernel printed a BUG");
    }

    #[test]
    fn a_panic_for_lack_of_memory_is_called_that() {
        let log =
            "x\n[ 1.0] Kernel panic - not syncing: System is deadlocked\n[ 1.0] Out of memory\n";
        assert_eq!(problem(log).unwrap().0, "it ran out of memory");
    }

    #[test]
    fn a_panic_is_not_the_reason_for_what_came_before_it() {
        let log = "[ 1.0] BUG: kernel NULL pointer dereference\n[ 1.1] Kernel panic - not syncing: Fatal exception\n";
        assert!(problem(log).unwrap().1.contains("NULL pointer"));
    }

    #[test]
    fn the_excerpt_begins_with_the_problem_or_is_the_end() {
        assert_eq!(excerpt("a\r\n\nb\r\nc\n\n", 2), "b\nc");
        assert_eq!(excerpt("", 5), "");
        let log = "a\n[ 1.0] WARNING: CPU: 0\nb\nc\nd\n";
        assert_eq!(excerpt(log, 2), "[ 1.0] WARNING: CPU: 0\nb");
        assert_eq!(excerpt("a\nb\nBUG: c\n", 2), "b\nBUG: c");
    }
}
