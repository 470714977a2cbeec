//! What is measured of FastTrack besides response times: with janusd on files in pieces, in queue
//! and device over time, and on a phone's block trace. Times are virtual, the same everywhere.

use crate::harness::{code, keep, lab, output, stderr, succeeds};
use crate::rows::Rows;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

struct Figures(Rows);

impl Figures {
    fn of(arguments: &[&str]) -> Figures {
        Figures::of_seeds("1", arguments)
    }

    fn of_seeds(seeds: &str, arguments: &[&str]) -> Figures {
        let said = succeeds(
            lab(&["run"])
                .args(keep())
                .args(arguments)
                .args(["--seeds", seeds, "--json"]),
        );
        Figures(Rows::of(&said.json()))
    }

    /// One for each seed.
    fn rows(&self, policy: &str, load: &str, metric: &str) -> Vec<&Value> {
        let columns = [("policy", policy), ("load", load), ("metric", metric)];
        self.0.with(&columns)
    }

    /// The median over the seeds.
    fn value(&self, policy: &str, load: &str, metric: &str) -> f64 {
        let rows = self.rows(policy, load, metric).into_iter();
        let mut values: Vec<f64> = rows.map(|row| row["value"].as_f64().unwrap()).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    }
}

#[test]
fn an_album_in_pieces_beside_an_installer_needs_janusd_and_fasttrack() {
    let both = "janusd-l+fastt";
    let policies = format!("stock,{both}");
    // A short run depends on the moment in which an opening comes: the middle of three seeds.
    let rows = Figures::of_seeds(
        "1..3",
        &[
            "fasttrack-janusd",
            "--workload",
            "aged-gallery",
            "--load",
            "idle,reinstall",
            "--policy",
            &policies,
            "--scale",
            "0.4",
        ],
    );
    assert!(rows.value("stock", "reinstall", "dof_l") > 5.0);
    assert_eq!(rows.value(both, "reinstall", "dof_l"), 1.0);
    let [stock_ms, both_ms] =
        ["stock", both].map(|it| rows.value(it, "reinstall", "response_mean_ms"));
    assert!(both_ms < 0.5 * stock_ms, "{both_ms} of {stock_ms} ms");
    // The same steps, against files in pieces alone.
    let [stock, ours] = ["stock", both].map(|it| rows.value(it, "reinstall", "isolation_mean"));
    assert!(stock < 0.7 && ours > 0.9, "{stock}, {ours}");
    assert!(rows.value("stock", "reinstall", "latency_impact_99") > 0.5);
    assert_eq!(rows.value("stock", "reinstall", "background_kept"), 1.0);
}

/// Between the reads of a photo are short gaps, and a long one while it is decoded: a request from
/// behind that comes in there meets the next photo's. The device is new: in an aged one collection,
/// which no scheduler sees, comes in between as well.
#[test]
fn an_album_beside_a_backup_has_the_device_to_itself() {
    let rows = Figures::of(&[
        "fasttrack",
        "--device",
        "emmc:fresh",
        "--workload",
        "gallery",
        "--load",
        "idle,backup",
        "--policy",
        "fastt-",
    ]);
    let [alone_ms, beside_ms] =
        ["idle", "backup"].map(|load| rows.value("fastt-", load, "response_mean_ms"));
    assert!(
        beside_ms < 1.05 * alone_ms,
        "{beside_ms} of {alone_ms} ms alone"
    );
    assert!(rows.value("fastt-", "backup", "background_mb_s") > 100.0);
}

/// ext4 ends the writeback of an extent's pages together: whoever appends to its last page waits for
/// all that its own worker has sent ahead of it.
#[test]
fn an_app_in_front_that_appends_is_in_its_own_way_no_longer_than_under_the_kernels_scheduler() {
    let arguments = ["qasio", "--workload", "m3", "--load", "idle", "--policy"];
    let rows = Figures::of_seeds("1..3", &[&arguments[..], &["mq-deadline,pa+id"]].concat());
    let [kernels_ms, ours_ms] =
        ["mq-deadline", "pa+id"].map(|policy| rows.value(policy, "idle", "total_ms"));
    assert!(ours_ms < 1.25 * kernels_ms, "{ours_ms} of {kernels_ms} ms");
}

/// Nobody is named: what counts is that the backup has used the device for longer.
#[test]
fn a_single_action_beside_a_backup_takes_as_long_as_alone_and_the_backup_goes_on() {
    let rows = Figures::of(&[
        "foreground",
        "--workload",
        "sqlite-rollback",
        "--load",
        "idle,backup",
        "--policy",
        "mq-deadline,frontrow",
    ]);
    let [alone_ms, beside_ms] =
        ["idle", "backup"].map(|load| rows.value("frontrow", load, "total_ms"));
    assert!(
        beside_ms < 1.25 * alone_ms,
        "{beside_ms} of {alone_ms} ms alone"
    );
    let [kernels, ours] =
        ["mq-deadline", "frontrow"].map(|policy| rows.value(policy, "backup", "background_mb_s"));
    assert!(ours > 0.1 * kernels, "{ours} of {kernels} MB/s left");
}

/// Its writes are small, and the time is in its flushes.
#[test]
fn a_database_behind_has_its_share_of_the_devices_time_and_no_more() {
    let arguments = [
        "foreground",
        "--workload",
        "launch",
        "--load",
        "idle,database",
    ];
    let options = ["--policy", "fastt", "--scale", "0.02"];
    let rows = Figures::of(&[&arguments[..], &options].concat());
    let value = |load, metric| rows.value("fastt", load, metric);
    let [alone_ms, beside_ms] = ["idle", "database"].map(|load| value(load, "total_ms"));
    assert!(
        beside_ms < 1.5 * alone_ms,
        "{beside_ms} of {alone_ms} ms alone"
    );
    // Of the 0.94 that it makes beside the same app under mq-deadline.
    assert!(value("database", "background_mb_s") > 0.1);
}

#[test]
fn where_no_module_can_be_loaded_the_kernels_own_means_serve_the_app_in_front() {
    let policies = "stock,no-module";
    let rows = Figures::of(&[
        "fasttrack",
        "--workload",
        "gallery",
        "--load",
        "backup",
        "--policy",
        policies,
    ]);
    let value = |policy, metric| rows.value(policy, "backup", metric);
    let [stock_ms, ours_ms] = ["stock", "no-module"].map(|it| value(it, "response_mean_ms"));
    assert!(ours_ms < 0.75 * stock_ms, "{ours_ms} of {stock_ms} ms");
    assert!(value("no-module", "background_kept") > 0.5);
}

#[test]
fn what_lies_in_queue_and_device_is_seen_over_time_and_told_apart() {
    let directory = tempfile::tempdir().unwrap();
    let rows = Figures::of(&[
        "fasttrack-snapshot",
        "--workload",
        "gallery",
        "--load",
        "reinstall-recorded",
        "--policy",
        "fastt",
        "--scale",
        "0.1",
        "--out",
        directory.path().to_str().unwrap(),
    ]);
    for owner in ["foreground", "background"] {
        for what in ["queued", "in_device", "device_mb_s"] {
            let metric = format!("{owner}_{what}");
            let row = rows.rows("fastt", "reinstall-recorded", &metric)[0];
            let values = row["series"]["values"].as_array().unwrap();
            // Three openings, a second apart, of 10 ms each.
            assert!(values.len() > 200, "{metric}: {}", values.len());
            assert!(row["value"].as_f64().unwrap() > 0.0, "{metric}");
        }
    }
    let page = std::fs::read_to_string(directory.path().join("report.html")).unwrap();
    assert!(page.contains("What lay in the queue and in the device"));
}

/// The game reads, the kernel writes behind it, and long before that somebody did something else.
fn synthetic(path: &Path) {
    let mut text = "proces,device,rw_flag,sector,size,timestamp\n".to_owned();
    text += "init-1,1,R,0,8,100.0\n";
    for number in 0..40 {
        let time = 522_500.0 + f64::from(number) / 10.0;
        let _ = writeln!(
            text,
            "RenderThread-9,1,R,{},32,{time:.6}",
            4096 + number * 64
        );
        let _ = writeln!(
            text,
            "kworker/u17:2-7,1,W,{},256,{time:.6}",
            90_000 + number * 256
        );
    }
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_phones_trace_is_played_as_foreground_and_background() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.csv");
    synthetic(&path);
    let trace = path.to_str().unwrap();
    let rows = Figures::of(&["traces", "--policy", "fastt", "--trace", trace]);
    for (load, behind) in [("idle", None), ("behind", Some(40.0))] {
        assert_eq!(rows.value("fastt", load, "front_read_operations"), 40.0);
        assert!(rows.value("fastt", load, "front_read_mean_ms") > 0.0);
        let written = rows
            .0
            .all()
            .iter()
            .find(|row| row["load"] == load && row["metric"] == "behind_write_operations");
        assert_eq!(written.map(|row| row["value"].as_f64().unwrap()), behind);
    }
}

#[test]
fn without_its_trace_an_experiment_says_where_it_is_to_be_had() {
    let refused = |arguments: &[&str], words: &str| {
        let output = output(lab(&["run"]).args(arguments));
        assert_eq!(code(&output), 2, "{output:?}");
        let said = stderr(&output);
        assert!(said.contains(words), "{said}");
    };
    refused(&["traces"], "get it from the set MobileBlockIOTraces");
    refused(&["traces", "--trace", "/nonexistent"], "/nonexistent");
    refused(&["smoke", "--trace", "/etc/hostname"], "omit --trace");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    std::fs::write(&path, "not a trace\n").unwrap();
    refused(&["traces", "--trace", path.to_str().unwrap()], "--format");
    let early = "proces,device,rw_flag,sector,size,timestamp\na-1,1,R,0,8,1.0\n";
    std::fs::write(&path, early).unwrap();
    refused(
        &["traces", "--trace", path.to_str().unwrap()],
        "nothing happens",
    );
}
