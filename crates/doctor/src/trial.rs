//! Test of a change: windows with and without it in random order, and their comparison.
//!
//! Windows come in pairs, each in random order. So a drift (a cache that fills, a download that
//! ends) affects both sides alike.

use crate::Observation;
use record::statistics::Statistics;
use serde::Serialize;
use sys::random::Random;

/// Smallest difference, in lost seconds for each second, that a user notices: half a frame of a
/// display.
pub const FELT: f64 = 0.01;
/// Fewest pairs that tell an effect.
const FEWEST: usize = 4;

/// For each window, whether the change is applied.
pub fn order(pairs: usize, seed: u64) -> Vec<bool> {
    let mut chance = Random::new(seed);
    let mut windows = Vec::with_capacity(2 * pairs);
    for _ in 0..pairs {
        let with_first = chance.index(2) == 1;
        windows.extend([with_first, !with_first]);
    }
    windows
}

/// Lost time for each second of processes named `who`, in all classes: a change may turn waits of
/// one class into another.
pub fn lost_per_second(seen: &Observation, who: &str) -> f64 {
    let waits = seen.waits.iter().filter(|it| it.who == who);
    let lost_ns: u64 = waits.map(|it| it.lost_ns).sum();
    lost_ns as f64 / seen.watched_ns.max(1) as f64
}

/// Verdict on a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The change reduces lost time.
    Helps,
    /// The change increases lost time.
    Harms,
    /// No difference that a user would notice or that the windows can show.
    NoDifference,
}

/// Result of a trial. Times are lost seconds in each second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Lost time of windows without the change, in order.
    pub without: Vec<f64>,
    /// Lost time of windows with the change, in order.
    pub with: Vec<f64>,
    /// Mean difference of the pairs; positive if the change helps.
    pub won: f64,
    /// 95 % confidence interval of `won`, by Student's t over the pairs' differences. A bootstrap's is
    /// too short for few pairs.
    pub interval: (f64, f64),
    /// Verdict on the change.
    pub effect: Effect,
}

/// Judges pairs of (without, with).
pub fn outcome(pairs: &[(f64, f64)]) -> Outcome {
    let differences: Vec<f64> = pairs.iter().map(|(without, with)| without - with).collect();
    let statistics = Statistics::of(&differences);
    let won = statistics.map_or(0.0, |it| it.mean);
    let interval = statistics.and_then(|it| it.interval);
    let interval = interval.map_or((won, won), |it| (it.low, it.high));
    let is_told = pairs.len() >= FEWEST && (interval.0 > 0.0 || interval.1 < 0.0);
    Outcome {
        without: pairs.iter().map(|it| it.0).collect(),
        with: pairs.iter().map(|it| it.1).collect(),
        won,
        interval,
        effect: match is_told && won.abs() >= FELT {
            false => Effect::NoDifference,
            true if won > 0.0 => Effect::Helps,
            true => Effect::Harms,
        },
    }
}

/// The outcome in one sentence, times in ms of each second.
pub fn text(outcome: &Outcome, who: &str) -> String {
    let ms = |share: f64| format!("{:.0} ms", share * 1000.0);
    let all = |windows: &[f64]| windows.iter().sum::<f64>() / windows.len().max(1) as f64;
    let verdict = match outcome.effect {
        Effect::Helps => "It helps",
        Effect::Harms => "It harms",
        Effect::NoDifference => "No difference that one could feel",
    };
    format!(
        "{verdict}: of each second {who} lost {} without it and {} with it; it wins {} (95 %: {} to {}; {} pairs of windows).\n",
        ms(all(&outcome.without)),
        ms(all(&outcome.with)),
        ms(outcome.won),
        ms(outcome.interval.0),
        ms(outcome.interval.1),
        outcome.with.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows that lose `without` and `with`, and as much more or less as chance says.
    fn pairs(without: f64, with: f64, noise: f64, seed: u64) -> Vec<(f64, f64)> {
        let mut chance = Random::new(seed);
        let mut near = |it: f64| it + noise * (chance.index(2001) as f64 / 1000.0 - 1.0);
        (0..8).map(|_| (near(without), near(with))).collect()
    }

    #[test]
    fn the_order_is_the_seeds_and_each_pair_has_both() {
        let windows = order(32, 7);
        assert_eq!(windows, order(32, 7));
        assert_ne!(windows, order(32, 8));
        assert!(windows.chunks(2).all(|pair| pair[0] != pair[1]));
        let first = windows.chunks(2).filter(|pair| pair[0]).count();
        assert!((8..24).contains(&first), "{first}");
    }

    #[test]
    fn the_sign_is_found_in_nineteen_of_twenty_and_nothing_where_nothing_is() {
        let told = |without, with| {
            let each = (1..=200).map(|seed| outcome(&pairs(without, with, 0.2, seed)).effect);
            each.collect::<Vec<_>>()
        };
        let share = |of: &[Effect], effect| {
            of.iter().filter(|it| **it == effect).count() as f64 / of.len() as f64
        };
        assert!(share(&told(0.5, 0.1), Effect::Helps) >= 0.95);
        assert!(share(&told(0.1, 0.5), Effect::Harms) >= 0.95);
        // One of twenty is wrong; in three of a thousand such runs more than one of eleven.
        assert!(share(&told(0.3, 0.3), Effect::NoDifference) >= 0.91);
    }

    #[test]
    fn what_is_not_felt_and_what_few_windows_say_is_no_difference() {
        let tiny = outcome(&[(0.009, 0.001); 8]);
        assert_eq!(tiny.effect, Effect::NoDifference);
        let few = outcome(&[(0.9, 0.1); 3]);
        assert_eq!(few.effect, Effect::NoDifference);
        let enough = outcome(&[(0.9, 0.1); 4]);
        assert_eq!(enough.effect, Effect::Helps);
        assert!(text(&enough, "fio").contains("lost 900 ms without it and 100 ms with it"));
    }
}
