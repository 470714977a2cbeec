//! `frontrow-lab torture`.

use super::kernel::Choice;
use super::tell_that_it_was_kept;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::print_text;
use ::lab::{Cache, Keep, Sources};
use ::torture::TRIALS;
use record::Row;
use record::policy::FRONTROW;

/// Metrics of the trials on disks.
const MEAN: &str = "fsync_mean_ms";
const WORST: &str = "fsync_worst_ms";
const USED: &str = "disk_used";
/// Parts of the time in which the disk did nothing for the writer.
const LOST: [&str; 3] = ["idle_while_waiting", "flushing", "without_requests"];

const HEADER: &str = "\
| disk | fs | fsync under frontrow, mean / worst ms | of the best other's mean | of its worst \
| disk used, of its rate | under the best other | idle beside a waiter / flushing / without requests \
| best other |
|---|---|---|---|---|---|---|---|---|
";

/// Test the kernel modules under load, with changes, faults and races
#[derive(clap::Args)]
pub struct Torture {
    /// Run only these trials
    trials: Vec<String>,
    #[command(flatten)]
    kernel: Choice,
    /// Multiple of each trial's number of repetitions
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Seed of random choices
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Keep what guests of exact time say, and take what was kept if all that goes into one is the same
    #[arg(long)]
    keep: bool,
    /// List all trials, and run none
    #[arg(long)]
    list: bool,
}

/// Runs the subcommand; names each trial on stderr.
pub fn run(args: Torture) -> Result<(), Failure> {
    if args.list {
        let lines = TRIALS.iter();
        let lines = lines.map(|trial| format!("{:12} {}\n", trial.name, trial.title));
        return print_text(&lines.collect::<String>());
    }
    for name in &args.trials {
        ::torture::find(name).map_err(|sentence| Failure::new(Exit::Usage, sentence))?;
    }
    let all = || TRIALS.iter().map(|it| it.name.to_owned()).collect();
    let stop = catch_signals()?;
    let cache = Cache::of_user()?;
    let request = ::lab::Torture {
        kernel: args.kernel.find(&cache)?,
        trials: match args.trials.is_empty() {
            true => all(),
            false => args.trials,
        },
        rounds: args.rounds,
        seed: args.seed,
    };
    let keep = Keep::new(&cache, &tell_that_it_was_kept);
    let release = request.kernel.release().to_owned();
    let begins = |name: &str| eprintln!("{release}: {name}");
    let rows = ::lab::torture(
        &cache,
        &Sources::here(),
        &request,
        args.keep.then_some(&keep),
        &begins,
        &stop,
    )?;
    match rows.is_empty() {
        true => Ok(()),
        false => print_text(&table(&rows)),
    }
}

/// Table of the trials' figures in Markdown. Each is a median over the rounds, with the worst round in
/// brackets, and compares frontrow with the scheduler whose mean is the least of the others'.
fn table(rows: &[Row]) -> String {
    let mut text = HEADER.to_owned();
    let mut places: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        let place = (row.workload.as_str(), row.load.as_str());
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for (disk, fs) in places {
        let here = rows.iter();
        let here = here.filter(|it| it.workload == disk && it.load == fs);
        text += &line(disk, fs, &here.collect::<Vec<_>>());
    }
    text
}

fn line(disk: &str, fs: &str, rows: &[&Row]) -> String {
    // In the order of the rounds.
    let values = |policy: &str, metric: &str| -> Vec<f64> {
        let of = rows.iter();
        let of = of.filter(|it| it.policy == policy && it.metric == metric);
        of.map(|it| it.value).collect()
    };
    let others = rows.iter().map(|it| it.policy.as_str());
    let best = others
        .filter(|it| *it != FRONTROW)
        .min_by(|a, b| median(&values(a, MEAN)).total_cmp(&median(&values(b, MEAN))))
        .unwrap_or_default();
    let ratios = |metric: &str| -> Vec<f64> {
        let (ours, theirs) = (values(FRONTROW, metric), values(best, metric));
        ours.iter().zip(theirs).map(|(a, b)| a / b).collect()
    };
    let lost = LOST.map(|metric| format!("{:.2}", median(&values(FRONTROW, metric))));
    format!(
        "| {disk} | {fs} | {} / {} | {} | {} | {} | {} | {} | {best} |\n",
        with_most(&values(FRONTROW, MEAN), 0),
        with_most(&values(FRONTROW, WORST), 0),
        with_most(&ratios(MEAN), 2),
        with_most(&ratios(WORST), 2),
        with(&values(FRONTROW, USED), f64::min, 2),
        with(&values(best, USED), f64::min, 2),
        lost.join(" / "),
    )
}

fn with_most(values: &[f64], digits: usize) -> String {
    with(values, f64::max, digits)
}

/// The median, and the worst in brackets where there are several.
fn with(values: &[f64], worst: fn(f64, f64) -> f64, digits: usize) -> String {
    let middle = median(values);
    match values {
        [_] | [] => format!("{middle:.digits$}"),
        _ => {
            let worst = values.iter().copied().fold(middle, worst);
            format!("{middle:.digits$} ({worst:.digits$})")
        }
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(policy: &str, metric: &str, value: f64) -> Row {
        Row {
            workload: "NVMe".to_owned(),
            load: "ext4".to_owned(),
            policy: policy.to_owned(),
            metric: metric.to_owned(),
            unit: "1".to_owned(),
            seed: 1,
            value,
            histogram: None,
            series: None,
        }
    }

    /// Rows of one round: each policy's mean, worst and used.
    fn round(figures: [(&'static str, [f64; 3]); 3]) -> Vec<Row> {
        let metrics = [MEAN, WORST, USED];
        let of = |(policy, values): (&'static str, [f64; 3])| {
            let pairs = metrics.into_iter().zip(values);
            pairs.map(move |(metric, value)| row(policy, metric, value))
        };
        let lost = LOST.map(|metric| row(FRONTROW, metric, 0.125));
        figures.into_iter().flat_map(of).chain(lost).collect()
    }

    const FIRST: [(&str, [f64; 3]); 3] = [
        ("none", [400.0, 500.0, 0.9]),
        ("bfq", [200.0, 800.0, 0.6]),
        (FRONTROW, [20.0, 80.0, 0.75]),
    ];

    #[test]
    fn a_disk_is_compared_with_the_best_other_scheduler() {
        let text = table(&round(FIRST));
        assert_eq!(
            text.lines().last(),
            Some(
                "| NVMe | ext4 | 20 / 80 | 0.10 | 0.10 | 0.75 | 0.60 | 0.12 / 0.12 / 0.12 | bfq |"
            )
        );
    }

    #[test]
    fn of_several_rounds_there_is_the_median_and_the_worst() {
        let with_ours = |ours| [FIRST[0], FIRST[1], (FRONTROW, ours)];
        let rounds = [
            round(with_ours([40.0, 80.0, 0.5])),
            round(FIRST),
            round(with_ours([10.0, 160.0, 0.8])),
        ];
        let text = table(&rounds.concat());
        assert_eq!(
            text.lines().last(),
            Some(
                "| NVMe | ext4 | 20 (40) / 80 (160) | 0.10 (0.20) | 0.10 (0.20) | 0.75 (0.50) \
                 | 0.60 (0.60) | 0.12 / 0.12 / 0.12 | bfq |"
            )
        );
    }
}
