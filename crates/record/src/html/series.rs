//! Colours of policies, which are the same in every chart.

use crate::policy;

/// Number of colours for policies that are not schedulers.
const OTHERS: usize = 5;

/// Style class of a policy: `series-none` … `series-frontrow`. Other policies take the other
/// colours in turn.
pub fn class(policy: &str, policies: &[String]) -> String {
    if policy == policy::FRONTROW || policy::is_stock(policy) {
        return format!("series-{policy}");
    }
    let others = policies
        .iter()
        .filter(|name| *name != policy::FRONTROW && !policy::is_stock(name));
    let place = others.into_iter().position(|name| name == policy);
    format!("series-{}", place.unwrap_or(0) % OTHERS)
}
