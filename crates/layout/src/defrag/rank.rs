//! Ranking of files by the time that moving a byte of them saves.

use crate::defrag::Finding;

/// Limits for the choice of fragmented files to move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Smallest ratio of the measured read time to that of an unfragmented file.
    pub least_factor: f64,
    /// Most bytes to move in all.
    pub limit_bytes: u64,
}

impl Choice {
    /// Ratio from which a move pays. A copy programs each page again, while a remap programs hardly
    /// anything.
    pub fn usual_factor(remaps: bool) -> f64 {
        match remaps {
            true => 1.0,
            false => 1.25,
        }
    }
}

/// The files that `choice` allows, those with the most saved time for a byte moved first. The saved
/// time counts as often as the file is read. Files that were not measured, or are not read, are
/// left out. A file that exceeds the rest of the limit is skipped for smaller ones.
pub fn choose(findings: &[Finding], choice: Choice) -> Vec<&Finding> {
    let pays = |it: &&Finding| {
        let slow = it
            .read
            .is_some_and(|read| read.factor() >= choice.least_factor);
        let used = it.times_read.is_none_or(|times| times > 0.0);
        slow && used && it.size_bytes > 0
    };
    let mut chosen: Vec<&Finding> = findings.iter().filter(pays).collect();
    chosen.sort_by(|one, other| saved(other).total_cmp(&saved(one)));
    within(&mut chosen, choice.limit_bytes);
    chosen
}

/// The `count` files that are read most often, the first one most often. Without that measurement
/// it is those with the largest loss of time for a byte. Files that are not read are left out.
/// Files that exceed the rest of `limit_bytes` are then skipped.
pub fn most_read(findings: &[Finding], count: usize, limit_bytes: u64) -> Vec<&Finding> {
    let used = |it: &&Finding| it.times_read.is_none_or(|times| times > 0.0);
    let mut chosen: Vec<&Finding> = findings.iter().filter(used).collect();
    chosen.sort_by(|one, other| {
        let times = |it: &Finding| it.times_read.unwrap_or(1.0);
        let most = times(other).total_cmp(&times(one));
        most.then_with(|| saved(other).total_cmp(&saved(one)))
    });
    chosen.truncate(count);
    within(&mut chosen, limit_bytes);
    chosen
}

/// Keeps the files that fit the limit, in order.
fn within(chosen: &mut Vec<&Finding>, limit_bytes: u64) {
    let mut left_bytes = limit_bytes;
    chosen.retain(|it| {
        let fits = it.size_bytes <= left_bytes;
        if fits {
            left_bytes -= it.size_bytes;
        }
        fits
    });
}

/// Time saved by a move, in nanoseconds for each byte read.
fn saved(finding: &Finding) -> f64 {
    let excess_ns = finding.read.map_or(0, |read| read.excess_ns());
    let read_bytes = finding.read.map_or(1, |read| read.bytes.max(1));
    excess_ns as f64 / read_bytes as f64 * finding.times_read.unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::defrag::{Identity, ReadTime};
    use proptest::prelude::*;

    fn finding(name: &str, size_bytes: u64, as_it_lies_ns: u64, should_take_ns: u64) -> Finding {
        Finding {
            path: name.into(),
            identity: Identity {
                device: (8, 1),
                inode: size_bytes,
            },
            size_bytes,
            fragments: 2,
            fewest_fragments: 1,
            dof_l: 2.0,
            dof_p: None,
            read: Some(ReadTime {
                as_it_lies_ns,
                should_take_ns,
                bytes: size_bytes,
            }),
            times_read: None,
        }
    }

    fn names(chosen: Vec<&Finding>) -> Vec<String> {
        let names = chosen.into_iter();
        names.map(|it| it.path.display().to_string()).collect()
    }

    #[test]
    fn what_saves_most_for_a_byte_comes_first_and_what_hardly_loses_is_left() {
        let findings = [
            finding("large-and-slow", 1000, 3000, 1000),
            finding("small-and-slow", 100, 500, 100),
            finding("fragmented-but-fast", 1000, 1050, 1000),
            finding("too-large", 5000, 50_000, 5000),
        ];
        let choice = Choice {
            least_factor: 1.25,
            limit_bytes: 1100,
        };
        let chosen = names(choose(&findings, choice));
        assert_eq!(chosen, ["small-and-slow", "large-and-slow"]);
    }

    #[test]
    fn what_is_read_often_comes_first_and_what_nobody_reads_is_left() {
        let mut findings = [
            finding("once", 1000, 3000, 1000),
            finding("often", 1001, 2000, 1000),
            finding("never", 1002, 9000, 1000),
        ];
        for (finding, times) in findings.iter_mut().zip([1.0, 2.5, 0.0]) {
            finding.times_read = Some(times);
        }
        let choice = Choice {
            least_factor: 1.25,
            limit_bytes: u64::MAX,
        };
        assert_eq!(names(choose(&findings, choice)), ["often", "once"]);
    }

    #[test]
    fn of_those_that_are_read_most_what_fits_is_taken() {
        let mut findings = [
            finding("seldom", 10, 3000, 1000),
            finding("never", 11, 9000, 1000),
            finding("large", 5000, 2000, 1000),
            finding("often", 12, 2000, 1000),
        ];
        for (finding, times) in findings.iter_mut().zip([0.5, 0.0, 7.0, 2.5]) {
            finding.times_read = Some(times);
        }
        assert_eq!(names(most_read(&findings, 2, u64::MAX)), ["large", "often"]);
        assert_eq!(names(most_read(&findings, 2, 4000)), ["often"]);
        assert_eq!(names(most_read(&findings, 9, 4000)), ["often", "seldom"]);
        for finding in &mut findings {
            finding.times_read = None;
        }
        // Without a count of reads, the loss of time for a byte decides.
        assert_eq!(
            names(most_read(&findings, 2, u64::MAX)),
            ["never", "seldom"]
        );
    }

    #[test]
    fn what_was_not_measured_is_not_moved() {
        let mut unknown = finding("unknown", 1000, 3000, 1000);
        unknown.read = None;
        let choice = Choice {
            least_factor: 1.0,
            limit_bytes: u64::MAX,
        };
        assert!(choose(&[unknown], choice).is_empty());
    }

    proptest! {
        #[test]
        fn the_limit_holds_and_the_order_is_by_what_is_saved(
            sizes in prop::collection::vec((1u64..1000, 0u64..5000, 1u64..2000), 0..30),
            limit_bytes in 0u64..5000,
        ) {
            let findings: Vec<_> = sizes
                .into_iter()
                .map(|(size, lies, should)| finding("f", size, lies, should))
                .collect();
            let chosen = choose(&findings, Choice { least_factor: 1.1, limit_bytes });
            prop_assert!(chosen.iter().map(|it| it.size_bytes).sum::<u64>() <= limit_bytes);
            prop_assert!(chosen.windows(2).all(|pair| saved(pair[0]) >= saved(pair[1])));
            prop_assert!(chosen.iter().all(|it| it.read.unwrap().factor() >= 1.1));
        }
    }
}
