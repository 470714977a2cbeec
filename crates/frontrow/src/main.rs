//! The one binary: command line, and pid 1 of the lab's guests.

mod exit;
mod man;

use clap::{CommandFactory, Parser, Subcommand};
use exit::Failure;
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
    #[command(hide = true)]
    Man(man::Pages),
}

fn main() -> ExitCode {
    match run(CommandLine::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("frontrow: {}", failure.sentence);
            ExitCode::from(failure.exit as u8)
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Man(pages) => man::run(&pages, CommandLine::command()),
    }
}
