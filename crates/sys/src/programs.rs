//! Programs of the administrator's.

use std::env;
use std::ffi::OsString;
use std::io;
use std::process::{Command, Output};

/// A command that runs `program`, which is also looked for in the administrator's directories: a
/// user's PATH may lack them.
pub fn administrators(program: &str) -> Command {
    let mut path = env::var_os("PATH").filter(|path| !path.is_empty());
    let path = path.get_or_insert_with(|| OsString::from("/usr/bin:/bin"));
    path.push(":/usr/sbin:/sbin");
    let mut command = Command::new(program);
    command.env("PATH", path);
    command
}

/// Output of such a program, which speaks in the C library's own words.
///
/// # Errors
/// Why it cannot be run.
pub fn output_of(program: &str, arguments: &[&str]) -> io::Result<Output> {
    let mut command = administrators(program);
    command.args(arguments).env("LC_ALL", "C").output()
}
