//! Experiments in guests.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::frontrow_lab()
}
