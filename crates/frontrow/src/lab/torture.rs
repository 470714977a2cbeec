//! `frontrow-lab torture`.

use super::kernel::Choice;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::print_text;
use ::lab::{Cache, Sources};
use ::torture::TRIALS;
use record::Row;
use record::policy::FRONTROW;

/// Metric of the trial `drivers`.
const MEAN: &str = "fsync_mean_ms";
const WORST: &str = "fsync_worst_ms";
const USED: &str = "disk_used";

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
    let release = request.kernel.release().to_owned();
    let begins = |name: &str| eprintln!("{release}: {name}");
    let rows = ::lab::torture(&cache, &Sources::here(), &request, &begins, &stop)?;
    match rows.is_empty() {
        true => Ok(()),
        false => print_text(&table(&rows)),
    }
}

/// Table of the trials' figures in Markdown: frontrow's median, and its ratio to the median of the
/// best other scheduler.
fn table(rows: &[Row]) -> String {
    let mut text =
        "| disk | fs | fsync under frontrow, mean / worst ms | of the best other's mean \
        | of its worst | disk used, of its rate | under the best other | best other |\n\
        |---|---|---|---|---|---|---|---|\n"
            .to_owned();
    let mut places: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        let place = (row.workload.as_str(), row.load.as_str());
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for (disk, fs) in places {
        let here = rows
            .iter()
            .filter(|it| it.workload == disk && it.load == fs);
        let median = |policy: &str, metric: &str| {
            let of = here
                .clone()
                .filter(|it| it.policy == policy && it.metric == metric);
            let mut values: Vec<f64> = of.map(|it| it.value).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        let others = here.clone().map(|it| it.policy.as_str());
        let best = others
            .filter(|it| *it != FRONTROW)
            .min_by(|a, b| median(a, MEAN).total_cmp(&median(b, MEAN)))
            .unwrap_or_default();
        let (mean, worst) = (median(FRONTROW, MEAN), median(FRONTROW, WORST));
        text += &format!(
            "| {disk} | {fs} | {mean:.0} / {worst:.0} | {:.2} | {:.2} | {:.2} | {:.2} | {best} |\n",
            mean / median(best, MEAN),
            worst / median(best, WORST),
            median(FRONTROW, USED),
            median(best, USED),
        );
    }
    text
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

    #[test]
    fn a_disk_is_compared_with_the_best_other_scheduler() {
        let mut rows = Vec::new();
        for (policy, mean_ms, worst_ms, used) in [
            ("none", 400.0, 500.0, 0.9),
            ("bfq", 200.0, 800.0, 0.6),
            (FRONTROW, 20.0, 80.0, 0.75),
        ] {
            rows.push(row(policy, MEAN, mean_ms));
            rows.push(row(policy, WORST, worst_ms));
            rows.push(row(policy, USED, used));
        }
        let text = table(&rows);
        assert_eq!(
            text.lines().last(),
            Some("| NVMe | ext4 | 20 / 80 | 0.10 | 0.10 | 0.75 | 0.60 | bfq |")
        );
    }
}
