//! Injection of single allocation failures, on a kernel that supports it.

use crate::failure::require;
use crate::leak::no_allocation_is_lost;
use crate::test_bed::{FRONTROW, read, write};
use crate::{Failure, Outcome, TestBed, module};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use sys::random::Random;

/// Settings of fault injection: allocations that may sleep fail, too, and no stacks are logged,
/// since these would look like errors.
const SETTINGS: [(&str, &str); 5] = [
    ("/sys/kernel/debug/failslab/ignore-gfp-wait", "N"),
    ("/sys/kernel/debug/failslab/verbose", "0"),
    ("/sys/kernel/debug/fail_page_alloc/ignore-gfp-wait", "N"),
    ("/sys/kernel/debug/fail_page_alloc/min-order", "0"),
    ("/sys/kernel/debug/fail_page_alloc/verbose", "0"),
];

/// A function that logs its lack of pages, which would look like an error.
const VMALLOC: &str = "__vmalloc_node_range_noprof";

/// Function that runs a module's own start.
const START: &str = "do_init_module";
const SYMBOLS: &str = "/proc/kallsyms";

/// Allowed errors of a change: memory is short.
const CHANGE_ANSWERS: [i32; 1] = [libc::ENOMEM];

/// The driver core returns EINVAL if module_add_driver() gets no directory.
const START_ANSWERS: [i32; 2] = [libc::ENOMEM, libc::EINVAL];

/// No operation makes this many allocations.
const MOST: u32 = 5000;

/// Each failure takes the debug kernel a second, so later allocations are sampled. After the `nth`
/// one a random number is skipped, up to `nth` over this.
const SKIPPED: u32 = 6;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    if !Path::new(SETTINGS[0].0).exists() {
        return Ok(());
    }
    for (path, value) in SETTINGS {
        write(path, value)?;
    }
    let mut random = Random::new(bed.seed);
    for _ in 0..bed.rounds {
        filter("require", (0, u64::MAX))?;
        filter("reject", text_of(VMALLOC)?)?;
        changes_fail(bed, &mut random)?;
        filter("require", text_of(START)?)?;
        starts_fail(bed, &mut random)?;
    }
    no_allocation_is_lost()
}

/// Filters the allocations that fail by functions at these addresses. `require` lets only
/// allocations below them fail, `reject` all others.
fn filter(what: &str, (from, to): (u64, u64)) -> Outcome<()> {
    for kind in ["failslab", "fail_page_alloc"] {
        let path = format!("/sys/kernel/debug/{kind}/{what}");
        write(&format!("{path}-start"), &from.to_string())?;
        write(&format!("{path}-end"), &to.to_string())?;
    }
    Ok(())
}

/// Addresses at which the kernel's function `name` and the next function begin.
fn text_of(name: &str) -> Outcome<(u64, u64)> {
    let text = read(SYMBOLS)?;
    let mut symbols: Vec<(u64, &str)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            Some((address, words.nth(1)?))
        })
        .collect();
    symbols.sort_unstable();
    let begin = symbols.iter().find(|(_, it)| *it == name);
    let range = begin.and_then(|(from, _)| {
        let next = symbols.iter().find(|(address, _)| address > from)?;
        Some((*from, next.0))
    });
    range.ok_or_else(|| Failure::new(format!("{SYMBOLS} has no {name}")))
}

fn changes_fail(bed: &TestBed, random: &mut Random) -> Outcome<()> {
    one_after_another_fails(
        random,
        &CHANGE_ANSWERS,
        &mut || bed.try_set("nr_requests", "700"),
        &mut || bed.set("nr_requests", "16"),
    )?;
    one_after_another_fails(
        random,
        &CHANGE_ANSWERS,
        &mut || bed.try_set("scheduler", FRONTROW),
        &mut || bed.set("scheduler", "none"),
    )
}

/// Lets allocations of a module's own start fail. Earlier ones are spared, since the kernel's
/// tracing warns if memory is short there (`event_define_fields`).
fn starts_fail(bed: &TestBed, random: &mut Random) -> Outcome<()> {
    for module in [bed.scheduler()?, bed.flash()?] {
        let file = module::open(module)?;
        one_after_another_fails(
            random,
            &START_ANSWERS,
            &mut || Ok(module::insert(module, &file)?),
            &mut || match module::try_unload(module) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(_) => module::unload(module),
            },
        )?;
    }
    bed.prepare()
}

/// Runs `operation` repeatedly, with a later one of its allocations failing each time, until none
/// is left. It must succeed or return one of `answers`; `undo` must work after both.
fn one_after_another_fails(
    random: &mut Random,
    answers: &[i32],
    operation: &mut dyn FnMut() -> io::Result<()>,
    undo: &mut dyn FnMut() -> Outcome<()>,
) -> Outcome<()> {
    let switch = FailNth::of_this_thread()?;
    let mut nth = 0;
    while nth < MOST {
        nth += 1 + random.index((nth / SKIPPED + 1) as usize) as u32;
        undo()?;
        switch.set(nth)?;
        let outcome = operation();
        let left = switch.left();
        switch.set(0)?;
        let left = left?;
        if let Err(error) = outcome {
            let answered = error.raw_os_error().is_some_and(|it| answers.contains(&it));
            require(answered, || {
                format!("with allocation {nth} failing a module answers: {error}")
            })?;
        }
        if left != "0" {
            return undo();
        }
    }
    Err(Failure::new(format!(
        "an operation made more than {MOST} allocations"
    )))
}

/// File that selects a failing allocation of this thread. It stays open, since opening it
/// allocates.
struct FailNth(File);

impl FailNth {
    fn of_this_thread() -> Outcome<FailNth> {
        let thread = rustix::thread::gettid().as_raw_nonzero();
        let path = PathBuf::from(format!("/proc/self/task/{thread}/fail-nth"));
        let file = File::options().read(true).write(true).open(&path);
        file.map(FailNth).map_err(Failure::io("open", &path))
    }

    /// Lets the `nth` allocation from now fail; none for 0.
    fn set(&self, nth: u32) -> Outcome<()> {
        self.0
            .write_all_at(nth.to_string().as_bytes(), 0)
            .map_err(Failure::io("write", Path::new("fail-nth")))
    }

    /// Number of allocations before the failing one; "0" once it has failed.
    fn left(&self) -> Outcome<String> {
        let mut text = [0; 16];
        let length = self
            .0
            .read_at(&mut text, 0)
            .map_err(Failure::io("read", Path::new("fail-nth")))?;
        Ok(String::from_utf8_lossy(&text[..length]).trim().to_owned())
    }
}
