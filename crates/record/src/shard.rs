//! Shards of a campaign: each runs every Nth of an experiment's guests, on whatever machine, and
//! [`join`] makes of their files the result of an undivided run.

use crate::{ResultFile, Row, isolation, repeat};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

/// Which part of a campaign: `3/16` is the third of 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    count: NonZeroUsize,
    /// Place among the shards, from 0.
    index: usize,
}

impl Shard {
    /// Whether the guest at this place of the campaign, from 0, belongs to the shard.
    pub fn has(self, place: usize) -> bool {
        place % self.count == self.index
    }

    /// Name of the shard's file in its directory.
    pub fn file_name(self) -> String {
        format!("shard-{}-of-{}.json", self.index + 1, self.count)
    }

    /// Whether a file of this name is a shard's.
    pub fn is_file_name(name: &str) -> bool {
        name.starts_with("shard-") && name.ends_with(".json")
    }

    /// All shards of the campaign, in order.
    fn all(self) -> impl Iterator<Item = Shard> {
        (0..self.count.get()).map(move |index| Shard { index, ..self })
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parsed = text.split_once('/').and_then(|(number, count)| {
            let number: usize = number.parse().ok()?;
            let count: NonZeroUsize = count.parse().ok()?;
            let index = number.checked_sub(1)?;
            (index < count.get()).then_some(Shard { count, index })
        });
        parsed.ok_or_else(|| "give I/N with I from 1 to N, such as 3/16".to_owned())
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.index + 1, self.count)
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Shard, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

/// A shard's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardFile {
    /// Which part of the campaign it is.
    pub shard: Shard,
    /// Number of guests of the whole campaign.
    pub guests: usize,
    /// Digest of the orders of all guests of the campaign, this shard's and others'.
    pub orders_sha256: String,
    /// The campaign's result without rows.
    pub result: ResultFile,
    /// How the shard's guests ended, in the campaign's order.
    pub outcomes: Vec<Outcome>,
}

/// How one guest ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Place among the campaign's guests, from 0.
    pub place: usize,
    /// Name of the guest's policy.
    pub policy: String,
    /// Seed of the guest.
    pub seed: u64,
    /// Figures of the guest, or why there are none.
    #[serde(flatten)]
    pub end: End,
}

/// Figures of a guest, or why there are none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// The rows that the guest measured.
    Rows(Vec<Row>),
    /// The sentence that says why it failed.
    Failure(String),
}

impl ShardFile {
    /// Policy, seed and reason of each guest that failed.
    pub fn failures(&self) -> impl Iterator<Item = (&str, u64, &str)> {
        self.outcomes.iter().filter_map(|it| match &it.end {
            End::Rows(_) => None,
            End::Failure(reason) => Some((it.policy.as_str(), it.seed, reason.as_str())),
        })
    }

    /// Differences between the inputs of two files, as words; empty for shards of one campaign.
    fn differences(&self, other: &ShardFile) -> Vec<String> {
        let (mine, theirs) = (&self.result, &other.result);
        let mut differ = Vec::new();
        let mut compare = |name: &str, one: &dyn fmt::Display, two: &dyn fmt::Display| {
            let (one, two) = (one.to_string(), two.to_string());
            if one != two {
                differ.push(format!("{name} {one} for {two}"));
            }
        };
        compare("experiment", &mine.experiment, &theirs.experiment);
        compare("number of shards", &self.shard.count, &other.shard.count);
        compare("number of guests", &self.guests, &other.guests);
        differ.extend(repeat::differences(mine, theirs));
        if differ.is_empty() && (mine != theirs || self.orders_sha256 != other.orders_sha256) {
            differ.push("seeds, workloads or settings of the experiment".to_owned());
        }
        differ
    }
}

/// Why shards do not make a result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Apart {
    /// They are not of one campaign.
    #[error(
        "{other} is not of the campaign of {first}: {differences}; give shards of one `frontrow-lab run` only"
    )]
    Differ {
        /// Name of the first file.
        first: String,
        /// Name of the file that differs from it.
        other: String,
        /// The inputs that differ, as words.
        differences: String,
    },
    /// Two files are of one shard, and differ.
    #[error("{first} and {other} are both of shard {shard}, and differ: remove one of them")]
    Twice {
        /// The shard of both, as `3/16`.
        shard: String,
        /// Name of the first file.
        first: String,
        /// Name of the second file.
        other: String,
    },
    /// Shards are missing, or have guests without figures.
    #[error("{0}")]
    Incomplete(String),
}

/// Result of the campaign whose shards are in these files, which are named for people.
///
/// # Errors
/// The reason, if the files are not all shards of one campaign with all their figures.
pub fn join(files: Vec<(String, ShardFile)>) -> Result<ResultFile, Apart> {
    let Some((_, first)) = files.first().cloned() else {
        return Err(Apart::Incomplete(
            "there is no shard's file: give the directories of `frontrow-lab run --shard I/N --out DIR`".to_owned(),
        ));
    };
    let shards = by_shard(files)?;
    complete(&first, &shards)?;
    let mut rows = BTreeMap::new();
    for (_, file) in shards.into_values() {
        rows.extend(file.outcomes.into_iter().map(|it| (it.place, it.end)));
    }
    let rows = rows.into_values().flat_map(|end| match end {
        End::Rows(rows) => rows,
        End::Failure(_) => Vec::new(),
    });
    Ok(ResultFile {
        rows: isolation::add(rows.collect()),
        ..first.result
    })
}

type ByShard = BTreeMap<Shard, (String, ShardFile)>;

fn by_shard(files: Vec<(String, ShardFile)>) -> Result<ByShard, Apart> {
    let mut shards = ByShard::new();
    let mut first: Option<(String, ShardFile)> = None;
    for (name, file) in files {
        let (first_name, first) = first.get_or_insert_with(|| (name.clone(), file.clone()));
        let differences = file.differences(first);
        if !differences.is_empty() {
            return Err(Apart::Differ {
                first: first_name.clone(),
                other: name,
                differences: repeat::named(&differences),
            });
        }
        match shards.get(&file.shard) {
            Some((_, same)) if *same == file => {}
            Some((earlier, _)) => {
                return Err(Apart::Twice {
                    shard: file.shard.to_string(),
                    first: earlier.clone(),
                    other: name,
                });
            }
            None => {
                shards.insert(file.shard, (name, file));
            }
        }
    }
    Ok(shards)
}

/// Refuses a campaign that lacks figures; the sentence names the shards to run.
fn complete(first: &ShardFile, shards: &ByShard) -> Result<(), Apart> {
    let mut lacking = Vec::new();
    let mut reasons = Vec::new();
    for shard in first.shard.all() {
        let wanted = (0..first.guests).filter(|place| shard.has(*place));
        let Some((name, file)) = shards.get(&shard) else {
            lacking.push((shard.index + 1).to_string());
            continue;
        };
        let has = file.outcomes.iter().map(|it| it.place);
        let failed = file.failures().count();
        if failed > 0 || !wanted.eq(has) {
            lacking.push((shard.index + 1).to_string());
            reasons.push(format!("{failed} guests of {name} failed"));
        }
    }
    if lacking.is_empty() {
        return Ok(());
    }
    let count = first.shard.count;
    let mut sentence = format!(
        "of {count} shards of {}, these lack figures: {}",
        first.result.experiment,
        lacking.join(",")
    );
    if !reasons.is_empty() {
        sentence += &format!(" ({})", repeat::named(&reasons));
    }
    sentence += &format!("; run them again with --shard I/{count}");
    Err(Apart::Incomplete(sentence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Inputs;
    use proptest::prelude::*;

    fn rows(place: usize) -> Vec<Row> {
        let row = |load: &str, metric: &str, value: f64| Row {
            workload: "gallery".to_owned(),
            load: load.to_owned(),
            policy: format!("p{place}"),
            metric: metric.to_owned(),
            unit: "ms".to_owned(),
            seed: 1,
            value,
            histogram: None,
            series: None,
        };
        vec![row("idle", "total_ms", 0.1 + place as f64 / 3.0)]
    }

    fn campaign(count: usize, guests: usize) -> Vec<(String, ShardFile)> {
        let of_shard = |index: usize| {
            let shard: Shard = format!("{}/{count}", index + 1).parse().unwrap();
            let places = (0..guests).filter(|place| shard.has(*place));
            let outcomes = places.map(|place| Outcome {
                place,
                policy: format!("p{place}"),
                seed: 1,
                end: End::Rows(rows(place)),
            });
            let file = ShardFile {
                shard,
                guests,
                orders_sha256: "d".to_owned(),
                result: ResultFile {
                    experiment: "qasio".to_owned(),
                    kernel: "6.12".to_owned(),
                    device: "emmc".to_owned(),
                    scale: crate::Scale::Demo,
                    stock_default: "mq-deadline".to_owned(),
                    baselines: Vec::new(),
                    bars: Vec::new(),
                    inputs: Inputs::default(),
                    rows: Vec::new(),
                },
                outcomes: outcomes.collect(),
            };
            (format!("s{}", index + 1), file)
        };
        (0..count).map(of_shard).collect()
    }

    fn refusal(files: Vec<(String, ShardFile)>) -> String {
        join(files).unwrap_err().to_string()
    }

    #[test]
    fn a_shard_is_i_of_n() {
        for text in ["0/3", "4/3", "1/0", "1", "/", "a/b", "-1/3", "1/3/3", ""] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert_eq!("3/16".parse::<Shard>().unwrap().to_string(), "3/16");
    }

    proptest! {
        #[test]
        fn each_guest_is_in_one_shard_and_all_shards_give_all_rows(
            count in 1usize..20, guests in 0usize..40, turned in any::<bool>()
        ) {
            let mut files = campaign(count, guests);
            if turned {
                files.reverse();
            }
            let through_json = |(name, file): (String, ShardFile)| {
                let text = serde_json::to_string(&file).unwrap();
                (name, serde_json::from_str(&text).unwrap())
            };
            let joined = join(files.into_iter().map(through_json).collect()).unwrap();
            let expected: Vec<Row> = (0..guests).flat_map(rows).collect();
            prop_assert_eq!(joined.rows, expected);
        }
    }

    #[test]
    fn shards_of_different_campaigns_are_refused_with_the_difference() {
        let changed = |change: &dyn Fn(&mut ShardFile)| {
            let mut files = campaign(3, 7);
            change(&mut files[2].1);
            refusal(files)
        };
        let said = changed(&|it| it.result.device = "sd".to_owned());
        assert!(said.starts_with("s3 is not of the campaign of s1: device sd for emmc;"));
        let said = changed(&|it| {
            let inputs = &mut it.result.inputs.items;
            inputs.insert("qemu".to_owned(), "8.0".to_owned());
        });
        assert!(said.contains("qemu 8.0 for none"), "{said}");
        let said = changed(&|it| it.orders_sha256 = "e".to_owned());
        assert!(said.contains("seeds, workloads or settings"), "{said}");
        let mut files = campaign(3, 7);
        files[1] = campaign(4, 7).remove(1);
        let said = refusal(files);
        assert!(said.contains("number of shards 4 for 3"), "{said}");
    }

    #[test]
    fn what_lacks_is_named_as_an_array_of_jobs_takes_it() {
        assert!(refusal(Vec::new()).contains("--shard I/N"));
        let mut files = campaign(4, 8);
        files[3].1.outcomes[1].end = End::Failure("its kernel panicked".to_owned());
        files.remove(1);
        let said = refusal(files);
        assert_eq!(
            said,
            "of 4 shards of qasio, these lack figures: 2,4 (1 guests of s4 failed); run them again with --shard I/4"
        );
    }

    #[test]
    fn one_shard_twice_is_no_matter_unless_it_differs() {
        let mut files = campaign(2, 4);
        files.push(files[0].clone());
        assert!(join(files.clone()).is_ok());
        files[2].1.outcomes[0].end = End::Rows(Vec::new());
        assert!(matches!(join(files), Err(Apart::Twice { .. })));
    }
}
