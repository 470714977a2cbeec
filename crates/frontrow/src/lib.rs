//! The command lines of two programs: `frontrow`, which a user's machine runs, and `frontrow-lab`,
//! which makes experiments. The first is built without what only the second needs.

// They panic where the reader has gone away: `print::print_text` does not.
#![deny(clippy::print_stdout)]

#[cfg(feature = "lab")]
mod age;
mod atomic_file;
mod bench;
mod blame;
mod completions;
mod defrag;
mod doctor;
mod examples;
mod exit;
mod fg;
mod fleet;
mod iopro;
#[cfg(feature = "lab")]
mod lab;
mod launch;
mod man;
mod on;
mod print;
mod program;
mod progress;
#[cfg(feature = "lab")]
mod replay;
mod sched;
mod seeds;
mod snapshot;
mod top;

use program::{Program, commands};
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

static FRONTROW: Program = Program {
    name: "frontrow",
    about: "Keeps the foreground app responsive while storage is busy",
    examples: &examples::FRONTROW,
    first_steps: examples::FIRST_STEPS,
    moved: &[
        ("age", "frontrow-lab age"),
        ("iopro top", "frontrow top"),
        ("lab", "frontrow-lab"),
        ("replay", "frontrow-lab replay"),
    ],
    commands: commands! {
        "bench": bench::Args => bench::run,
        "blame": blame::Args => blame::run,
        "completions": completions::Completions => completions::run,
        "defrag": defrag::Args => defrag::run,
        "doctor": doctor::Args => doctor::run,
        "fg": fg::Fg => fg::run,
        "iopro": iopro::Args => iopro::run,
        "launch": launch::Args => launch::run,
        "man": man::Pages => man::run,
        "off": on::Off => on::off,
        "on": on::On => on::on,
        "sched": sched::Sched => sched::run,
        "snapshot": snapshot::Args => snapshot::run,
        "status": on::status::Status => on::status::run,
        "top": top::Top => top::run,
    },
};

/// The program of that name; under the name of `frontrowd` it is the daemon.
pub fn frontrow() -> ExitCode {
    let mut words: Vec<_> = std::env::args_os().collect();
    let name = words.first().map(Path::new).and_then(Path::file_name);
    if name.is_some_and(|name| name == "frontrowd") {
        words.splice(1..1, ["fg", "daemon"].map(OsString::from));
    }
    FRONTROW.main(words)
}

#[cfg(feature = "lab")]
static FRONTROW_LAB: Program = Program {
    name: "frontrow-lab",
    about: "Runs experiments on stock kernels in emulated machines",
    examples: &examples::FRONTROW_LAB,
    first_steps: examples::LAB_FIRST_STEPS,
    moved: &[],
    commands: commands! {
        "age": age::Args => age::run,
        "ahead": lab::ahead::Ahead => lab::ahead::run,
        "collect": lab::collect::Collect => lab::collect::run,
        "completions": completions::Completions => completions::run,
        "exec": lab::exec::Exec => lab::exec::run,
        "hot-cold": lab::hot_cold::HotCold => lab::hot_cold::run,
        "join": lab::shard::Join => lab::shard::join,
        "list": lab::List => lab::list,
        "man": man::Pages => man::run,
        "powercut": lab::powercut::PowerCut => lab::powercut::run,
        "replay": replay::Args => replay::run,
        "run": lab::Run => lab::run,
        "shell": lab::OpenShell => lab::open_shell,
        "show": lab::Show => lab::show,
        "torture": lab::torture::Torture => lab::torture::run,
    },
};

/// The program of that name.
#[cfg(feature = "lab")]
pub fn frontrow_lab() -> ExitCode {
    FRONTROW_LAB.main(std::env::args_os().collect())
}
