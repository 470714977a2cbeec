//! Tasks of the project that are no shell: `cargo run -p xtask -- TASK`.

mod child;
mod defects;
mod suite;
mod tally;
mod test;
mod times;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match words.split_first() {
        Some((task, rest)) if task == "defects" => defects::run(rest),
        Some((task, rest)) if task == "test" => test::run(rest),
        Some((task, rest)) if task == "times" => times::compare(rest),
        _ => Err("name a task: defects, test, times".to_owned()),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error}");
        ExitCode::from(2)
    })
}
