//! `frontrow completions` and `frontrow-lab completions`: shell completions from the definition of
//! the command line.

use crate::exit::Failure;
use crate::print::print_text;
use crate::program::Program;
use clap::Args;
use clap_complete::Shell;

/// Print the completions for a shell; `make install` installs them
#[derive(Args)]
pub struct Completions {
    /// Shell to complete for
    shell: Shell,
}

/// Prints the completions of the program.
pub fn run(completions: Completions, program: &Program) -> Result<(), Failure> {
    let mut script = Vec::new();
    let mut command = program.whole_line();
    clap_complete::generate(completions.shell, &mut command, program.name, &mut script);
    print_text(&String::from_utf8_lossy(&script))
}
