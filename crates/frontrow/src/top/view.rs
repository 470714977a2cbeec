//! Content of the screen: the rows of the last minute, sorted and chosen by keys, for a number of rows and
//! columns.

use super::{Frame, Minute};
use crate::print::plain;
use doctor::top::{Shown, Sort, lines, opened};

const HELP: &str = "frontrow top shows who waits, for what, because of whom, and on which disk.

  up down    choose a row (k j)
  enter      open it: evidence, layers, what the disk did meanwhile; esc goes back
  s          sort by the last minute, by now, by the longest wait, by name
  f          follow the app of the chosen row
  d          follow its disk
  a          all apps and disks again
  p space    freeze the screen; the watching goes on
  ?          this help, and back
  q          quit (Ctrl-C does, too)

A wait counts in the interval in which it ends; its bars reach back to where it began.
The bars are the last minute, the newest on the right, all rows on one scale.";

/// Effect of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Nothing,
    Draw,
    Quit,
}

/// Who waited and for what: the row that is chosen.
type Chosen = (String, &'static str);

/// State of the screen.
#[derive(Debug, Default)]
pub struct View {
    frame: Option<Frame>,
    minute: Minute,
    /// What is shown while the watching goes on.
    frozen: Option<(Option<Frame>, Minute)>,
    sort: Sort,
    /// Name of the app or disk that alone is shown.
    only: Option<String>,
    chosen: Option<Chosen>,
    is_opened: bool,
    shows_help: bool,
}

impl View {
    /// A view of one app or disk, or of all.
    pub fn following(only: Option<String>) -> View {
        View {
            only,
            ..View::default()
        }
    }

    /// Adds an interval. Returns whether the screen changes.
    pub fn add(&mut self, frame: Frame) -> bool {
        self.minute.add(&frame);
        self.frame = Some(frame);
        self.frozen.is_none()
    }

    fn shown(&self) -> (Option<&Frame>, Vec<&Shown>) {
        let (frame, minute) = match &self.frozen {
            Some((frame, minute)) => (frame, minute),
            None => (&self.frame, &self.minute),
        };
        (frame.as_ref(), minute.rows(self.sort, self.only.as_deref()))
    }

    /// Handles a key.
    pub fn press(&mut self, key: u8) -> Act {
        match key {
            // Ctrl-C and Ctrl-D.
            b'q' | b'Q' | 0x03 | 0x04 => return Act::Quit,
            b's' => self.sort = self.sort.next(),
            b'p' | b' ' => {
                self.frozen = match self.frozen {
                    Some(_) => None,
                    None => Some((self.frame.clone(), self.minute.clone())),
                }
            }
            b'?' | b'h' => self.shows_help = !self.shows_help,
            b'k' => self.choose(-1),
            b'j' => self.choose(1),
            b'\n' | b'\r' => {
                if self.chosen.is_none() {
                    self.choose(1);
                }
                self.is_opened = self.chosen.is_some();
            }
            0x1b => (self.is_opened, self.shows_help) = (false, false),
            b'f' => self.follow(|it| Some(it.row.verdict.who.clone())),
            b'd' => self.follow(|it| it.row.verdict.disk.clone()),
            b'a' => self.only = None,
            _ => return Act::Nothing,
        }
        Act::Draw
    }

    /// Chooses the row so far below the chosen one; the first one if none is.
    fn choose(&mut self, below: isize) {
        let (_, rows) = self.shown();
        let place = place(&rows, self.chosen.as_ref());
        let next = match place {
            Some(place) => place.saturating_add_signed(below),
            None => 0,
        };
        let next = rows.get(next.min(rows.len().saturating_sub(1)));
        self.chosen = next.map(|it| key(it));
    }

    /// Shows alone what the chosen row has of this, or all if it has none.
    fn follow(&mut self, of: impl Fn(&Shown) -> Option<String>) {
        if self.chosen.is_none() {
            self.choose(1);
        }
        let (_, rows) = self.shown();
        let place = place(&rows, self.chosen.as_ref());
        self.only = place.and_then(|it| of(rows[it]));
    }

    /// The last interval, for so many columns.
    pub fn text(&self, columns: usize) -> String {
        let (Some(frame), rows) = self.shown() else {
            return String::new();
        };
        plain(&(lines(frame, &rows, columns).0.join("\n") + "\n"))
    }

    /// Lines for a terminal of this size; the last one lists the keys.
    pub fn lines(&self, (rows, columns): (usize, usize), has_colors: bool) -> Vec<String> {
        let cut = |line: String| plain(&line).chars().take(columns).collect::<String>();
        let room = rows.saturating_sub(1);
        let (text, marked) = self.body();
        let mut lines: Vec<String> = text.into_iter().take(room).map(cut).collect();
        if let Some(line) = marked.and_then(|it| lines.get_mut(it)) {
            *line = match has_colors {
                true => format!("\x1b[7m{line:columns$}\x1b[0m"),
                false => cut(format!("> {line}")),
            };
        }
        lines.resize(room, String::new());
        let keys = cut(self.keys());
        lines.push(match has_colors {
            true => format!("\x1b[7m{keys:columns$}\x1b[0m"),
            false => keys,
        });
        lines
    }

    /// The lines above the keys, and the place of the chosen row among them.
    fn body(&self) -> (Vec<String>, Option<usize>) {
        let (frame, rows) = self.shown();
        let place = place(&rows, self.chosen.as_ref());
        let Some(frame) = frame.filter(|_| !self.shows_help) else {
            let text = match self.shows_help {
                true => HELP,
                false => "Waiting for the first interval.",
            };
            return (text.lines().map(str::to_owned).collect(), None);
        };
        match place.filter(|_| self.is_opened) {
            Some(place) => (opened(&rows[place].row), None),
            None => {
                let (text, first) = lines(frame, &rows, usize::MAX);
                (text, place.map(|it| first + it))
            }
        }
    }

    fn keys(&self) -> String {
        let frozen = match self.frozen {
            Some(_) => "frozen: p goes on",
            None => "p freeze",
        };
        let back = if self.is_opened {
            "esc back"
        } else {
            "enter open"
        };
        let only = match &self.only {
            Some(only) => format!("only {only}: a all"),
            None => "f follow app  d disk".to_owned(),
        };
        format!(
            " q quit  s sort: {}  {back}  {only}  {frozen}  ? help",
            self.sort.name()
        )
    }
}

fn key(shown: &Shown) -> Chosen {
    let verdict = &shown.row.verdict;
    (verdict.who.clone(), verdict.name)
}

fn place(rows: &[&Shown], chosen: Option<&Chosen>) -> Option<usize> {
    rows.iter().position(|it| Some(&key(it)) == chosen)
}

#[cfg(test)]
mod tests;
