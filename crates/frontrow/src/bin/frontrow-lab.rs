//! Experiments in guests, of which it is pid 1, too.

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::frontrow_lab()
}
