//! Tasks of the project that are no shell: `cargo run -p xtask -- TASK`.

mod tally;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("tally") => tally::run_all(&words.collect::<Vec<_>>()),
        _ => {
            eprintln!("xtask: name a task: tally");
            ExitCode::from(2)
        }
    }
}
