//! Captions of figures: their certainty, what is missing, and the reference of their ratios.

use crate::pivot::{Reference, Section};
use crate::summary::Summary;
use crate::{number, policy};

/// Number of seeds, width of the intervals, and policies that were not run.
pub fn certainty(summary: &Summary) -> String {
    let mut parts = vec![seeds(summary)];
    parts.extend(half_width(summary));
    parts.extend(lacking_seeds(summary));
    parts.extend(lacking_stock(summary));
    parts.join("; ")
}

fn seeds(summary: &Summary) -> String {
    match summary.seeds.as_slice() {
        [] => "nothing was measured".to_owned(),
        [only] => format!("one seed ({only}), so there is no interval: run more with --seeds"),
        [first, .., last] => format!("means over {} seeds ({first}–{last})", summary.seeds.len()),
    }
}

fn half_width(summary: &Summary) -> Option<String> {
    let mut widths: Vec<f64> = summary
        .cells()
        .filter_map(|cell| cell.over_seeds.relative_half_width())
        .collect();
    widths.sort_by(f64::total_cmp);
    let middle = widths.get(widths.len() / 2)?;
    let middle = number::percent(*middle);
    Some(format!("half of their 95 % intervals are within ±{middle}"))
}

fn lacking_seeds(summary: &Summary) -> Option<String> {
    let whole = summary.seeds.len();
    let lacking = summary
        .cells()
        .filter(|cell| cell.over_seeds.count < whole)
        .count();
    (lacking > 0).then(|| format!("{lacking} figures lack some seeds"))
}

/// Caption if stock schedulers are missing, on which best stock and unloaded depend.
fn lacking_stock(summary: &Summary) -> Option<String> {
    let ran = |name: &&str| summary.policies.iter().any(|policy| policy == name);
    if !summary.has_stock() || !ran(&policy::FRONTROW) {
        return None;
    }
    let lacking: Vec<&str> = policy::STOCK
        .into_iter()
        .filter(|name| !ran(name))
        .collect();
    (!lacking.is_empty()).then(|| {
        let names = lacking.join(", ");
        format!("{names} did not run, so best stock and unloaded are the best of the others")
    })
}

/// What a section shows, and the reference of its ratios if it has any.
pub fn explanation(section: &Section, summary: &Summary) -> &'static str {
    let loaded = section.reference == Reference::Unloaded;
    match (loaded, section.has_ratios(), summary.has_stock()) {
        (true, true, true) => {
            "Under load; × is how many times worse than unloaded (idle, best stock scheduler)"
        }
        (true, true, false) => "Under load; × is how many times worse than on an idle device",
        (true, false, _) => "Under load",
        (false, true, true) => {
            "On an idle device; × is how many times worse than the best stock scheduler"
        }
        (false, true, false) => "On an idle device; × is how many times worse than the best policy",
        (false, false, _) => "On an idle device",
    }
}
