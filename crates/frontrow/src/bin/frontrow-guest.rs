//! Pid 1 of the lab's guests.

use std::process::ExitCode;

fn main() -> ExitCode {
    if guest::is_init() {
        guest::init();
    }
    eprintln!("frontrow-guest runs in the lab's guests: `frontrow-lab exec` starts one");
    ExitCode::from(2)
}
