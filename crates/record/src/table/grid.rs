//! Columns of text that fit a width. A grid that is too wide first loses the ratios of all columns
//! but the last. It then continues in panels below with the same labels.

use anstyle::Style;
use std::fmt::Write;
use std::ops::Range;

const GAP: usize = 2;
const INDENT: usize = 2;

/// A grid: a label column, columns that are repeated in every panel, and the others.
pub struct Grid {
    /// Headings of the columns after the label.
    pub headings: Vec<Text>,
    /// Number of columns after the label that are repeated in every panel.
    pub repeated: usize,
    /// Lines from top to bottom.
    pub lines: Vec<Line>,
}

/// One line of a grid.
pub enum Line {
    /// A heading above lines, and a shorter one for narrow panels.
    Heading(Text, Text),
    /// A label and its cells, each with a value and a ratio; a missing ratio is empty.
    Cells(Text, Vec<(Text, String)>),
}

/// Text in a style.
#[derive(Clone, Default)]
pub struct Text {
    /// The text to show.
    pub text: String,
    /// Style of the text, which is ignored without colour.
    pub style: Style,
}

impl Text {
    /// Text in the terminal's own style. It may be a name from outside, so it stays on its line.
    pub fn plain(text: impl Into<String>) -> Text {
        Text {
            text: sys::plain::name(&text.into()),
            style: Style::new(),
        }
    }

    /// Text in this style.
    pub fn styled(text: impl Into<String>, style: Style) -> Text {
        Text {
            text: sys::plain::name(&text.into()),
            style,
        }
    }
}

impl Grid {
    /// Draws the grid in panels of at most `width` columns, if one label and one column fit.
    pub fn render(&self, width: usize, color: bool) -> String {
        let columns = Columns::fitting(self, width);
        let mut out = String::new();
        for panel in self.panels(&columns, width) {
            if !out.is_empty() {
                out.push('\n');
            }
            self.panel(&mut out, &columns, &panel, (width, color));
        }
        out
    }

    /// Whether some ratios are left out at this width.
    pub fn loses_ratios(&self, width: usize) -> bool {
        Columns::fitting(self, width).widths != Columns::of(self, false).widths
    }

    fn panels(&self, columns: &Columns, width: usize) -> Vec<Vec<usize>> {
        let repeated: Vec<usize> = (0..self.repeated).collect();
        let fixed = columns.label + columns.total(0..self.repeated);
        let mut panels: Vec<Vec<usize>> = Vec::new();
        let mut panel = repeated.clone();
        let mut used = fixed;
        for column in self.repeated..self.headings.len() {
            let needed = columns.total(column..column + 1);
            if used + needed > width && panel.len() > repeated.len() {
                panels.push(std::mem::replace(&mut panel, repeated.clone()));
                used = fixed;
            }
            panel.push(column);
            used += needed;
        }
        panels.push(panel);
        panels
    }

    fn panel(
        &self,
        out: &mut String,
        columns: &Columns,
        panel: &[usize],
        (width, color): (usize, bool),
    ) {
        let mut line = " ".repeat(columns.label);
        for column in panel {
            let width = columns.total(*column..*column + 1);
            right(&mut line, &self.headings[*column], width, color);
        }
        push(out, &line);
        for content in &self.lines {
            let mut line = String::new();
            match content {
                Line::Heading(long, short) => {
                    let fits = width_of(&long.text) <= width;
                    styled(&mut line, if fits { long } else { short }, color);
                }
                Line::Cells(label, cells) => {
                    line.push_str(&" ".repeat(INDENT));
                    styled(&mut line, label, color);
                    let used = INDENT + width_of(&label.text);
                    line.push_str(&" ".repeat(columns.label - used));
                    for column in panel {
                        columns.cell(&mut line, *column, &cells[*column], color);
                    }
                }
            }
            push(out, &line);
        }
    }
}

/// Widths of the columns.
struct Columns {
    label: usize,
    /// For each column the width of its values and of its ratios; 0 if ratios are not shown.
    widths: Vec<(usize, usize)>,
}

impl Columns {
    fn of(grid: &Grid, only_last_ratio: bool) -> Columns {
        let mut label = 0;
        let mut widths = vec![(0, 0); grid.headings.len()];
        for line in &grid.lines {
            let Line::Cells(text, cells) = line else {
                continue;
            };
            label = label.max(INDENT + width_of(&text.text));
            for ((value, ratio), (text, beside)) in widths.iter_mut().zip(cells) {
                *value = width_of(&text.text).max(*value);
                *ratio = width_of(beside).max(*ratio);
            }
        }
        let last = grid.headings.len().saturating_sub(1);
        for (column, (value, ratio)) in widths.iter_mut().enumerate() {
            if only_last_ratio && column != last {
                *ratio = 0;
            }
            let heading = width_of(&grid.headings[column].text);
            *value = heading.saturating_sub(beside(*ratio)).max(*value);
        }
        Columns { label, widths }
    }

    fn fitting(grid: &Grid, width: usize) -> Columns {
        let whole = Columns::of(grid, false);
        if whole.label + whole.total(0..grid.headings.len()) <= width {
            return whole;
        }
        let fewer = Columns::of(grid, true);
        match fewer.label + fewer.total(0..grid.headings.len()) <= width {
            true => fewer,
            false => whole,
        }
    }

    fn total(&self, columns: Range<usize>) -> usize {
        self.widths[columns]
            .iter()
            .map(|(value, ratio)| GAP + value + beside(*ratio))
            .sum()
    }

    fn cell(&self, line: &mut String, column: usize, (text, ratio): &(Text, String), color: bool) {
        let (value_width, ratio_width) = self.widths[column];
        right(line, text, GAP + value_width, color);
        if ratio_width > 0 {
            let ratio = Text::styled(ratio.clone(), text.style);
            right(line, &ratio, ratio_width + 1, color);
        }
    }
}

/// Width of a ratio with the blank before it.
fn beside(ratio: usize) -> usize {
    if ratio > 0 { ratio + 1 } else { 0 }
}

fn push(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// Appends `text` right-aligned in a field of `width`.
fn right(line: &mut String, text: &Text, width: usize, color: bool) {
    line.push_str(&" ".repeat(width.saturating_sub(width_of(&text.text))));
    styled(line, text, color);
}

/// Appends the text, with its style if there is colour.
pub fn styled(line: &mut String, text: &Text, color: bool) {
    if !color || text.style == Style::new() || text.text.is_empty() {
        line.push_str(&text.text);
        return;
    }
    let style = text.style;
    // A write to a String cannot fail.
    let _ = write!(line, "{style}{}{style:#}", text.text);
}

/// Number of terminal columns of a text; each letter that we print takes one.
pub fn width_of(text: &str) -> usize {
    text.chars().count()
}

/// Breaks a paragraph between words so that its lines fit the width.
pub fn wrapped(paragraph: &str, width: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in paragraph.split(' ') {
        let needed = width_of(word);
        if column > 0 && column + 1 + needed > width {
            out.push('\n');
            column = 0;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += needed;
    }
    out.push('\n');
    out
}
