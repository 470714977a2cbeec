//! The one binary: command line, and pid 1 of the lab's guests.

// They panic where the reader has gone away: `print::print_text` does not.
#![deny(clippy::print_stdout)]

mod age;
mod bench;
mod completions;
mod defrag;
mod doctor;
mod examples;
mod exit;
mod fg;
mod iopro;
mod lab;
mod launch;
mod man;
mod print;
mod progress;
mod replay;
mod sched;
mod seeds;
mod snapshot;
mod whole;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use exit::Failure;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Keeps the foreground app responsive while storage is busy.
#[derive(Parser)]
#[command(name = "frontrow", version, about, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Age(age::Args),
    Bench(bench::Args),
    Completions(completions::Completions),
    Defrag(defrag::Args),
    Doctor(doctor::Args),
    Fg(fg::Fg),
    Iopro(iopro::Args),
    Lab(lab::Args),
    Launch(launch::Args),
    #[command(hide = true)]
    Man(man::Pages),
    Replay(replay::Args),
    Sched(sched::Sched),
    #[command(subcommand)]
    Snapshot(snapshot::Snapshot),
}

/// The part that every start of an app goes through: what describes all other commands
/// would take a fifth of this program's time there.
#[derive(Parser)]
#[command(name = "frontrow", version)]
struct LaunchLine {
    #[command(subcommand)]
    command: LaunchCommand,
}

#[derive(Subcommand)]
enum LaunchCommand {
    Launch(launch::Args),
}

fn main() -> ExitCode {
    if ::lab::guest::is_init() {
        ::lab::guest::init();
    }
    let outcome = match is_launch() {
        true => {
            let LaunchCommand::Launch(args) = LaunchLine::parse().command;
            launch::run(args)
        }
        false => run(command_line().command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("frontrow: {}", print::plain(&failure.sentence));
            ExitCode::from(failure.exit as u8)
        }
    }
}

/// Help is the other command line's, which has examples.
fn is_launch() -> bool {
    let mut words = std::env::args_os().skip(1);
    words.next().is_some_and(|it| it == "launch") && !words.any(|it| it == "--help" || it == "-h")
}

fn command_line() -> CommandLine {
    let mut command = examples::add_to(CommandLine::command());
    if std::env::args_os()
        .nth(1)
        .is_some_and(|it| it == "--version" || it == "-V")
    {
        command = command.version(version());
    }
    let matches = command.get_matches_from(arguments());
    CommandLine::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// Reads the whole program, so it is only for who asks.
fn version() -> String {
    let number = env!("CARGO_PKG_VERSION");
    match ::lab::own_commit() {
        Some(commit) => format!("{number} (commit {commit})"),
        None => format!("{number} (commit unknown: `make build` would say it)"),
    }
}

/// Under the name of `frontrowd` it is the daemon.
fn arguments() -> Vec<OsString> {
    let mut arguments: Vec<_> = std::env::args_os().collect();
    let name = arguments.first().map(Path::new).and_then(Path::file_name);
    if name.is_some_and(|name| name == "frontrowd") {
        arguments.splice(1..1, ["fg", "daemon"].map(OsString::from));
    }
    arguments
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Age(args) => age::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Completions(args) => completions::run(&args, CommandLine::command()),
        Command::Defrag(args) => defrag::run(args),
        Command::Doctor(args) => doctor::run(args),
        Command::Fg(args) => fg::run(args),
        Command::Iopro(args) => iopro::run(args),
        Command::Lab(args) => lab::run(args),
        Command::Launch(args) => launch::run(args),
        Command::Man(pages) => man::run(&pages, examples::add_to(CommandLine::command())),
        Command::Replay(args) => replay::run(args),
        Command::Sched(action) => sched::run(action),
        Command::Snapshot(action) => snapshot::run(action),
    }
}
