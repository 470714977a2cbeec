//! A result as Markdown, for `docs/results/`.

use crate::ablation::{self, Ablation, Variant};
use crate::bars::{self, Judged, Outcome, Verdict};
use crate::headline::Headline;
use crate::matrix::{self, Matrix};
use crate::pivot::{self, Column, Entry, Section};
use crate::summary::{IDLE, Summary};
use crate::{ResultFile, caption, command, number, policy, title};
use std::fmt::Write;

/// Renders the whole page, with the commands that repeat the result and make the page.
pub fn render(result: &ResultFile) -> String {
    let summary = Summary::of(result);
    let mut blocks = vec![heading(result, &summary)];
    blocks.extend(Headline::of(&summary).map(|headline| headline.sentence() + "\n"));
    let matrices = matrix::matrices(&summary);
    if matrices.is_empty() {
        for section in pivot::sections(&summary, false) {
            blocks.push(figures(&section, &summary));
        }
    } else {
        blocks.push(legend());
        blocks.extend(matrices.iter().rev().map(picture));
    }
    blocks.extend(verdicts(&bars::judge(&summary)));
    blocks.extend(ablations(&summary));
    blocks.push(inputs(result));
    blocks.join("\n")
}

fn heading(result: &ResultFile, summary: &Summary) -> String {
    let mut text = format!(
        "# {} on {}, kernel {}, {} scale\n\n{}.\n",
        escaped(&result.experiment),
        escaped(&result.device),
        escaped(&result.kernel),
        result.scale,
        capitalised(&caption::certainty(summary)),
    );
    if let Some(command) = command::reproduce(result) {
        text.push_str(&format!(
            "\n```sh\n{command} --out DIR\nfrontrow-lab show DIR --markdown\n```\n"
        ));
    }
    text
}

/// Squares of a matrix by the number of [`matrix::STEPS`] that are exceeded.
const SQUARES: [&str; 6] = ["🟩", "🟢", "🟨", "🟧", "🟥", "🟪"];

fn legend() -> String {
    let within = matrix::STEPS
        .iter()
        .map(|step| format!("to {}", number::times(*step)));
    let ranges = within.chain(["slower".to_owned()]);
    let entries = SQUARES.iter().zip(ranges);
    let entries: Vec<String> = entries
        .map(|(square, range)| format!("{square} {range}"))
        .collect();
    format!(
        "Times slower than alone (idle device, best stock scheduler): {}. ▲: more than 5 % slower \
         than the best that the kernel has today. Mean, and in brackets the worst of the seeds \
         where it differs.\n",
        entries.join(", ")
    )
}

fn picture(matrix: &Matrix) -> String {
    let mut head = vec!["in front".to_owned()];
    head.extend(matrix.loads.iter().map(|load| escaped(load)));
    let line = |(workload, cells): &(String, Vec<Option<matrix::Cell>>)| {
        let mut line = vec![escaped(workload)];
        line.extend(cells.iter().map(|cell| square(cell.as_ref())));
        line
    };
    let lines: Vec<Vec<String>> = matrix.lines.iter().map(line).collect();
    format!(
        "## {}\n\n{}",
        escaped(&matrix.policy),
        grid(&head, 1, &lines)
    )
}

fn square(cell: Option<&matrix::Cell>) -> String {
    let Some(cell) = cell else {
        return "–".to_owned();
    };
    let mut text = format!("{} {}", SQUARES[cell.step()], number::factor(cell.mean));
    let (mean, worst) = (number::factor(cell.mean), number::factor(cell.worst));
    if worst != mean {
        text.push_str(&format!(" ({worst})"));
    }
    if cell.is_behind() {
        text.push_str(" ▲");
    }
    text
}

fn figures(section: &Section, summary: &Summary) -> String {
    let mut head = vec!["workload".to_owned(), "figure".to_owned()];
    head.extend(section.columns.iter().map(|column| match column {
        Column::Policy(name) if name == policy::FRONTROW => format!("**{}**", escaped(name)),
        column => escaped(column.name()),
    }));
    let mut lines = Vec::new();
    for group in &section.groups {
        let place = title::short(&group.workload, &group.load);
        for (row, line) in group.lines.iter().enumerate() {
            let first = if row == 0 {
                escaped(&place)
            } else {
                String::new()
            };
            let mut cells = vec![first, escaped(&line.label)];
            cells.extend(line.entries.iter().map(|entry| cell(entry.as_ref())));
            lines.push(cells);
        }
    }
    let explanation = caption::explanation(section, summary);
    format!("{explanation}.\n\n{}", grid(&head, 2, &lines))
}

fn cell(entry: Option<&Entry>) -> String {
    let Some(entry) = entry else {
        return "–".to_owned();
    };
    let value = match entry.policy == policy::FRONTROW {
        true => format!("**{}**", escaped(&entry.value)),
        false => escaped(&entry.value),
    };
    match &entry.ratio {
        Some(ratio) => format!("{value} {ratio}"),
        None => value,
    }
}

fn verdicts(judged: &[Judged]) -> Option<String> {
    if judged.is_empty() {
        return None;
    }
    let head = ["bar", "asked", "", "measured"].map(str::to_owned);
    let lines: Vec<Vec<String>> = judged.iter().map(verdict).collect();
    Some(format!(
        "{}.\n\n{}",
        bars::count(judged),
        grid(&head, 4, &lines)
    ))
}

/// If a bar has more figures than this, only those that missed are listed.
const MOST_FIGURES: usize = 40;

fn verdict(judged: &Judged) -> Vec<String> {
    let outcome = match judged.outcome() {
        Outcome::Met => "met",
        Outcome::Missed => "**missed**",
        Outcome::NotMeasured => "not measured",
    };
    let missed = |verdict: &&Verdict| verdict.outcome == Outcome::Missed;
    let only_missed = judged.verdicts.len() > MOST_FIGURES;
    let shown = judged
        .verdicts
        .iter()
        .filter(|it| !only_missed || missed(it));
    let figures = shown.map(|verdict| {
        let text = escaped(&format!("{} {}", verdict.label, verdict.measured));
        match verdict.outcome {
            Outcome::Missed => format!("**{text}**"),
            Outcome::Met | Outcome::NotMeasured => text,
        }
    });
    vec![
        judged.bar.title.to_owned(),
        judged.bar.demand.to_owned(),
        outcome.to_owned(),
        figures.collect::<Vec<_>>().join(", "),
    ]
}

fn ablations(summary: &Summary) -> Option<String> {
    let ablations = ablation::ablations(summary).into_iter();
    let lines: Vec<Vec<String>> = ablations
        .filter(|ablation| ablation.load != IDLE)
        .flat_map(|ablation| counters(&ablation))
        .collect();
    if lines.is_empty() {
        return None;
    }
    let head = [
        "workload",
        "promoted",
        "total",
        "dependency",
        "waits",
        "found",
        "time waited",
    ];
    Some(format!(
        "What is promoted: waits per dependency, the share of them found, and the time they took.\n\n{}",
        grid(&head.map(str::to_owned), 2, &lines)
    ))
}

fn counters(ablation: &Ablation) -> Vec<Vec<String>> {
    let place = escaped(&title::short(&ablation.workload, &ablation.load));
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
    let milliseconds = |value_ms| number::with_unit(value_ms, "ms");
    let none_ms = ablation.none().and_then(|none| none.total_ms);
    let total = |variant: &Variant| {
        let total_ms = variant.total_ms?;
        let change = none_ms.filter(|none_ms| variant.name != "NONE" && *none_ms > 0.0);
        let change = change.map(|none_ms| number::change(total_ms / none_ms - 1.0));
        let change = change.map_or(String::new(), |change| format!(" {change}"));
        Some(milliseconds(total_ms) + &change)
    };
    let mut lines = Vec::new();
    for variant in &ablation.variants {
        for name in &ablation.dependencies {
            let Some(counts) = ablation.counts(variant, name) else {
                continue;
            };
            lines.push(vec![
                place.clone(),
                escaped(variant.name),
                or_dash(total(variant)),
                (*name).to_owned(),
                number::count(counts.waits),
                or_dash(counts.found_share.map(number::percent)),
                or_dash(counts.wait_ms.map(milliseconds)),
            ]);
        }
    }
    lines
}

fn inputs(result: &ResultFile) -> String {
    let head = ["input", ""].map(str::to_owned);
    let lines: Vec<Vec<String>> = result
        .inputs
        .items
        .iter()
        .map(|(name, value)| vec![escaped(name), escaped(value)])
        .collect();
    match lines.is_empty() {
        true => String::new(),
        false => grid(&head, 2, &lines),
    }
}

/// A table with text in its first columns, and right-aligned figures in the others.
fn grid(head: &[String], text_columns: usize, lines: &[Vec<String>]) -> String {
    let rules = (0..head.len()).map(|column| match column < text_columns {
        true => "---".to_owned(),
        false => "---:".to_owned(),
    });
    let mut out = row(head) + &row(&rules.collect::<Vec<_>>());
    for line in lines {
        out.push_str(&row(line));
    }
    out
}

fn row(cells: &[String]) -> String {
    let mut out = String::from("|");
    for cell in cells {
        // A write to a String cannot fail.
        let _ = write!(out, " {cell} |");
    }
    out.push('\n');
    out
}

/// Escapes characters that are markup.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '|' | '*' | '_' | '`' | '[' | '\\' => out.extend(['\\', letter]),
            '\n' | '\r' => out.push(' '),
            _ => out.push(letter),
        }
    }
    out
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}
