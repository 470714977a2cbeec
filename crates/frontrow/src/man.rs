//! `frontrow man` and `frontrow-lab man`: the man pages of every command, from the command line's own
//! definition.

use crate::exit::{CODES, Exit, Failure};
use crate::program::Program;
use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Write the man pages of every command.
#[derive(Args)]
#[command(hide = true)]
pub struct Pages {
    /// Directory for the pages; it is made if it does not exist.
    directory: PathBuf,
}

/// Writes `NAME.1` for the program and each of its visible commands.
pub fn run(pages: Pages, program: &Program) -> Result<(), Failure> {
    let failed = |path: &Path, error: &io::Error| {
        let sentence = format!(
            "cannot write man pages to {}: {error}; give a directory that can be written",
            path.display()
        );
        Failure::new(Exit::Internal, sentence)
    };
    fs::create_dir_all(&pages.directory).map_err(|error| failed(&pages.directory, &error))?;
    let mut command = program.whole_line().disable_help_subcommand(true);
    command.build();
    for (name, text) in texts(&command).map_err(|error| failed(&pages.directory, &error))? {
        let path = pages.directory.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, &error))?;
    }
    Ok(())
}

/// File names and texts of the pages of a command and its subcommands.
fn texts(command: &Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let man = Man::new(command.clone())
        .manual("frontrow")
        .source(concat!("frontrow ", env!("CARGO_PKG_VERSION")));
    let mut pages = vec![(man.get_filename(), page(&man, command)?)];
    for below in visible(command) {
        pages.extend(texts(below)?);
    }
    Ok(pages)
}

fn visible(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
}

fn page(man: &Man, command: &Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    if let Some(example) = command.get_before_help() {
        let example = example.to_string();
        section("EXAMPLE", example.trim_start_matches("Example: ")).to_writer(&mut text)?;
    }
    man.render_description_section(&mut text)?;
    if command
        .get_arguments()
        .any(|argument| !argument.is_hide_set())
    {
        man.render_options_section(&mut text)?;
    }
    if visible(command).next().is_some() {
        man.render_subcommands_section(&mut text)?;
    }
    if command
        .get_after_long_help()
        .or(command.get_after_help())
        .is_some()
    {
        man.render_extra_section(&mut text)?;
    }
    exit_status().to_writer(&mut text)?;
    Ok(text)
}

fn section(name: &str, words: &str) -> Roff {
    let mut section = Roff::new();
    section.control("SH", [name]);
    section.text([roman(words)]);
    section
}

fn exit_status() -> Roff {
    let mut section = Roff::new();
    section.control("SH", ["EXIT STATUS"]);
    for (code, meaning) in CODES {
        section.control("TP", []);
        section.text([bold(code.to_string())]);
        section.text([roman(meaning)]);
    }
    section
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    fn pages() -> Vec<(String, String)> {
        let mut command = Command::new("frontrow")
            .about("Keeps the foreground responsive")
            .disable_help_subcommand(true)
            .subcommand(
                Command::new("lab")
                    .about("Runs experiments")
                    .subcommand(Command::new("run").arg(Arg::new("name").help("the experiment"))),
            )
            .subcommand(Command::new("man").hide(true));
        command.build();
        let texts = texts(&command).unwrap().into_iter();
        texts
            .map(|(name, text)| (name, String::from_utf8(text).unwrap()))
            .collect()
    }

    #[test]
    fn every_visible_command_has_a_page_and_hidden_ones_have_none() {
        let names: Vec<String> = pages().into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["frontrow.1", "frontrow-lab.1", "frontrow-lab-run.1"]
        );
    }

    #[test]
    fn every_page_says_of_which_version_it_is() {
        let version = concat!("\"frontrow ", env!("CARGO_PKG_VERSION"), "\"");
        for (name, text) in pages() {
            assert!(text.contains(version), "{name}: {text}");
        }
    }

    #[test]
    fn every_page_lists_the_exit_codes() {
        for (name, text) in pages() {
            assert!(text.contains(".SH \"EXIT STATUS\""), "{name}: {text}");
            for (code, meaning) in CODES {
                assert!(
                    text.contains(&format!("\\fB{code}\\fR\n{meaning}")),
                    "{name}: {code}"
                );
            }
        }
    }
}
