//! The ablation below the table.

use super::Options;
use super::grid::{Grid, Line, Text, wrapped};
use crate::ablation::{self, Ablation, Counts};
use crate::summary::Summary;
use crate::{metric, number, title};

/// The block; None if the result has no counters.
pub fn block(summary: &Summary, options: Options) -> Option<String> {
    let ablations: Vec<Ablation> = ablation::ablations(summary)
        .into_iter()
        .filter(|ablation| ablation.load != crate::summary::IDLE || options.all)
        .collect();
    if ablations.is_empty() {
        return None;
    }
    let mut out = wrapped(
        "What is promoted: waits, share found in the queue, time waited",
        options.width,
    );
    let grid = counters(&ablations);
    out.push_str(&grid.render(options.width, options.color));
    Some(out)
}

/// One grid for all workloads and loads, with the dependencies that any of them has.
fn counters(ablations: &[Ablation]) -> Grid {
    let dependencies: Vec<&'static str> = metric::DEPENDENCIES
        .into_iter()
        .filter(|dependency| {
            let has = |ablation: &Ablation| ablation.dependencies.contains(dependency);
            ablations.iter().any(has)
        })
        .collect();
    let headings = std::iter::once("total").chain(dependencies.iter().copied());
    Grid {
        headings: headings.map(Text::plain).collect(),
        repeated: 0,
        lines: ablations
            .iter()
            .flat_map(|ablation| situation(ablation, &dependencies))
            .collect(),
    }
}

fn situation(ablation: &Ablation, dependencies: &[&'static str]) -> Vec<Line> {
    let heading = title::short(&ablation.workload, &ablation.load);
    let mut lines = vec![Line::Heading(Text::plain(&heading), Text::plain(&heading))];
    for variant in &ablation.variants {
        let total = match variant.total_ms {
            Some(total_ms) => number::with_unit(total_ms, "ms"),
            None => "–".to_owned(),
        };
        let counts = dependencies
            .iter()
            .map(|dependency| counts_text(ablation.counts(variant, dependency)));
        let cells = std::iter::once(total)
            .chain(counts)
            .map(|text| (Text::plain(text), String::new()))
            .collect();
        lines.push(Line::Cells(Text::plain(variant.name), cells));
    }
    lines
}

/// Counters in words, such as `148, 92.0 %, 210 ms`.
fn counts_text(counts: Option<Counts>) -> String {
    let Some(counts) = counts else {
        return "–".to_owned();
    };
    let mut parts = vec![number::count(counts.waits)];
    parts.extend(counts.found_share.map(number::percent));
    parts.extend(
        counts
            .wait_ms
            .map(|wait_ms| number::with_unit(wait_ms, "ms")),
    );
    parts.join(", ")
}
