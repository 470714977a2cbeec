//! Programs of the administrator's.

use std::io::{self, ErrorKind};
use std::process::{Command, Output};

/// Output of `program`, which speaks in the C library's own words. A user's PATH may lack the
/// administrator's directories, so it is looked for in `/sbin` as well.
///
/// # Errors
/// Why it cannot be run.
pub fn administrators(program: &str, arguments: &[&str]) -> io::Result<Output> {
    let run = |program: &str| {
        let mut command = Command::new(program);
        command.args(arguments).env("LC_ALL", "C").output()
    };
    match run(program) {
        Err(error) if error.kind() == ErrorKind::NotFound => run(&format!("/sbin/{program}")),
        result => result,
    }
}
