//! A diagnosis in the text format of Prometheus, for node_exporter's textfile collector.

use crate::Diagnosis;
use std::collections::BTreeMap;

/// App of the time that others lost for the same cause.
const OTHERS: &str = "others";

/// A family of gauges.
struct Family {
    name: &'static str,
    help: &'static str,
    /// Seconds, by the values of the labels.
    samples: Vec<(Vec<(&'static str, String)>, f64)>,
}

/// All families, as the file has them.
pub fn text(diagnosis: &Diagnosis) -> String {
    let pressure = diagnosis.pressure;
    let of = |resource: &str, ns| (vec![("resource", resource.to_owned())], seconds(ns));
    let families = [
        Family {
            name: "frontrow_lost_seconds",
            help: "Time that tasks of an app waited in the last measurement, by the class of the wait, the culprit and the disk.",
            samples: lost(diagnosis),
        },
        Family {
            name: "frontrow_pressure_seconds",
            help: "Time of the last measurement in which some task lacked a resource.",
            samples: vec![
                of("cpu", pressure.cpu_ns),
                of("io", pressure.io_ns),
                of("memory", pressure.memory_ns),
            ],
        },
        Family {
            name: "frontrow_watched_seconds",
            help: "Length of the last measurement.",
            samples: vec![(Vec::new(), seconds(diagnosis.watched_ns))],
        },
        Family {
            name: "frontrow_failing_disks",
            help: "Findings of disks that report errors or are worn out.",
            samples: vec![(Vec::new(), diagnosis.failing.len() as f64)],
        },
    ];
    families.iter().map(Family::text).collect()
}

/// One sample for each app, class, culprit and disk, whichever verdicts tell of them.
fn lost(diagnosis: &Diagnosis) -> Vec<(Vec<(&'static str, String)>, f64)> {
    let mut sums: BTreeMap<[&str; 4], u64> = BTreeMap::new();
    for it in &diagnosis.verdicts {
        let culprit = it.culprit.as_deref().unwrap_or_default();
        let disk = it.disk.as_deref().unwrap_or_default();
        let others_ns = it.lost_ns.saturating_sub(it.who_ns);
        for (app, ns) in [(it.who.as_str(), it.who_ns), (OTHERS, others_ns)] {
            if ns > 0 {
                *sums.entry([app, it.name, culprit, disk]).or_default() += ns;
            }
        }
    }
    let names = ["app", "class", "culprit", "disk"];
    let sample = |(values, ns): ([&str; 4], u64)| {
        let values = values.map(str::to_owned);
        (names.into_iter().zip(values).collect(), seconds(ns))
    };
    sums.into_iter().map(sample).collect()
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Family {
    fn text(&self) -> String {
        let name = self.name;
        let mut text = format!("# HELP {name} {}\n# TYPE {name} gauge\n", self.help);
        for (labels, value) in &self.samples {
            let labels: Vec<_> = labels
                .iter()
                .map(|(label, value)| format!("{label}=\"{}\"", escaped(value)))
                .collect();
            text += &match labels.is_empty() {
                true => format!("{name} {value}\n"),
                false => format!("{name}{{{}}} {value}\n", labels.join(",")),
            };
        }
        text
    }
}

/// A label's value: the format escapes these three.
fn escaped(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge;
    use crate::judge::tests::{SECOND, seen, wait, writer};
    use iopro::wait::Class;

    fn of(who: &str) -> Diagnosis {
        let waits = vec![wait(who, "fsync", Class::JournalCommit, SECOND)];
        judge(&seen(waits, writer()))
    }

    #[test]
    fn each_app_class_culprit_and_disk_is_there_once() {
        let mut diagnosis = of("app");
        let first = diagnosis.verdicts[0].clone();
        diagnosis.verdicts.push(first);
        let text = text(&diagnosis);
        let mut begins: Vec<_> = text
            .lines()
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(series, _)| series)
            .collect();
        let all = begins.len();
        begins.sort();
        begins.dedup();
        assert_eq!(begins.len(), all, "{text}");
        assert!(text.contains("frontrow_watched_seconds "), "{text}");
        let sample = "frontrow_lost_seconds{app=\"app\",class=\"fsync behind writeback\",culprit=\"dd\",disk=\"sda\"} 2\n";
        assert!(text.contains(sample), "{text}");
    }

    #[test]
    fn no_name_ends_its_label() {
        let text = text(&of("a\"} 1\\"));
        assert!(text.contains("{app=\"a\\\"} 1\\\\\",class="), "{text}");
    }
}
