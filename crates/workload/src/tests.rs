//! Tests of each workload at a tiny size in a temporary directory.

use super::*;
use record::workload::WORKLOADS;

static GO: AtomicBool = AtomicBool::new(false);

#[derive(Default)]
struct Calls(Vec<&'static str>);

impl Observer for Calls {
    fn before(&mut self) {
        self.0.push("before");
    }

    fn after(&mut self) {
        self.0.push("after");
    }
}

fn tiny(workload: &str, load: &str, dir: &Path) -> Result<Vec<Measurement>, Error> {
    tiny_stoppable(workload, load, dir, &GO)
}

fn tiny_stoppable(
    workload: &str,
    load: &str,
    dir: &Path,
    stop: &AtomicBool,
) -> Result<Vec<Measurement>, Error> {
    tiny_observed(workload, load, dir, stop, &mut ())
}

fn tiny_observed(
    workload: &str,
    load: &str,
    dir: &Path,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<Vec<Measurement>, Error> {
    let run = Run::named(workload, load)?;
    let mut request = RunRequest {
        run: &run,
        dir,
        device: None,
        seed: 1,
        scale: Scale::Demo,
        loader: Loader::Demand,
        upkeep: Upkeep::NoDefrag,
        tracefs: None,
        background_cgroups: &[],
        screen_cgroups: &[],
        background_is_idle_class: false,
        stop,
        observer,
    };
    run_sized(&mut request, Sizes::tiny())
}

/// Runs a workload alone, which does an operation so many times.
fn does(workload: &str, operation: &str, times: u64) -> Vec<Measurement> {
    let directory = tempfile::tempdir().unwrap();
    let figures = tiny(workload, "idle", directory.path()).unwrap();
    assert_eq!(count(&figures, operation), times, "{workload} {operation}");
    figures
}

fn count(figures: &[Measurement], operation: &str) -> u64 {
    let metric = format!("{operation}_mean_ms");
    let row = figures.iter().find(|row| row.metric == metric);
    let histogram = row
        .unwrap_or_else(|| panic!("no {metric}"))
        .histogram
        .as_ref();
    histogram
        .unwrap()
        .buckets_ns
        .iter()
        .map(|(_, count)| count)
        .sum()
}

#[test]
fn every_operation_of_the_microbenchmarks_is_counted() {
    for (workload, operation, times) in [
        ("m1", "creat", 3),
        ("m1", "fsync", 3),
        ("m2", "write", 2),
        ("m3", "write", 16),
        ("m4", "truncate", 2),
        ("m5", "fsync", 2),
    ] {
        let figures = does(workload, operation, times);
        assert_eq!(figures[0].metric, "total_ms");
    }
}

#[test]
fn the_load_runs_beside_the_foreground_and_is_gone_afterwards() {
    for load in ["writer", "rewrite", "random"] {
        let directory = tempfile::tempdir().unwrap();
        let figures = tiny("m1", load, directory.path()).unwrap();
        assert!(figures.iter().any(|row| row.metric == "background_mb_s"));
        assert!(!directory.path().join("background").exists());
    }
}

#[test]
fn m5_meets_another_round_of_the_rewriter_each_time() {
    let directory = tempfile::tempdir().unwrap();
    let figures = tiny("m5", "rewrite", directory.path()).unwrap();
    assert_eq!(count(&figures, "creat"), 2);
}

#[test]
fn apps_on_the_screen_read_at_once_and_leave_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let figures = tiny("split-view", "idle", directory.path()).unwrap();
    let value = |name: &str| figures.iter().find(|it| it.metric == name).unwrap().value;
    let shares = [100, 60, 30].map(|it| value(&format!("view_{it}_share")));
    assert!(shares.iter().all(|it| *it > 0.0), "{shares:?}");
    assert!(
        (shares.iter().sum::<f64>() - 1.0).abs() < 1e-9,
        "{shares:?}"
    );
    for percent in [100, 60, 30] {
        let read_ms = |what: &str| value(&format!("view_{percent}_read_{what}_ms"));
        assert!(read_ms("mean") <= read_ms("max") && read_ms("mean") > 0.0);
        let path = directory.path().join(format!("foreground/view-{percent}"));
        assert!(!path.exists());
    }
}

/// It would wait for one for an hour.
#[test]
fn m5_awaits_no_round_of_a_load_that_has_none() {
    let directory = tempfile::tempdir().unwrap();
    let figures = tiny("m5", "reinstall", directory.path()).unwrap();
    assert_eq!(count(&figures, "creat"), 2);
}

#[test]
fn the_observer_is_told_once_of_each_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut calls = Calls::default();
    tiny_observed("m1", "idle", directory.path(), &GO, &mut calls).unwrap();
    assert_eq!(calls.0, ["before", "after"]);
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let directory = tempfile::tempdir().unwrap();
    let error = tiny("m9", "idle", directory.path())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("'m9'") && error.contains("m1, m2"),
        "{error}"
    );
    let error = tiny("m1", "reader", directory.path())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("'reader'") && error.contains("idle, writer"),
        "{error}"
    );
}

#[test]
fn a_missing_directory_is_named() {
    let error = tiny("m1", "idle", Path::new("/nonexistent/here")).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/here"), "{error}");
}

#[test]
fn a_stop_ends_the_run_and_the_load() {
    let directory = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(true);
    let outcome = tiny_stoppable("m1", "writer", directory.path(), &stop);
    assert!(matches!(outcome, Err(Error::Interrupted)));
    assert!(!directory.path().join("background").exists());
}

#[test]
fn direct_workloads_give_one_rate_or_cost_each() {
    for entry in WORKLOADS.iter().filter(|it| surface(it) == Surface::Device) {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let figures = tiny(entry.name, "idle", directory.path()).unwrap();
        let figure = figures.last().unwrap();
        let expected = match entry.name {
            name if name.starts_with("overhead") => "instructions_per_io",
            "calibrate-seq-read" | "calibrate-rand-read" => "1024k_read_mb_s",
            name if name.starts_with("calibrate") => "1024k_write_mb_s",
            name if name.contains("read") => "read_mb_s",
            _ => "write_mb_s",
        };
        assert_eq!(figure.metric, expected, "{}", entry.name);
        assert!(figure.value > 0.0);
    }
}

#[test]
fn the_storage_is_measured_by_the_size_of_requests_beside_a_load_too() {
    for (workload, load, size) in [
        ("storage-seq-read", "idle", "1024k_read"),
        ("storage-rand-read", "writer", "4k_read"),
        ("storage-seq-write", "idle", "64k_write"),
        ("storage-rand-write", "random", "4k_write"),
    ] {
        let directory = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let figures = tiny(workload, load, directory.path()).unwrap();
        let value = |metric: &str| figures.iter().find(|row| row.metric == metric);
        for metric in ["mb_s", "mean_ms", "p99_ms", "max_ms"] {
            let metric = format!("{size}_{metric}");
            let row = value(&metric).unwrap_or_else(|| panic!("{workload}: no {metric}"));
            assert!(row.value > 0.0, "{workload} {metric}");
        }
    }
}

#[test]
fn direct_workloads_refuse_a_load() {
    let directory = tempfile::tempdir().unwrap();
    let error = tiny("seq-read-1", "writer", directory.path()).unwrap_err();
    assert!(error.to_string().contains("choose idle"), "{error}");
}

#[test]
fn the_scenarios_count_what_the_user_sees() {
    for (workload, operation, times) in [
        ("a", "launch", 2),
        ("a", "rename", 6),
        ("c", "install", 2),
        ("sqlite-wal", "insert", 3),
        ("sqlite-rollback", "bulk_update", 10),
        ("sqlite-rollback", "commit", 4),
    ] {
        does(workload, operation, times);
    }
}

#[test]
fn the_camera_counts_its_shots_and_its_thumbnail_maker_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let figures = tiny("b", "idle", directory.path()).unwrap();
    let shots = figures.iter().find(|row| row.metric == "shots").unwrap();
    assert_eq!(shots.value as u64, count(&figures, "shot"));
    assert!(!directory.path().join("foreground/thumbnails").exists());
    let longest = figures
        .iter()
        .find(|row| row.metric == "thumbnail_write_max_ms");
    assert!(longest.unwrap().value > 0.0);
}

#[test]
fn the_background_has_a_price() {
    let directory = tempfile::tempdir().unwrap();
    let figures = tiny("completion", "writer", directory.path()).unwrap();
    assert_eq!(figures[0].metric, "background_completion_ms");
    assert!(figures[0].value > 0.0);
    let directory = tempfile::tempdir().unwrap();
    let figures = tiny("share", "writer", directory.path()).unwrap();
    assert_eq!(figures[0].metric, "background_share");
}

#[test]
fn the_background_does_its_work_once_beside_a_foreground_that_does_its_own() {
    for load in ["reinstall", "backup"] {
        for (workload, openings) in [("third", 2), ("undisturbed", 0)] {
            let directory = tempfile::tempdir().unwrap();
            let figures = tiny(workload, load, directory.path()).unwrap();
            let value = |metric: &str| {
                let mut rows = figures.iter();
                rows.find(|row| row.metric == metric).unwrap().value
            };
            let completion_ms = value("background_completion_ms");
            assert!(completion_ms > 0.0);
            assert!(value("background_stall_ms") <= completion_ms);
            match openings {
                0 => assert!(
                    figures
                        .iter()
                        .all(|row| !row.metric.starts_with("response"))
                ),
                _ => assert_eq!(count(&figures, "response"), openings),
            }
        }
    }
}

#[test]
fn the_loads_that_sync_are_measured_and_leave_nothing() {
    for load in ["database", "unpack", "flat-out"] {
        let directory = tempfile::tempdir().unwrap();
        let figures = tiny("m1", load, directory.path()).unwrap();
        // The load's progress beside three creations depends on the disk.
        let mut figures = figures.iter();
        assert!(figures.any(|row| row.metric == "background_mb_s"), "{load}");
        assert!(!directory.path().join("background").exists(), "{load}");
    }
}

#[test]
fn each_background_app_is_a_process_with_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let figures = tiny("gallery", "apps-3", directory.path()).unwrap();
    assert!(figures.iter().any(|row| row.metric == "background_mb_s"));
    assert_eq!(count(&figures, "response"), 2);
    let left = std::fs::read_dir(directory.path()).unwrap();
    let names = left.map(|it| it.unwrap().file_name().into_string().unwrap());
    assert!(
        names
            .collect::<Vec<_>>()
            .iter()
            .all(|it| !it.starts_with("background"))
    );
}

#[test]
fn work_without_an_end_or_of_many_has_no_price() {
    for (workload, load) in [
        ("third", "update"),
        ("undisturbed", "apps-2"),
        ("completion", "video"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let error = tiny(workload, load, directory.path()).unwrap_err();
        assert!(error.to_string().contains("work ends"), "{error}");
    }
}

#[test]
fn the_price_of_nothing_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let error = tiny("completion", "idle", directory.path()).unwrap_err();
    assert!(error.to_string().contains("choose one"), "{error}");
}

#[test]
fn a_full_disk_is_one_clear_sentence() {
    let mut meter = meter::Meter::new(&GO);
    let outcome = micro::write_durably(&mut meter, Path::new("/dev/full"), &[0; 4096]);
    let error = outcome.unwrap_err().to_string();
    assert_eq!(
        error,
        "no space left for /dev/full: free some, or choose a smaller scale"
    );
}

#[test]
fn each_workload_measures_what_the_table_of_metrics_has() {
    // Aged apps rest for seconds before they are opened, and are otherwise the others. Direct requests
    // need a disk.
    let left_out = |it: &Workload| it.name.starts_with("aged-") || it.name.starts_with("storage-");
    let is_quick = |it: &Workload| !it.only_in_the_lab && !left_out(it);
    let own = |it: &&Workload| is_quick(it) && surface(it) == Surface::FileSystem;
    for workload in WORKLOADS.iter().filter(own) {
        let directory = tempfile::tempdir().unwrap();
        let figures = tiny(workload.name, "idle", directory.path())
            .or_else(|_| tiny(workload.name, "backup", directory.path()))
            .unwrap();
        for it in &figures {
            let metric = Metric::find(&it.metric);
            let metric = metric.unwrap_or_else(|| panic!("{workload}: {}", it.metric));
            assert_eq!(metric.unit, it.unit, "{workload}: {}", it.metric);
        }
        let headline = figures.iter().any(|it| it.metric == workload.headline);
        let derived = workload.headline == record::metric::UNTHROTTLED || !workload.has_total;
        assert!(
            headline || derived,
            "{workload} has no {}",
            workload.headline
        );
    }
}
