//! Colours of policies, which are the same in every chart.

use crate::Summary;
use crate::policy::FRONTROW;

/// Number of colours for policies that are not schedulers.
const OTHERS: usize = 5;

/// Style class of a policy: `series-none` … `series-frontrow`. Other policies take the other
/// colours in turn.
pub fn class(policy: &str, summary: &Summary) -> String {
    let is_scheduler = |name: &str| name == FRONTROW || summary.is_stock(name);
    if is_scheduler(policy) {
        return format!("series-{policy}");
    }
    let others = summary.policies.iter().filter(|name| !is_scheduler(name));
    let place = others.into_iter().position(|name| name == policy);
    format!("series-{}", place.unwrap_or(0) % OTHERS)
}
