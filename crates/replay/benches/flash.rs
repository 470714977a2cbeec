//! Pages of 4 KB that the flash core processes per second of CPU time. It plays each trace on the
//! command line, or random writes and reads without one.
//!
//! ```text
//! cargo bench -p replay -- /path/to/trace.csv.gz …
//! ```

#[path = "../../launch/benches/cpu/mod.rs"]
mod cpu;

use cpu::cpu_s;
use replay::{Config, Fill, Kind, Operation, Pace, Trace, on_flash};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The profile `experiments/devices/ufs.toml`: eight dies with realistic times.
const UFS: [(&str, u64); 18] = [
    ("channels", 8),
    ("dies_per_channel", 1),
    ("block_pages", 256),
    ("row_pages", 4),
    ("cache_kib", 512),
    ("queue_depth", 32),
    ("request_kib", 512),
    ("policy", 0),
    ("read_ns", 60_000),
    ("program_ns", 830_000),
    ("erase_ns", 3_000_000),
    ("channel_mb_s", 400),
    ("link_mb_s", 450),
    ("read_command_ns", 50_000),
    ("write_command_ns", 65_000),
    ("flush_command_ns", 50_000),
    ("discard_command_ns", 100_000),
    ("response_ns", 105_000),
];

const FILL: Fill = Fill {
    fill_percent: 80,
    spare_percent: 7,
};

/// Number of repetitions of each trace.
const LOOPS: u32 = 3;

fn main() {
    // Cargo adds an argument of its own.
    let paths: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| it != "--bench")
        .collect();
    if paths.is_empty() {
        measure("random 4 KB writes and reads", &random());
    }
    for path in paths {
        match read(Path::new(&path)) {
            Ok(recording) => measure(&path, &recording.into_blocks()),
            Err(error) => eprintln!("{error}"),
        }
    }
}

fn read(path: &Path) -> Result<replay::Recording, replay::Error> {
    replay::read(replay::Input::open(path)?, &replay::Options::default())
}

/// Half a million single pages of a gigabyte, with two writes for each read.
fn random() -> Trace {
    let mut state = 1u64;
    let mut operations = Vec::new();
    for at in 0..500_000 {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        operations.push(Operation {
            time_ns: at,
            kind: if at % 3 == 0 { Kind::Read } else { Kind::Write },
            offset_bytes: (state >> 40) % 262_144 * 4096,
            size_bytes: 4096,
            lane: 0,
        });
    }
    Trace::new(operations)
}

fn measure(name: &str, trace: &Trace) {
    let parameters = UFS.map(|(name, value)| (name.to_owned(), value));
    let parameters = BTreeMap::from(parameters);
    let config = Config::of_profile(&parameters).expect("the profile's names are known");
    let begun_s = cpu_s();
    let stop = AtomicBool::new(false);
    let pace = Pace::Closed { depth: 32 };
    let done = on_flash(trace, pace, LOOPS, &config, FILL, &mut |_| (), &stop)
        .expect("the trace can be played");
    let took_s = cpu_s() - begun_s;
    println!(
        "{name}: {:.2} million pages a CPU second; {} page operations, write amplification {:.3}",
        done.page_operations as f64 / took_s / 1e6,
        done.page_operations,
        done.write_amplification.unwrap_or(0.0),
    );
}
