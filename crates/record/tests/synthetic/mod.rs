//! An invented result in the form of the experiment `qasio`. Its numbers were not measured; they
//! only look like latencies.

use hdrhistogram::Histogram as Recorder;
use record::{Histogram, Inputs, ResultFile, Row, Scale};

pub const POLICIES: [&str; 9] = [
    "none",
    "mq-deadline",
    "kyber",
    "bfq",
    "frontrow",
    "frontrow:none",
    "frontrow:data",
    "frontrow:meta",
    "frontrow:discard",
];

const OPERATIONS: [(&str, &[(&str, f64)]); 10] = [
    (
        "m1",
        &[
            ("creat", 0.09),
            ("write", 0.02),
            ("fsync", 2.4),
            ("close", 0.003),
        ],
    ),
    ("m2", &[("creat", 0.1), ("write", 0.9), ("fsync", 24.0)]),
    ("m3", &[("write", 0.006)]),
    ("m4", &[("truncate", 0.3), ("write", 1.7)]),
    ("m5", &[("fsync", 2.6)]),
    ("a", &[("launch", 310.0)]),
    ("b", &[("shot", 40.0)]),
    ("c", &[("install", 2100.0)]),
    ("sqlite-wal", &[("insert", 1.2), ("commit", 1.1)]),
    ("sqlite-rollback", &[("insert", 6.2), ("commit", 6.0)]),
];

/// A generator whose sequence is the same on all machines.
struct Chance(u64);

impl Chance {
    /// A uniform number in (0, 1).
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as f64 + 0.5) / (1u64 << 31) as f64
    }
}

/// Slowdown against unloaded, and weight of the tail.
fn slowness(policy: &str, loaded: bool) -> (f64, f64) {
    if !loaded {
        return if policy == "bfq" {
            (1.15, 0.4)
        } else {
            (1.0, 0.3)
        };
    }
    match policy {
        "none" => (24.0, 1.1),
        "mq-deadline" => (38.0, 1.4),
        "kyber" => (3.1, 1.0),
        "bfq" => (9.0, 1.2),
        "frontrow" => (1.06, 0.4),
        "frontrow:none" => (14.0, 1.2),
        "frontrow:meta" => (4.0, 0.9),
        _ => (9.0, 1.0),
    }
}

/// The invented result under these policies and seeds.
pub fn result(policies: &[&str], seeds: &[u64]) -> ResultFile {
    let mut rows = Vec::new();
    for policy in policies {
        for seed in seeds {
            guest(policy, *seed, &mut rows);
        }
    }
    let items = [
        ("kernel", "linux-image-6.12.0-cloud-amd64 6.12.0-1"),
        ("qemu", "QEMU emulator version 7.2.0"),
        (
            "image_sha256",
            "0000000000000000000000000000000000000000000000000000000000000000",
        ),
    ];
    ResultFile {
        experiment: "qasio".to_owned(),
        kernel: "6.12.0-synthetic-amd64".to_owned(),
        device: "emmc".to_owned(),
        scale: Scale::Demo,
        stock_default: "mq-deadline".to_owned(),
        baselines: Vec::new(),
        bars: Vec::new(),
        inputs: Inputs {
            items: items
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        },
        rows,
    }
}

fn guest(policy: &str, seed: u64, rows: &mut Vec<Row>) {
    for (workload, operations) in OPERATIONS {
        for load in [
            "idle",
            if workload == "m5" {
                "rewrite"
            } else {
                "writer"
            },
        ] {
            let mut run = Measuring {
                workload,
                load,
                policy,
                seed,
                rows,
            };
            run.operations(operations);
        }
    }
}

struct Measuring<'a> {
    workload: &'a str,
    load: &'a str,
    policy: &'a str,
    seed: u64,
    rows: &'a mut Vec<Row>,
}

impl Measuring<'_> {
    fn operations(&mut self, operations: &[(&str, f64)]) {
        let name = format!("{}{}{}{}", self.workload, self.load, self.policy, self.seed);
        let mut chance = Chance(
            name.bytes()
                .fold(7_u64, |hash, byte| hash.wrapping_mul(31) + u64::from(byte)),
        );
        let loaded = self.load != "idle";
        let (factor, tail) = slowness(self.policy, loaded);
        let shift = 0.9 + 0.2 * chance.next();
        let mut total_ms = 0.0;
        for (operation, unloaded_ms) in operations {
            let mut recorder = Recorder::<u64>::new(2).unwrap();
            for _ in 0..200 {
                let bell: f64 = (0..12).map(|_| chance.next()).sum::<f64>() - 6.0;
                let stalled = chance.next() < if loaded { 0.4 } else { 0.02 };
                let slow = if stalled { factor * shift } else { 1.0 };
                let latency_ms = unloaded_ms * slow * (tail * bell).exp();
                recorder.record((latency_ms * 1e6) as u64).unwrap();
            }
            total_ms += recorder.mean() * 200.0 / 1e6;
            self.row(
                &format!("{operation}_mean_ms"),
                "ms",
                recorder.mean() / 1e6,
                Some(&recorder),
            );
            let p99_ms = recorder.value_at_quantile(0.99) as f64 / 1e6;
            self.row(&format!("{operation}_p99_ms"), "ms", p99_ms, None);
            self.row(
                &format!("{operation}_max_ms"),
                "ms",
                recorder.max() as f64 / 1e6,
                None,
            );
        }
        self.row("total_ms", "ms", total_ms, None);
        if self.workload == "m3" {
            let throttled_ms = if loaded { total_ms * 0.2 } else { 0.0 };
            self.row("throttled_ms", "ms", throttled_ms, None);
        }
        if self.workload == "b" {
            self.row("shots", "1", (9000.0 / total_ms * 200.0).floor(), None);
        }
        if self.workload == "m1" && loaded {
            self.row("background_completion_ms", "ms", 9000.0 * shift, None);
        }
        if self.policy.starts_with("frontrow") && loaded {
            self.counters(factor, shift);
        }
    }

    fn counters(&mut self, factor: f64, shift: f64) {
        for (dependency, waits) in [
            ("data", 18.0),
            ("meta", 160.0),
            ("discard", 0.0),
            ("journal", 90.0),
        ] {
            let promoted = self.policy == "frontrow" || self.policy.ends_with(dependency);
            let boosted: f64 = if promoted { waits * 0.8 } else { 0.0 };
            let counts = [
                ("waits", "1", waits),
                ("boosted", "1", boosted.floor()),
                ("in_device", "1", waits * 0.1),
                ("pending_matched", "1", (boosted * 0.1).floor()),
                ("missed", "1", waits * 0.02),
                ("wait_ms", "ms", waits * factor * shift),
            ];
            for (count, unit, value) in counts {
                self.row(&format!("{dependency}_{count}"), unit, value, None);
            }
        }
    }

    fn row(&mut self, metric: &str, unit: &str, value: f64, recorder: Option<&Recorder<u64>>) {
        self.rows.push(Row {
            workload: self.workload.to_owned(),
            load: self.load.to_owned(),
            policy: self.policy.to_owned(),
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            seed: self.seed,
            value,
            histogram: recorder.map(Histogram::from),
            series: None,
        });
    }
}
