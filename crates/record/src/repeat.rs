//! Whether a result repeats an earlier one: within the intervals of its means, and to the digit.

use crate::{ResultFile, Row, Summary};
use std::collections::BTreeMap;

/// Most inputs that are named.
const MOST_NAMED: usize = 4;

/// Says whether `result` has the means of `earlier` within their intervals, then whether its figures
/// are those to the digit, and if not, what went in differently. One line without its break.
pub fn told(result: &ResultFile, earlier: &ResultFile) -> String {
    let figures = values(&earlier.rows);
    let common: Vec<(f64, f64)> = values(&result.rows)
        .iter()
        .filter_map(|(key, value)| Some((*value, *figures.get(key)?)))
        .collect();
    let commit = earlier.inputs.items.get("commit");
    let at = commit.map_or(String::new(), |it| format!(" of commit {it}"));
    if common.is_empty() {
        return format!(
            "No figure is one of those{at}: another experiment, kernel, device or seed."
        );
    }
    let differ = common.iter().filter(|(one, other)| one != other).count();
    format!(
        "{}{}",
        within_intervals(result, earlier, &at),
        to_the_digit(differ, common.len(), &differences(result, earlier))
    )
}

/// Sentence on the means that both have with an interval, with a blank after it; empty if there are
/// none, as with one seed. It says yes if the intervals of 95 in 100 overlap.
fn within_intervals(result: &ResultFile, earlier: &ResultFile, at: &str) -> String {
    let (now, then) = (Summary::of(result), Summary::of(earlier));
    let intervals = now.policies.iter().flat_map(|policy| {
        let of_both = |figure| {
            let one = now.cell(figure, policy)?.over_seeds.interval?;
            let other = then.cell(figure, policy)?.over_seeds.interval?;
            Some((one, other))
        };
        now.figures.iter().filter_map(of_both)
    });
    let overlap: Vec<bool> = intervals
        .map(|(one, other)| one.low <= other.high && other.low <= one.high)
        .collect();
    let (all, agree) = (overlap.len(), overlap.iter().filter(|it| **it).count());
    if all == 0 {
        return String::new();
    }
    let verdict = match agree * 100 >= all * 95 {
        true => "agree",
        false => "do not agree",
    };
    format!(
        "The figures {verdict} with those{at} within 95 % intervals: {agree} of {all} means do. "
    )
}

fn to_the_digit(differ: usize, all: usize, inputs: &[String]) -> String {
    match (differ, inputs.is_empty()) {
        (0, _) => format!("All {all} figures are the same to the digit."),
        (_, true) => format!(
            "{differ} of {all} figures are not the same to the digit, though all that went in is: please report this."
        ),
        (_, false) => format!(
            "{differ} of {all} figures are not the same to the digit, since what went in differs: {}.",
            named(inputs)
        ),
    }
}

type Key<'a> = (&'a str, &'a str, &'a str, &'a str, u64);

fn values(rows: &[Row]) -> BTreeMap<Key<'_>, f64> {
    let keyed = rows.iter().map(|it| {
        let key: Key<'_> = (&it.workload, &it.load, &it.policy, &it.metric, it.seed);
        (key, it.value)
    });
    keyed.collect()
}

/// Inputs with another value, or that only one of them has. The commit and the image, which follows
/// from the others, come last.
pub(crate) fn differences(result: &ResultFile, earlier: &ResultFile) -> Vec<String> {
    let with_device = |it: &ResultFile| {
        let mut items = it.inputs.items.clone();
        items.insert("device".to_owned(), it.device.clone());
        items.insert("scale".to_owned(), it.scale.to_string());
        items
    };
    let (now, then) = (with_device(result), with_device(earlier));
    let mut names: Vec<&String> = now.keys().chain(then.keys()).collect();
    names.sort_by_key(|name| (name.ends_with("sha256"), *name == "commit", *name));
    names.dedup();
    let differ = names
        .into_iter()
        .filter(|name| now.get(*name) != then.get(*name));
    let said = |value: Option<&String>| value.map_or("none", String::as_str).to_owned();
    differ
        .map(|name| match name.ends_with("sha256") {
            true => name.clone(),
            false => format!(
                "{name} {} for {}",
                said(now.get(name)),
                said(then.get(name))
            ),
        })
        .collect()
}

/// The first of them, and how many more there are.
pub(crate) fn named(inputs: &[String]) -> String {
    let more = inputs.len().saturating_sub(MOST_NAMED);
    let mut named = inputs[..inputs.len() - more].join("; ");
    if more > 0 {
        named += &format!("; and {more} more");
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;

    fn result(rustc: &str, values: &[f64]) -> ResultFile {
        let inputs = [
            ("rustc", rustc),
            ("commit", "0123456789ab"),
            ("image_sha256", rustc),
        ];
        let inputs = inputs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let rows = values.iter().zip(1..).map(|(value, seed)| Row {
            workload: "m1".to_owned(),
            load: "idle".to_owned(),
            policy: "none".to_owned(),
            metric: "total_ms".to_owned(),
            unit: "ms".to_owned(),
            seed,
            value: *value,
            histogram: None,
            series: None,
        });
        ResultFile {
            experiment: "qasio".to_owned(),
            kernel: "6.12".to_owned(),
            device: "emmc".to_owned(),
            scale: Scale::Demo,
            stock_default: "mq-deadline".to_owned(),
            baselines: Vec::new(),
            bars: Vec::new(),
            inputs: crate::Inputs {
                items: inputs.into_iter().collect(),
            },
            rows: rows.collect(),
        }
    }

    #[test]
    fn a_result_repeats_another_or_says_why_not() {
        let earlier = result("1.95", &[1.0, 2.0, 3.0]);
        let same = told(&result("1.96", &[1.0, 2.0]), &earlier);
        assert_eq!(
            same,
            "The figures agree with those of commit 0123456789ab within 95 % intervals: 1 of 1 means do. \
             All 2 figures are the same to the digit."
        );
        let other = told(&result("1.96", &[1.0, 2.5]), &earlier);
        assert!(other.starts_with("The figures agree with"), "{other}");
        assert!(other.contains(". 1 of 2 figures are not"), "{other}");
        assert!(
            other.ends_with("rustc 1.96 for 1.95; image_sha256."),
            "{other}"
        );
        let far = told(&result("1.95", &[10.0, 10.5]), &earlier);
        assert!(far.starts_with("The figures do not agree"), "{far}");
        assert!(far.contains(": 0 of 1 means do."), "{far}");
        assert!(far.ends_with("please report this."), "{far}");
        let one_seed = told(&result("1.95", &[1.0]), &earlier);
        assert_eq!(one_seed, "All 1 figures are the same to the digit.");
        let none = told(&result("1.95", &[]), &earlier);
        assert!(none.starts_with("No figure"), "{none}");
    }
}
