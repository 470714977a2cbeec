//! Content of the screen: a frame, sorted and filtered by keys, for a number of rows and columns.

use crate::print::plain;
use iopro::report::{self, Frame};
use std::cmp::Reverse;

const HELP: &str = "frontrow iopro top shows who waits in the storage stack, and why.

  s        sort waits by time, by number, by the longest
  p space  pause: the screen stays, the recording goes on
  ?        this help, and back
  q        quit (Ctrl-C does, too)

A wait counts in the interval in which it ends.";

/// Sort order of waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Time,
    Number,
    Longest,
}

impl Sort {
    fn next(self) -> Sort {
        match self {
            Sort::Time => Sort::Number,
            Sort::Number => Sort::Longest,
            Sort::Longest => Sort::Time,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Sort::Time => "time",
            Sort::Number => "number",
            Sort::Longest => "longest",
        }
    }

    fn apply(self, frame: &mut Frame) {
        let waiting = &mut frame.foreground;
        let key = |total_ns: u64, waits: u64, longest_ns: u64| match self {
            Sort::Time => total_ns,
            Sort::Number => waits,
            Sort::Longest => longest_ns,
        };
        // Both are sorted by time already, so ties are in that order.
        waiting
            .top
            .sort_by_key(|it| Reverse(key(it.total_ns, it.waits, it.longest_ns)));
        waiting
            .classes
            .sort_by_key(|it| Reverse(key(it.total_ns, it.waits, it.longest_ns)));
    }
}

/// Effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Nothing,
    Draw,
    Quit,
}

/// State of the screen.
#[derive(Debug, Default)]
pub struct View {
    sort: Sort,
    /// Whether the present frame stays.
    pub is_paused: bool,
    shows_help: bool,
}

impl View {
    /// Handles a key.
    pub fn press(&mut self, key: u8) -> Act {
        match key {
            // Ctrl-C and Ctrl-D.
            b'q' | b'Q' | 0x03 | 0x04 => return Act::Quit,
            b's' => self.sort = self.sort.next(),
            b'p' | b' ' => self.is_paused = !self.is_paused,
            b'?' | b'h' => self.shows_help = !self.shows_help,
            _ => return Act::Nothing,
        }
        Act::Draw
    }

    /// Lines for a terminal of this size; the last one lists the keys.
    pub fn lines(
        &self,
        frame: Option<&Frame>,
        (rows, columns): (usize, usize),
        has_colors: bool,
    ) -> Vec<String> {
        let text = match frame {
            _ if self.shows_help => HELP.to_owned(),
            Some(frame) => {
                let mut frame = frame.clone();
                self.sort.apply(&mut frame);
                plain(&report::frame_text(&frame, columns))
            }
            None => "Waiting for the first interval.".to_owned(),
        };
        let cut = |line: &str| line.chars().take(columns).collect::<String>();
        let room = rows.saturating_sub(1);
        let mut lines: Vec<String> = text.lines().take(room).map(cut).collect();
        lines.resize(room, String::new());
        let keys = cut(&self.keys());
        lines.push(match has_colors {
            true => format!("\x1b[7m{keys:columns$}\x1b[0m"),
            false => keys,
        });
        lines
    }

    fn keys(&self) -> String {
        let paused = if self.is_paused {
            "paused: p goes on"
        } else {
            "p pause"
        };
        format!(" q quit  s sort: {}  {paused}  ? help", self.sort.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iopro::report::{Top, Waiting};
    use iopro::wait::Class;

    fn top(process: &str, waits: u64, total_ns: u64, longest_ns: u64) -> Top {
        Top {
            process: process.to_owned(),
            call: Some("fsync".to_owned()),
            class: Class::Sync,
            cause: None,
            file: None,
            other: None,
            waits,
            total_ns,
            longest_ns,
        }
    }

    fn frame() -> Frame {
        let waiting = Waiting {
            total_ns: 90_000_000,
            classes: Vec::new(),
            top: vec![
                top("lasting", 2, 50_000_000, 25_000_000),
                top("frequent", 30, 30_000_000, 1_000_000),
                top("sudden", 1, 10_000_000, 40_000_000),
            ],
            longest: None,
        };
        Frame {
            target: "system".to_owned(),
            at_ns: 1_000_000_000,
            duration_ns: 1_000_000_000,
            everybody: waiting.clone(),
            foreground: waiting,
            layers: Vec::new(),
            under_way: Vec::new(),
            io: Vec::new(),
            files: Vec::new(),
            lost: Vec::new(),
        }
    }

    fn place(lines: &[String], word: &str) -> usize {
        lines.iter().rposition(|it| it.contains(word)).unwrap()
    }

    #[test]
    fn keys_sort_pause_help_and_quit() {
        let mut view = View::default();
        let first = |view: &View| {
            let lines = view.lines(Some(&frame()), (24, 100), false);
            let names = ["lasting", "frequent", "sudden"];
            names
                .into_iter()
                .min_by_key(|it| place(&lines, it))
                .unwrap()
        };
        assert_eq!(first(&view), "lasting");
        assert_eq!(view.press(b's'), Act::Draw);
        assert_eq!(first(&view), "frequent");
        view.press(b's');
        assert_eq!(first(&view), "sudden");
        view.press(b's');
        assert_eq!(first(&view), "lasting");
        assert_eq!(view.press(b' '), Act::Draw);
        assert!(view.is_paused);
        view.press(b'?');
        let help = view.lines(Some(&frame()), (24, 100), false);
        assert!(help[0].contains("who waits"), "{help:?}");
        assert_eq!(view.press(b'x'), Act::Nothing);
        assert_eq!(view.press(b'q'), Act::Quit);
    }

    #[test]
    fn lines_fit_any_terminal_and_have_colours_where_they_may() {
        let view = View::default();
        for size in [(1, 1), (2, 7), (24, 80), (60, 200)] {
            let lines = view.lines(Some(&frame()), size, false);
            assert_eq!(lines.len(), size.0);
            assert!(
                lines.iter().all(|it| it.chars().count() <= size.1),
                "{lines:?}"
            );
            assert!(lines.iter().all(|it| !it.contains('\x1b')));
        }
        let lines = view.lines(None, (24, 80), true);
        assert!(lines[23].starts_with("\x1b[7m"), "{lines:?}");
    }
}
