//! A program's command line: one table of its commands.

use crate::examples;
use crate::exit::{Exit, Failure};
use crate::print;
use clap::{ArgMatches, Command};
use object::{Object, ObjectSection};
use std::ffi::OsString;
use std::process::ExitCode;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// ELF section in which `make build` puts the commit.
const COMMIT: &str = ".frontrow.commit";

/// A program: `frontrow` or `frontrow-lab`.
pub(crate) struct Program {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Example command lines, one for each command.
    pub(crate) examples: &'static [&'static str],
    /// First steps for new users.
    pub(crate) first_steps: &'static str,
    /// Commands of earlier releases, and their present names.
    pub(crate) moved: &'static [(&'static str, &'static str)],
    pub(crate) commands: &'static [Entry],
}

/// A command of a program.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// Adds the command's help and arguments.
    pub(crate) describe: fn(Command) -> Command,
    /// Runs the command.
    pub(crate) run: fn(&Program, &ArgMatches) -> Result<(), Failure>,
}

/// A function that runs a command: it gets the arguments, and the program if it asks for that.
pub(crate) trait Run<Args, Asked> {
    fn run(self, args: Args, program: &Program) -> Result<(), Failure>;
}

impl<Args, F: FnOnce(Args) -> Result<(), Failure>> Run<Args, ()> for F {
    fn run(self, args: Args, _: &Program) -> Result<(), Failure> {
        self(args)
    }
}

impl<Args, F: FnOnce(Args, &Program) -> Result<(), Failure>> Run<Args, Program> for F {
    fn run(self, args: Args, program: &Program) -> Result<(), Failure> {
        self(args, program)
    }
}

/// A table of commands: `"name": Args => function,` in each line.
macro_rules! commands {
    ($($name:literal: $args:ty => $run:expr,)*) => {
        &[$($crate::program::Entry {
            name: $name,
            describe: <$args as clap::Args>::augment_args,
            run: |program, matches| {
                let args = <$args as clap::FromArgMatches>::from_arg_matches(matches);
                let args = args.unwrap_or_else(|error| error.exit());
                $crate::program::Run::run($run, args, program)
            },
        }),*]
    };
}
pub(crate) use commands;

impl Program {
    /// Runs the command line; the first word is the program.
    pub(crate) fn main(&self, words: Vec<OsString>) -> ExitCode {
        match self.run(words) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                eprintln!("{}: {}", self.name, print::plain(&failure.sentence));
                ExitCode::from(failure.exit as u8)
            }
        }
    }

    fn run(&self, words: Vec<OsString>) -> Result<(), Failure> {
        let first = words.get(1).and_then(|it| it.to_str());
        if let Some((old, new)) = self
            .moved
            .iter()
            .find(|it| begins_with(words.get(1..).unwrap_or_default(), it.0))
        {
            let sentence = format!("`{} {old}` is `{new}` now", self.name);
            return Err(Failure::new(Exit::Usage, sentence));
        }
        let mut line = self.line(first);
        if is_for_help(&words) {
            line = examples::add_to(line, self);
        }
        if matches!(first, Some("--version" | "-V")) {
            line = line.version(version());
        }
        let matches = line.get_matches_from(words);
        let chosen = matches.subcommand().and_then(|(name, matches)| {
            let mut commands = self.commands.iter();
            Some((commands.find(|it| it.name == name)?, matches))
        });
        match chosen {
            Some((command, matches)) => (command.run)(self, matches),
            None => Err(Failure::new(Exit::Usage, "name a command")),
        }
    }

    /// Definition of the command `first`, or of all commands if there is none. The start of an app
    /// has no time for all.
    fn line(&self, first: Option<&str>) -> Command {
        let is_one = self.commands.iter().any(|it| Some(it.name) == first);
        let commands = self.commands.iter();
        let described = commands.filter(|it| !is_one || Some(it.name) == first);
        Command::new(self.name)
            .about(self.about)
            .version(VERSION)
            .max_term_width(100)
            .subcommand_required(true)
            .arg_required_else_help(true)
            .subcommands(described.map(|it| with_aliases((it.describe)(Command::new(it.name)))))
    }

    /// Definition of all commands, with examples.
    pub(crate) fn whole_line(&self) -> Command {
        examples::add_to(self.line(None), self)
    }
}

/// Whether a command line begins with these words.
fn begins_with(line: &[OsString], words: &str) -> bool {
    let words: Vec<&str> = words.split(' ').collect();
    line.len() >= words.len() && words.iter().zip(line).all(|(word, it)| it == *word)
}

/// The place of what a command writes is `--out` or `--output`, whichever its user tries.
fn with_aliases(command: Command) -> Command {
    let command = command.mut_args(|arg| match arg.get_long() {
        Some("out") => arg.alias("output"),
        Some("output") => arg.alias("out"),
        _ => arg,
    });
    command.mut_subcommands(with_aliases)
}

/// Whether the command line asks for help, or prints it for lack of arguments.
fn is_for_help(words: &[OsString]) -> bool {
    let asks = |it: &OsString| it == "--help" || it == "-h" || it == "help";
    words.len() < 3 || words.iter().any(asks)
}

/// Version with commit. It reads the program's file, so it is called only on request.
fn version() -> String {
    match own_commit() {
        Some(commit) => format!("{VERSION} (commit {commit})"),
        None => format!("{VERSION} (commit unknown: `make build` would say it)"),
    }
}

/// Commit of this program: twelve hexadecimal digits, and `+` if files had been changed. None
/// unless `make build` built it.
pub(crate) fn own_commit() -> Option<String> {
    let program = std::fs::read("/proc/self/exe").ok()?;
    let parsed = object::File::parse(&*program).ok()?;
    let section = parsed.section_by_name(COMMIT)?;
    let commit = String::from_utf8(section.data().ok()?.to_vec()).ok()?;
    (commit != "unknown").then_some(commit)
}

#[cfg(test)]
mod tests {
    use crate::{FRONTROW, examples};

    #[test]
    fn a_command_is_described_alone_as_among_all() {
        let mut whole = FRONTROW.whole_line();
        for command in FRONTROW.commands {
            let mut alone = examples::add_to(FRONTROW.line(Some(command.name)), &FRONTROW);
            let help = |line: &mut clap::Command| {
                line.build();
                let command = line.find_subcommand_mut(command.name).unwrap();
                command.render_long_help().to_string()
            };
            assert_eq!(help(&mut alone), help(&mut whole));
            assert!(alone.get_subcommands().count() <= 2, "{}", command.name);
        }
    }
}
