//! Matrix of all workloads under all loads, coloured by the slowdown against running alone.

use crate::matrix::{Cell, Matrix, STEPS, matrices};
use crate::summary::Summary;
use crate::{number, title};
use maud::{Markup, html};

/// The section; None if the result is not a matrix.
pub fn section(summary: &Summary) -> Option<Markup> {
    let matrices = matrices(summary);
    if matrices.is_empty() {
        return None;
    }
    Some(html! {
        section {
            h2 { "Whoever is in front, beside whatever is behind" }
            p.lead {
                "How many times slower than alone (idle device, best stock scheduler), by colour. "
                "▲ marks what is more than 5 % slower than the best that the kernel has today. "
                "Hover over a cell for its median and worst."
            }
            p.legend {
                @for (step, range) in ranges().iter().enumerate() {
                    span class={ "cell step-" (step) } { (range) }
                }
            }
            @for matrix in matrices.iter().rev() { (draw(matrix)) }
        }
    })
}

/// Labels of the colours: `≤ ×1.10`, …, `> ×4.00`.
pub fn ranges() -> Vec<String> {
    let within = STEPS
        .iter()
        .map(|step| format!("≤ {}", number::times(*step)));
    let beyond = STEPS
        .last()
        .map(|step| format!("> {}", number::times(*step)));
    within.chain(beyond).collect()
}

fn draw(matrix: &Matrix) -> Markup {
    html! {
        h3 { (matrix.policy) ": times slower than alone" }
        div.scroll tabindex="0" role="region" aria-label=(matrix.policy) {
            table.matrix {
                thead {
                    tr {
                        th scope="col" { "in front" }
                        @for load in &matrix.loads {
                            th scope="col" title=(title::load(load)) { (load) }
                        }
                    }
                }
                tbody {
                    @for (workload, cells) in &matrix.lines {
                        tr {
                            th scope="row" title=[title::workload(workload)] { (workload) }
                            @for cell in cells { (draw_cell(cell.as_ref())) }
                        }
                    }
                }
            }
        }
    }
}

fn draw_cell(cell: Option<&Cell>) -> Markup {
    let Some(cell) = cell else {
        return html! { td.missing title="not measured" { "–" } };
    };
    html! {
        td class={ "cell step-" (cell.step()) } title=(hover(cell)) {
            (number::factor(cell.mean))
            @if cell.is_behind() { " ▲" }
        }
    }
}

fn hover(cell: &Cell) -> String {
    let (median, worst) = (number::times(cell.median), number::times(cell.worst));
    let mut text = format!("median {median}, worst {worst} alone");
    if let (Some(ratio), Some(best)) = (cell.over_best, &cell.best) {
        text.push_str(&format!("; {} of {best}'s", number::times(ratio)));
    }
    text
}
