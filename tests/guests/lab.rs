//! `frontrow-lab` as a user runs it: guests are booted, and nothing is assumed
//! of the machine but QEMU, a compiler and Debian's archive.

use crate::harness::{Busy, CHECKOUT, code, exec, keep, lab, output, stderr, succeeds};
use crate::rows::Rows;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Runs an experiment and gives the bytes of its result.
fn result(arguments: &[&str], out: &Path) -> Vec<u8> {
    result_anew(&[arguments, keep()].concat(), out)
}

/// The same, and every guest is run.
fn result_anew(arguments: &[&str], out: &Path) -> Vec<u8> {
    succeeds(lab(&["run"]).args(arguments).arg("--out").arg(out));
    assert!(out.join("report.html").is_file());
    fs::read(out.join("result.json")).unwrap()
}

fn rows(result: &[u8]) -> Rows {
    Rows::of(&serde_json::from_slice(result).unwrap())
}

#[test]
fn the_same_seeds_give_the_same_bytes_on_an_idle_and_on_a_busy_host() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["smoke", "--policy", "mq-deadline,frontrow", "--seeds", "7"];
    let first = result_anew(&arguments, &dir.path().join("first"));
    let busy = Busy::new();
    let again = [&arguments[..], &["--keep"]].concat();
    let second = result_anew(
        &[&again[..], &["--jobs", "1"]].concat(),
        &dir.path().join("second"),
    );
    drop(busy);
    assert!(first == second, "the results differ");
    let taken = result_anew(&again, &dir.path().join("taken"));
    assert!(first == taken, "the kept result differs");
}

#[test]
fn the_older_kernel_boots_and_rows_are_by_policy_and_seed() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = "smoke --kernel 6.1 --policy none,frontrow --seeds 3..4 --load idle --early";
    let mut run = lab(&["run"]);
    run.args(arguments.split(' ')).arg("--out").arg(dir.path());
    let said = succeeds(&mut run).stdout;
    let seeds = said.lines().filter(|line| line.contains("seed"));
    let seeds: Vec<_> = seeds.filter_map(|line| line.split(';').next()).collect();
    assert_eq!(
        seeds[1..],
        [
            "one seed (3), so there is no interval: run more with --seeds",
            "means over 2 seeds (3–4)"
        ],
        "{said}"
    );
    let result = fs::read(dir.path().join("result.json")).unwrap();
    let whole: Value = serde_json::from_slice(&result).unwrap();
    assert!(
        whole["kernel"].as_str().unwrap().starts_with("6.1."),
        "{}",
        whole["kernel"]
    );
    assert_eq!(whole["device"], "emmc");
    for input in ["kernel", "qemu", "gcc", "rustc", "image_sha256"] {
        assert!(whole["inputs"][input].is_string(), "{input}");
    }
    let rows = rows(&result);
    let mut guests: Vec<_> = rows
        .all()
        .iter()
        .map(|row| {
            (
                row["policy"].as_str().unwrap().to_owned(),
                row["seed"].as_u64().unwrap(),
            )
        })
        .collect();
    guests.dedup();
    let expected = [("none", 3), ("none", 4), ("frontrow", 3), ("frontrow", 4)];
    assert_eq!(
        guests,
        expected.map(|(policy, seed)| (policy.to_owned(), seed))
    );
    let metrics: BTreeSet<_> = rows
        .all()
        .iter()
        .map(|row| row["metric"].as_str().unwrap().to_owned())
        .collect();
    for metric in ["total_ms", "fsync_mean_ms", "fsync_max_ms"] {
        assert!(metrics.contains(metric), "{metric} is not in {metrics:?}");
    }
}

fn value(rows: &Rows, metric: &str) -> f64 {
    rows.value(&[("metric", metric)])
}

#[test]
fn a_file_is_read_in_as_many_requests_as_it_has_pieces() {
    let dir = tempfile::tempdir().unwrap();
    let rows = rows(&result(
        &[
            "fragments",
            "--device",
            "emmc",
            "--load",
            "idle",
            "--seeds",
            "1",
        ],
        dir.path(),
    ));
    // The best of three files that differ in their dies only: of 360 reads, with 30 seeds, one
    // was made of more requests than it has pieces.
    let figures = |dof_l: u32, what: &str| {
        [0, 25, 50].map(|dof_p| value(&rows, &format!("dof_l_{dof_l}_dof_p_{dof_p}_{what}")))
    };
    let least = |dof_l| {
        figures(dof_l, "requests")
            .into_iter()
            .fold(f64::MAX, f64::min)
    };
    let fastest = |dof_l| figures(dof_l, "read_mb_s").into_iter().fold(0.0, f64::max);
    for pieces in [1, 2, 4, 8] {
        assert_eq!(least(pieces), f64::from(pieces));
    }
    // A device that does one command after the other is half as fast in pieces of 64 KB.
    assert!(fastest(8) < 0.6 * fastest(1));
}

#[test]
fn a_real_program_is_started_cold_and_warm_loaded_and_not() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        "programs",
        "--policy",
        "mq-deadline",
        "--workload",
        "sqlite3",
        "--load",
        "idle",
        "--seeds",
        "1",
    ];
    let rows = rows(&result(&arguments, dir.path()));
    // How much sooner a loaded start ends is asked of optimised programs only.
    let warm_ms = value(&rows, "warm_demand_ms");
    for cold in ["demand_ms", "before_ms", "beside_ms"] {
        assert!(
            value(&rows, cold) > 1.5 * warm_ms,
            "{cold}: {:?}",
            rows.all()
        );
    }
    assert!(value(&rows, "warm_loaded_ms") > warm_ms);
}

#[test]
fn a_phone_is_kept_in_order_by_remapping() {
    let dir = tempfile::tempdir().unwrap();
    let rows = rows(&result(
        &[
            "janusd", "--policy", "janusd-l", "--scale", "0.04", "--seeds", "1",
        ],
        dir.path(),
    ));
    assert_eq!(value(&rows, "upkeeps"), 1.0);
    // All of its files are 380 MB. Remaps change the map, which is in flash.
    let map_mb = value(&rows, "upkeep_map_mb");
    assert!(map_mb > 0.0 && map_mb < 2.0, "{map_mb}");
    assert!(value(&rows, "upkeep_programmed_mb") - map_mb < 1.0);
    for app in [
        "chrome",
        "messenger",
        "gmail",
        "facebook",
        "twitter",
        "game",
    ] {
        assert!(value(&rows, &format!("{app}_read_mb_s")) > 0.0);
        let dof_l = value(&rows, &format!("{app}_dof_l"));
        // Without upkeep it is between 2.5 and 4.
        assert!(dof_l < 2.0, "{app} has DoF_L {dof_l}");
    }
}

/// A checkout with an experiment of the test's own.
struct Checkout {
    root: TempDir,
}

impl Checkout {
    fn new(experiment: &str) -> Checkout {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("experiments")).unwrap();
        for shared in ["kernel", "experiments/devices"] {
            symlink(Path::new(CHECKOUT).join(shared), root.path().join(shared)).unwrap();
        }
        fs::write(root.path().join("experiments/bad.toml"), experiment).unwrap();
        Checkout { root }
    }

    fn out(&self) -> PathBuf {
        self.root.path().join("out")
    }

    /// The error text of a run that has to fail because of its guest.
    fn failure(&self) -> String {
        let mut run = lab(&["run", "bad", "--seeds", "3", "--out"]);
        let output = output(run.arg(self.out()).current_dir(&self.root));
        assert_eq!(code(&output), 6, "{}", stderr(&output));
        assert!(output.stdout.is_empty());
        assert!(!self.out().join("result.json").exists());
        let said = stderr(&output);
        assert!(
            said.contains("experiment bad, policy none, seed 3"),
            "{said}"
        );
        said
    }
}

fn experiment(limit_virtual_s: u64, writes: &str) -> String {
    format!(
        "name = \"bad\"\ntitle = \"fails\"\npolicies = [\"none\"]\nmemory_mib = 512\n\
         limit_virtual_s = {limit_virtual_s}\n[writes]\n{writes}\n[[runs]]\nworkload = \"m1\"\n"
    )
}

/// The sources of our scheduler as if they were another's, which registers `theirs`.
fn scheduler_of_others(dir: &Path) {
    let kernel = lab::Kernel::find(&lab::Cache::of_user().unwrap(), "6.12", None).unwrap();
    let (btf, headers) = (&kernel.tree.btf, Some(kernel.tree.headers.as_path()));
    let header = module::sched::build::header(btf, headers).unwrap();
    let source = module::sched::build::source().with(module::sched::build::HEADER, header);
    for (path, content) in source.files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = String::from_utf8(content).unwrap();
        let name = ".elevator_name = \"frontrow\"";
        fs::write(path, text.replace(name, ".elevator_name = \"theirs\"")).unwrap();
    }
}

#[test]
fn a_scheduler_of_others_has_its_own_name_and_is_not_stock() {
    let dir = tempfile::tempdir().unwrap();
    scheduler_of_others(&dir.path().join("theirs"));
    let file = dir.path().join("any.toml");
    let experiment = "name = 'mine'\ntitle = 'x'\nmemory_mib = 512\nlimit_virtual_s = 60\n\
        policies = ['frontrow', { name = 'other', scheduler = 'theirs', modules = ['theirs'] }]\n\
        runs = [{ workload = 'm1' }]\n[[bars]]\ntitle = 'total'\ndemand = '≤ 9 × other'\n\
        figures = { metric = 'total_ms' }\nrule = [{ at_most = 9.0, of = { policy = 'other' } }]\n";
    fs::write(&file, experiment).unwrap();
    let arguments = [file.to_str().unwrap(), "--seeds", "1"];
    let result = result(&arguments, &dir.path().join("out"));
    let found: Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(found["bars"][0]["policy"], "frontrow");
    let rows = rows(&result);
    let policies: BTreeSet<_> = rows.all().iter().map(|it| it["policy"].as_str()).collect();
    assert!(policies.into_iter().eq([Some("frontrow"), Some("other")]));
    let shown = succeeds(&mut lab(&[
        "show",
        dir.path().join("out").to_str().unwrap(),
        "--details",
    ]));
    assert!(shown.stdout.contains("1 of 1 bars met"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("stock"), "{}", shown.stdout);

    let theirs = dir.path().join("theirs");
    let options = ["--policy", "theirs", "--module", theirs.to_str().unwrap()];
    let said = succeeds(&mut exec(
        &options,
        "cat /sys/block/simflash0/queue/scheduler",
    ));
    assert!(said.stdout.contains("[theirs]"), "{}", said.stdout);
}

#[test]
fn a_panic_is_told_with_the_end_of_the_console() {
    let said = Checkout::new(&experiment(60, "\"/proc/sysrq-trigger\" = \"c\"")).failure();
    assert!(said.contains("its kernel panicked"), "{said}");
    assert!(said.contains("From the guest's console:"), "{said}");
    assert!(said.contains("sysrq triggered crash"), "{said}");
}

/// QEMU 7.2 leaves wrong flags behind it (`qemu.rs` of the lab).
#[test]
fn a_guest_has_no_compare_and_exchange_of_16_bytes() {
    let flags = succeeds(&mut exec(&[], "grep flags /proc/cpuinfo")).stdout;
    assert!(flags.split(' ').any(|flag| flag == "cx8"), "{flags}");
    assert!(!flags.split(' ').any(|flag| flag == "cx16"), "{flags}");
}

/// An image that a loop device has mounted may change while it is read.
#[test]
fn no_snapshot_is_taken_of_an_image_that_is_mounted_for_writing() {
    let script = "dd if=/dev/zero of=image bs=1M count=16 2> /dev/null
        mke2fs -F image > /dev/null
        losetup /dev/loop0 $PWD/image
        mkdir /tmp/image
        mount -t ext4 /dev/loop0 /tmp/image
        frontrow snapshot save image snapshot; echo written: $?
        mount -o remount,ro /tmp/image
        frontrow snapshot save image snapshot > /dev/null; echo read: $?";
    let with = [
        "--with",
        "mke2fs,e2image,e2fsck,busybox",
        "--modules",
        "loop",
    ];
    let said = succeeds(&mut exec(&with, script));
    assert_eq!(said.stdout, "written: 7\nread: 0\n", "{}", said.stderr);
    assert!(said.stderr.contains("is mounted for writing"));
}

#[test]
fn a_guest_that_takes_too_long_is_ended() {
    let said = Checkout::new(&experiment(1, "")).failure();
    assert!(
        said.contains("not done after 1 s of its own time"),
        "{said}"
    );
}

#[test]
fn a_guest_that_cannot_do_its_work_says_why() {
    let said = Checkout::new(&experiment(
        60,
        "\"/sys/block/simflash0/queue/nope\" = \"1\"",
    ))
    .failure();
    assert!(
        said.contains("cannot write '1' to /sys/block/simflash0/queue/nope"),
        "{said}"
    );
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_runs() {
    for (arguments, expected) in [
        (&["nope"][..], "there is no experiment 'nope': give one of"),
        (&["smoke", "--policy", "fastest"], "fastest"),
        (
            &["smoke", "--module", CHECKOUT],
            "no policy is a scheduler of --module",
        ),
        (
            &["smoke", "--device", "floppy"],
            "there is no device 'floppy': give one of emmc",
        ),
        (
            &["smoke", "--kernel", "2.4"],
            "there is no kernel '2.4': give 6.12, 6.1",
        ),
        (
            &["smoke", "--workload", "m9"],
            "experiment smoke has no such run; it has m1 idle",
        ),
        (&["smoke", "--seeds", "5..1"], "give A..B"),
        (&["smoke", "--scale", "huge"], "demo, full"),
        (&["smoke", "--jobs", "0"], "jobs"),
    ] {
        let output = output(lab(&["run"]).args(arguments));
        assert_eq!(code(&output), 2, "{arguments:?}: {}", stderr(&output));
        assert!(
            stderr(&output).contains(expected),
            "{arguments:?}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn without_debians_tools_it_says_what_to_install() {
    let empty = tempfile::tempdir().unwrap();
    let mut run = lab(&["run", "smoke"]);
    let empty = empty.path();
    let output = output(run.env("XDG_CACHE_HOME", empty).env("PATH", empty));
    assert_eq!(code(&output), 5, "{}", stderr(&output));
    assert!(
        stderr(&output).contains("apt-get install apt"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn experiments_are_listed_and_shown_also_outside_a_checkout() {
    let nowhere = tempfile::tempdir().unwrap();
    for place in [Path::new(CHECKOUT), nowhere.path()] {
        let listed = succeeds(lab(&["list"]).current_dir(place)).stdout;
        assert!(
            listed.contains("smoke") && listed.contains("qasio"),
            "{listed}"
        );
        let shown = succeeds(lab(&["show", "smoke", "--json"]).current_dir(place));
        assert_eq!(shown.json()["name"], "smoke");
    }
}

/// A small phone eMMC that was used for long; gives the profile's path.
fn old_device(dir: &Path) -> PathBuf {
    let text = fs::read_to_string(Path::new(CHECKOUT).join("experiments/devices/emmc.toml"));
    let text = text.unwrap();
    let is_other_table = |line: &&str| line.starts_with('[') && *line != "[simflash]";
    let mut profile = String::new();
    for line in text.lines().take_while(|line| !is_other_table(line)) {
        profile += match line.split(' ').next() {
            Some("name") => "name = \"old\"",
            Some("capacity_mib") => "capacity_mib = 256",
            Some("spare_percent") => "spare_percent = 7",
            _ => line,
        };
        profile.push('\n');
    }
    profile += "[aged]\nfilled_percent = 80\noverwritten_percent = 200\n";
    let path = dir.join("old.toml");
    fs::write(&path, profile).unwrap();
    path
}

/// A number of the device's statistics, in a guest that has just mounted it.
fn statistics(device: &str) -> impl Fn(&str) -> u64 + use<> {
    let command = "cat /sys/kernel/debug/simflash/simflash0/stats";
    let text = succeeds(&mut exec(&["--device", device], command)).stdout;
    move |name| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        let number = line.split_whitespace().nth(1).unwrap();
        number.trim_end_matches(',').parse().unwrap()
    }
}

#[test]
fn an_aged_device_begins_with_its_past_and_a_fresh_one_does_not() {
    let dir = TempDir::new().unwrap();
    let path = old_device(dir.path());
    let old = path.to_str().unwrap();
    let pages = 256 * 256;

    let of = statistics(old);
    assert!(of("mapped_pages") >= pages * 80 / 100);
    assert!(of("block_erases") < 100, "the least of its blocks'");
    assert!(of("free_rows") < pages / 4 / 10);
    let of = statistics(&format!("{old}:fresh"));
    assert!(of("mapped_pages") < pages / 10);
    assert!(of("free_rows") > pages / 4);

    let out = dir.path().join("out");
    let runs = ["--workload", "calibrate-seq-write,calibrate-rand-write"];
    let arguments = ["calibrate", "--device", old, "--seeds", "1"];
    let result = result(&[arguments.as_slice(), &runs].concat(), &out);
    let result: Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(result["device"], "old");
    assert!(result["inputs"]["flash_image_sha256"].is_string());
}

#[test]
fn large_reads_of_a_file_in_pieces_take_longer_than_of_one_in_one_piece() {
    let dir = tempfile::tempdir().unwrap();
    let workloads = "storage-seq-read,storage-pieces";
    let arguments = ["storage", "--workload", workloads, "--seeds", "1"];
    let options = ["--load", "idle", "--policy", "mq-deadline"];
    let result = rows(&result(&[&arguments[..], &options].concat(), dir.path()));
    let [whole_ms, pieces_ms] = ["storage-seq-read", "storage-pieces"].map(|workload| {
        let metric = ("metric", "1024k_read_mean_ms");
        result.value(&[("workload", workload), metric])
    });
    assert!(pieces_ms > 1.5 * whole_ms, "{pieces_ms}, {whole_ms} in one");
    // One direct read at a time leaves the only CPU nothing to do but to wait.
    let shares = ["iowait_share", "user_share", "system_share"].map(|metric| {
        let workload = ("workload", "storage-seq-read");
        result.value(&[workload, ("metric", metric)])
    });
    let [iowait, user, system] = shares;
    assert!((iowait + user + system - 1.0).abs() < 1e-9, "{shares:?}");
    assert!(iowait > 0.5, "{shares:?}");
}
