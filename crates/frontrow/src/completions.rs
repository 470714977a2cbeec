//! `frontrow completions`: what a shell offers behind the Tab key, from the command line's own
//! definition.

use crate::exit::Failure;
use crate::print::print_text;
use clap::{Args, Command};
use clap_complete::Shell;

/// Print a shell's completions; `make install` puts them where shells look
#[derive(Args)]
pub struct Completions {
    /// The shell
    shell: Shell,
}

/// Prints them for `command`.
pub fn run(completions: &Completions, mut command: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(completions.shell, &mut command, "frontrow", &mut script);
    print_text(&String::from_utf8_lossy(&script))
}
