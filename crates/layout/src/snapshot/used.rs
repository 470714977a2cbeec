//! Blocks in use of a file system, from the output of dumpe2fs.

use std::ops::Range;

/// Ranges of the blocks below `blocks` that `text`, the output of dumpe2fs, does not list as free,
/// in order. `None` if it is not such a text, or names a block beyond the end.
///
/// The line of a group is `  Free blocks: 8-12, 40, 100-32767`, or has nothing after the colon.
pub(crate) fn ranges(text: &str, blocks: u64) -> Option<Vec<Range<u64>>> {
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix("  Free blocks:"));
    let mut used = Vec::new();
    let mut groups = 0;
    let mut at = 0;
    for line in lines {
        groups += 1;
        for run in line.split(',').map(str::trim).filter(|run| !run.is_empty()) {
            let (first, last) = run.split_once('-').unwrap_or((run, run));
            let first: u64 = first.parse().ok()?;
            let end = last.parse::<u64>().ok()?.checked_add(1)?;
            if first < at || end <= first || end > blocks {
                return None;
            }
            if first > at {
                used.push(at..first);
            }
            at = end;
        }
    }
    if at < blocks {
        used.push(at..blocks);
    }
    (groups > 0).then_some(used)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fmt::Write;

    #[test]
    fn what_is_not_free_is_in_use() {
        let text = "Free blocks:              12\n\nGroup 0: (Blocks 0-99)\n  \
            Free blocks: 10-19, 30\nGroup 1: (Blocks 100-199)\n  Free blocks: \n";
        assert_eq!(ranges(text, 200), Some(vec![0..10, 20..30, 31..200]));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        assert_eq!(ranges("hello\n", 200), None);
        for line in [
            "10-200",
            "20-10",
            "1-2, 2",
            "x",
            "5-",
            "18446744073709551615",
        ] {
            assert_eq!(
                ranges(&format!("  Free blocks: {line}\n"), 200),
                None,
                "{line}"
            );
        }
    }

    proptest! {
        #[test]
        fn free_and_used_are_all_blocks(free in prop::collection::vec(any::<bool>(), 1..300),
                                        group in 1_usize..100) {
            let mut text = String::new();
            for (number, group_free) in free.chunks(group).enumerate() {
                let runs: Vec<String> = (0..group_free.len()).filter(|&it| group_free[it])
                    .map(|it| (number * group + it).to_string()).collect();
                writeln!(text, "  Free blocks: {}", runs.join(", ")).unwrap();
            }
            let used = ranges(&text, free.len() as u64).unwrap();
            let named: Vec<u64> = used.iter().cloned().flatten().collect();
            let expected: Vec<u64> =
                (0..free.len()).filter(|&it| !free[it]).map(|it| it as u64).collect();
            prop_assert_eq!(named, expected);
            prop_assert!(used.iter().all(|it| !it.is_empty()));
        }

        #[test]
        fn any_text_is_read_to_its_end(text in ".{0,200}", blocks in any::<u64>()) {
            ranges(&format!("  Free blocks:{text}\n"), blocks);
        }
    }
}
