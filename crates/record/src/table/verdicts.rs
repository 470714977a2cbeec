//! The bars below the table, each on a line with its figures after it.

use super::grid::{self, Text, width_of, wrapped};
use super::{BAD, GOOD, Options};
use crate::bars::{self, Judged, Outcome};
use anstyle::Style;

/// The block; None if the experiment has no bars.
pub fn block(judged: &[Judged], options: Options) -> Option<String> {
    if judged.is_empty() {
        return None;
    }
    let mut out = bars::count(judged) + "\n";
    for bar in judged {
        let (word, style) = match bar.outcome() {
            Outcome::Met => ("met", GOOD),
            Outcome::Missed => ("MISSED", BAD),
            Outcome::NotMeasured => ("not measured", Style::new()),
        };
        out.push_str("  ");
        grid::styled(&mut out, &Text::styled(word, style), options.color);
        let demand = format!(": {} {}", bar.bar.title, bar.bar.demand);
        let room = options.width.saturating_sub(2 + width_of(word));
        out.push_str(&wrapped(&demand, room));
        out.push_str(&figures(bar, options));
    }
    Some(out)
}

/// Figures of one bar, wrapped to the width.
fn figures(judged: &Judged, options: Options) -> String {
    const INDENT: usize = 6;
    let mut out = String::new();
    let mut column = 0;
    for verdict in &judged.verdicts {
        let missed = judged.outcome() != Outcome::Met && verdict.outcome == Outcome::Missed;
        let mark = if missed { " (missed)" } else { "" };
        let item = format!("{} {}{mark}", verdict.label, verdict.measured);
        let needed = width_of(&item);
        if column > INDENT && column + 3 + needed > options.width {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            out.push_str(&" ".repeat(INDENT));
            column = INDENT;
        } else {
            out.push_str(" · ");
            column += 3;
        }
        let style = if missed { BAD } else { Style::new() };
        grid::styled(&mut out, &Text::styled(item, style), options.color);
        column += needed;
    }
    if column > 0 {
        out.push('\n');
    }
    out
}
