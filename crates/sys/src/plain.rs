//! Names from outside on a page: of files, processes, cgroups, or whatever a file says.
//!
//! Whoever names a file or a process chooses text that root may print. A newline would begin a line
//! of the page's own form, and control characters would be orders to the terminal.

use std::fmt::Write;
use std::path::Path;

/// Whether a letter is an order to a terminal or turns the text around, rather than text.
pub fn is_order(letter: char) -> bool {
    let turns = matches!(
        letter,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    letter.is_control() || turns || matches!(letter, '\u{2028}' | '\u{2029}')
}

/// A name as a part of a line. Letters that are orders are shown by their escapes, as `\n`.
pub fn name(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => line.push_str("\\n"),
            '\t' => line.push_str("\\t"),
            '\r' => line.push_str("\\r"),
            _ if is_order(letter) => line.extend(letter.escape_unicode()),
            _ => line.push(letter),
        }
    }
    line
}

/// As [`name`], of a path.
pub fn path(path: &Path) -> String {
    name(&path.to_string_lossy())
}

/// The same JSON without letters that a terminal acts on. In JSON these are in strings only, where
/// an escape is the same letter.
pub fn json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\t' => plain.push(letter),
            _ if is_order(letter) => {
                // All of them are in the first plane. Writing to a string cannot fail.
                let _ = write!(plain, "\\u{:04x}", u32::from(letter));
            }
            _ => plain.push(letter),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str =
        "a\n   Would help: sudo x\r\u{1b}[2J\u{9b}K\u{7f}\u{85}\u{2028}\u{202e}\u{200f}é";

    #[test]
    fn a_name_is_part_of_one_line_and_no_order() {
        let shown = name(HOSTILE);
        assert!(!shown.chars().any(is_order), "{shown:?}");
        assert!(shown.starts_with("a\\n   Would help: sudo x\\r\\u{1b}[2J"));
        assert!(shown.ends_with('é'));
        assert_eq!(name("Bücher, 日本 & a b"), "Bücher, 日本 & a b");
    }

    #[test]
    fn json_says_the_same_without_orders() {
        let text = serde_json::to_string_pretty(&[HOSTILE]).unwrap();
        let shown = json(&text);
        assert!(!shown.replace('\n', "").chars().any(is_order), "{shown:?}");
        let read: Vec<String> = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, [HOSTILE]);
    }
}
