//! Output of commands: text for users, JSON for programs.

use crate::exit::{Exit, Failure};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// Prints text. A closed pipe, as after `| head`, is not an error.
pub(crate) fn print_text(text: &str) -> Result<(), Failure> {
    print_bytes(text.as_bytes(), io::stdout())
}

/// Prints bytes that need not be text to a standard stream.
pub(crate) fn print_bytes(content: &[u8], mut stream: impl Write) -> Result<(), Failure> {
    let printed = stream.write_all(content).and_then(|()| stream.flush());
    match printed {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::new(
            (&error).into(),
            format_args!("cannot print: {error}"),
        )),
        _ => Ok(()),
    }
}

pub(crate) fn json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map(|text| sys::plain::json(&text) + "\n")
        .map_err(|error| Failure::new(Exit::Internal, format_args!("cannot make JSON: {error}")))
}

/// Whether standard output takes colours: on a terminal, unless `NO_COLOR` is set.
pub(crate) fn has_colors() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|it| !it.is_empty());
    !refused && io::stdout().is_terminal()
}

pub(crate) fn table_options() -> record::table::Options {
    record::table::Options {
        color: has_colors(),
        ..Default::default()
    }
}

/// JSON of a value that is at hand, on one line.
pub(crate) fn json_line(value: &serde_json::Value) -> String {
    sys::plain::json(&value.to_string())
}

/// A page without terminal control characters. Its newlines are ours: names that come from outside are
/// escaped where they enter (`sys::plain`).
pub(crate) fn plain(text: &str) -> String {
    let is_order = |letter| sys::plain::is_order(letter) && !matches!(letter, '\n' | '\t');
    let shown = |letter| match is_order(letter) {
        true => char::REPLACEMENT_CHARACTER,
        false => letter,
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_terminal_acts_on_the_name_of_a_file() {
        let name = "a\u{1b}]0;b\u{7}\u{9b}2J\u{202e}c\r\nsize\u{e9}\t1\n";
        let shown = "a\u{fffd}]0;b\u{fffd}\u{fffd}2J\u{fffd}c\u{fffd}\nsize\u{e9}\t1\n";
        assert_eq!(plain(name), shown);
    }

    #[test]
    fn no_terminal_acts_on_a_name_in_json() {
        let shown = json(&["a\u{9b}2J\u{202e}b\n"]).unwrap();
        assert!(shown.contains("a\\u009b2J\\u202eb\\n"), "{shown}");
    }
}
