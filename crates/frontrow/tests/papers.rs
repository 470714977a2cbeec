//! `docs/lab/papers.md`: each figure and table of the papers that shows a measurement has one row, and the
//! command and the page that a row names exist. `tests/captions.tsv` lists the papers' captions.

use lab::Sources;
use record::{Load, Policy, Workload};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Begin of the last cell of a row without a measurement; the reason follows.
const NOT_MEASURED: &str = "not measured: ";

const RUN: &str = "frontrow-lab run ";

/// Whether a figure shows a measurement, by the paper's name and the figure's, such as `QASIO figure 8`.
type Captions = BTreeMap<String, bool>;

/// A line of a table of figures.
struct Row {
    figure: String,
    command: String,
    page: String,
    ours: String,
}

fn captions(text: &str) -> Captions {
    let lines = text.lines().filter(|it| !it.starts_with('#'));
    let read = lines.map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [paper, number, measured, caption] = fields[..] else {
            panic!("tests/captions.tsv: {line}");
        };
        assert!(
            ["yes", "no"].contains(&measured) && !caption.is_empty(),
            "tests/captions.tsv: {line}"
        );
        (format!("{paper} {number}"), measured == "yes")
    });
    let all: Vec<(String, bool)> = read.collect();
    let captions: Captions = all.iter().cloned().collect();
    assert_eq!(
        captions.len(),
        all.len(),
        "tests/captions.tsv names one twice"
    );
    captions
}

/// Rows of tables whose header has these six columns.
fn rows(page: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut is_table = false;
    for line in page.lines() {
        let inside = line.strip_prefix('|').and_then(|it| it.strip_suffix('|'));
        let cells: Vec<&str> =
            inside.map_or(Vec::new(), |it| it.split('|').map(str::trim).collect());
        match cells[..] {
            ["figure", "shows", "command", "page", "paper", "ours"] => is_table = true,
            [figure, _, command, page, _, ours] if is_table && !figure.starts_with("---") => {
                let [figure, command, page, ours] =
                    [figure, command, page, ours].map(str::to_owned);
                rows.push(Row {
                    figure,
                    command,
                    page,
                    ours,
                });
            }
            [] => is_table = false,
            _ => {}
        }
    }
    rows
}

/// Code in a cell.
fn code(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Files that the links in a cell lead to.
fn links(cell: &str) -> impl Iterator<Item = &str> {
    cell.split("](")
        .skip(1)
        .filter_map(|it| it.split([')', '#']).next())
}

/// The fault in the arguments of a `frontrow-lab run`.
fn wrong_arguments(arguments: &str, sources: &Sources) -> Option<String> {
    let mut words = arguments.split_whitespace();
    if let Err(error) = sources.experiment(words.next().unwrap_or_default()) {
        return Some(error.to_string());
    }
    while let (Some(option), Some(value)) = (words.next(), words.next()) {
        let wrong = value.split(',').find_map(|name| match option {
            "--workload" => name.parse::<&Workload>().err().map(|it| it.to_string()),
            "--load" => name.parse::<Load>().err().map(|it| it.to_string()),
            "--policy" => name.parse::<Policy>().err().map(|it| it.to_string()),
            "--device" => sources.device(name).err().map(|it| it.to_string()),
            _ => None,
        });
        if wrong.is_some() {
            return wrong;
        }
    }
    None
}

/// The fault in a row of a page in `docs`.
fn wrong(row: &Row, sources: &Sources) -> Option<String> {
    let mut runs = code(&row.command).filter_map(|it| it.strip_prefix(RUN));
    if let Some(error) = runs.find_map(|it| wrong_arguments(it, sources)) {
        return Some(error);
    }
    let docs = Path::new(ROOT).join("docs/lab");
    if let Some(dead) = links(&row.page).find(|it| !docs.join(it).is_file()) {
        return Some(format!("there is no page {dead}"));
    }
    let is_measured = code(&row.command).next().is_some() && links(&row.page).next().is_some();
    let reason = row.ours.strip_prefix(NOT_MEASURED).unwrap_or_default();
    match (is_measured, reason.is_empty()) {
        (false, true) => Some(format!(
            "it needs a command and a page, or `{NOT_MEASURED}` and what is missing"
        )),
        _ if row.ours.is_empty() => Some("it says nothing of ours".to_owned()),
        _ => None,
    }
}

/// All that is wrong with the rows.
fn complaints(captions: &Captions, rows: &[Row], sources: &Sources) -> Vec<String> {
    let count = |figure: &str| rows.iter().filter(|it| it.figure == figure).count();
    let missing = captions
        .iter()
        .filter(|(figure, measured)| **measured && count(figure) == 0);
    let missing = missing.map(|(figure, _)| format!("{figure} has no row"));
    let of_row = |row: &Row| match (captions.contains_key(&row.figure), count(&row.figure)) {
        (false, _) => Some(format!("{}: no paper has it", row.figure)),
        (true, 2..) => Some(format!("{} has several rows", row.figure)),
        _ => wrong(row, sources).map(|it| format!("{}: {it}", row.figure)),
    };
    missing.chain(rows.iter().filter_map(of_row)).collect()
}

#[test]
fn each_figure_that_was_measured_has_a_row_whose_command_and_page_exist() {
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let captions = captions(&read(&Path::new(ROOT).join("tests/captions.tsv")));
    let rows = rows(&read(&Path::new(ROOT).join("docs/lab/papers.md")));
    let wrong = complaints(&captions, &rows, &Sources::here());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows.len() > 60, "{} rows", rows.len());
}

/// The check itself.
#[test]
fn a_missing_row_and_a_row_of_nothing_are_found() {
    let captions = captions(
        "# comment\nP\tfigure 1\tyes\tA rate\nP\tfigure 2\tno\tA drawing\nP\tfigure 3\tyes\tA time\n\
         P\ttable 1\tyes\tA count\nP\ttable 2\tyes\tA share\nP\ttable 3\tyes\tA sum\n",
    );
    let page = "| figure | shows | command | page | paper | ours |\n|---|---|---|---|---|---|\n\
        | P figure 1 | a rate | `frontrow-lab run qasio --workload m1 --load writer` | [it](../results/qasio-emmc-6.12.md) | 1 | 2 |\n\
        | P figure 9 | a rate | | | 1 | not measured: no such phone |\n\
        | P table 1 | a count | `frontrow-lab run quasio` | [it](../results/qasio-emmc-6.12.md) | 1 | 2 |\n\
        | P table 2 | a share | `frontrow-lab run qasio --load writter` | [it](../results/qasio-emmc-6.12.md) | 1 | 2 |\n\
        | P table 3 | a sum | `frontrow-lab run qasio` | [it](../results/qasio.md) | 1 | 2 |\n\n\
        | figure | other table |\n|---|---|\n| P figure 3 | no row |\n";
    let found = complaints(&captions, &rows(page), &Sources::here());
    let begins = [
        "P figure 3 has no row",
        "P figure 9: no paper",
        "P table 1: ",
        "P table 2: ",
        "P table 3: there is no page",
    ];
    assert_eq!(found.len(), begins.len(), "{found:#?}");
    for (found, begin) in found.iter().zip(begins) {
        assert!(found.starts_with(begin), "{found}, not {begin}");
    }
    let unmeasured = |ours: &str| {
        let page = page
            .replace("not measured: no such phone", ours)
            .replace("figure 9", "figure 2");
        complaints(&captions, &rows(&page), &Sources::here())
    };
    assert!(
        !unmeasured("not measured: no such phone")
            .iter()
            .any(|it| it.starts_with("P figure 2"))
    );
    assert!(
        unmeasured("soon")
            .iter()
            .any(|it| it.starts_with("P figure 2: it needs"))
    );
}
