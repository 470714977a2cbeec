//! What a user's machine runs.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::frontrow()
}
