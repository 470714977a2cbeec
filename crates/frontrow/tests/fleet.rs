//! `--fleet`: the partitions that one machine writes, and the questions of docs/fleet over 500 of them, asked in
//! DuckDB and ClickHouse (`make readers` installs both; `make test` does so first).

use ::doctor::fleet::{APPS, BENCH, DISKS, Origin, Rows, STALLS, apps, bench, disks, stalls};
use ::doctor::judge::{Confidence, Verdict};
use ::doctor::machine::Disk;
use ::doctor::observe::Pressure;
use ::doctor::study::{App, Study, Waited};
use ::doctor::{Diagnosis, Level, Machine};
use ::iopro::export::parquet::write_table;
use ::iopro::tables::Table;
use ::iopro::wait::Class;
use record::{Inputs, ResultFile, Row, Scale};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const MACHINES: u64 = 500;
const SECOND_NS: u64 = 1_000_000_000;
const HOUR_NS: u64 = 3600 * SECOND_NS;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn shipped(name: &str) -> String {
    fs::read_to_string(root().join("docs/fleet").join(name)).unwrap()
}

/// Lines that a program of `target/readers` prints about the tables in `fleet`.
fn lines(program: &str, arguments: &[&str], fleet: &Path) -> Vec<String> {
    let path = root().join("target/readers/python/bin").join(program);
    let output = Command::new(&path)
        .args(arguments)
        .current_dir(fleet)
        .output()
        .unwrap_or_else(|error| panic!("{}: {error}; run `make readers` first", path.display()));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn duckdb(fleet: &Path, question: &str) -> Vec<String> {
    let script = shipped("duckdb.sql") + question;
    let options = ["-batch", "-bail", "-csv", "-noheader", "-c", &script];
    lines("duckdb", &options, fleet)
}

fn clickhouse(fleet: &Path, question: &str) -> Vec<String> {
    let script = shipped("clickhouse.sql") + question;
    let program = "import chdb, sys; sys.stdout.write(str(chdb.query(sys.argv[1], 'CSV')))";
    // Each cell is compared as text, which it quotes.
    let lines = lines("python", &["-c", program, &script], fleet);
    lines.iter().map(|line| line.replace('"', "")).collect()
}

/// Cells of two programs' lines, which print whole numbers of a floating point differently.
fn cells(lines: &[String]) -> Vec<Vec<String>> {
    let cell = |text: &str| match text.parse::<f64>() {
        Ok(number) => number.to_string(),
        Err(_) => text.to_owned(),
    };
    let of_line = |line: &String| line.split(',').map(cell).collect();
    lines.iter().map(of_line).collect()
}

fn add(fleet: &Path, table: &'static Table, machine: u64, day: u64, rows: Rows) {
    let place = format!("{}/host=machine-{machine}/day=2026-11-{day:02}", table.name);
    let place = fleet.join(place);
    fs::create_dir_all(&place).unwrap();
    let file = File::create(place.join("1-1.parquet")).unwrap();
    write_table(file, table, rows.into_iter()).unwrap();
}

/// Each machine has a day with one kernel and a day with the next. One in five has the disk that stalls, and one
/// metric rises by a quarter.
fn generated() -> TempDir {
    let fleet = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    for machine in 0..MACHINES {
        for (day, kernel) in [(1, "6.1.0-40"), (2, "6.12.0-9")] {
            let origin = Origin {
                at_s: 1_795_000_000 + day * 86_400 + machine,
                kernel: kernel.to_owned(),
                is_anonymous: false,
            };
            let add = |table, rows| add(fleet.path(), table, machine, day, rows);
            add(&APPS, apps(&study(machine), &origin));
            let (diagnosis, disk) = (diagnosis(machine), disk(machine));
            add(&STALLS, stalls(&diagnosis, &disk, &origin));
            add(&DISKS, disks(&diagnosis, &disk, &origin));
            add(&BENCH, bench(&result(machine, kernel), &origin));
        }
    }
    fleet
}

fn study(machine: u64) -> Study {
    let app = |name: &str, cpu_s: u64, waited_s: u64| App {
        name: name.to_owned(),
        cpu_ns: cpu_s * SECOND_NS,
        waited_ns: waited_s * SECOND_NS,
        share: 0.0,
        // In two classes, of which the app's own time must not be counted twice.
        classes: [(Class::Service, waited_s - 1), (Class::JournalCommit, 1)]
            .map(|(class, waited_s)| Waited {
                class,
                waits: 3,
                waited_ns: waited_s * SECOND_NS,
                longest_ns: waited_s * SECOND_NS / 2,
                share: 0.0,
            })
            .into(),
    };
    let mut apps = vec![app("firefox.service", 6, 2)];
    if machine.is_multiple_of(2) {
        apps.push(app("backup.service", 5, 15));
    }
    Study {
        level: Level::Linked,
        cannot_see: Vec::new(),
        asked_ns: HOUR_NS,
        watched_ns: HOUR_NS,
        ended_early: false,
        pressed_ns: 0,
        apps,
    }
}

fn disk(machine: u64) -> Machine {
    let model = ["Quick 1", "Quick 2", "Quick 3", "Quick 4", "Slow 1"];
    let physical = Disk {
        name: "sda".to_owned(),
        title: Some(model[(machine % 5) as usize].to_owned()),
        ..Disk::default()
    };
    let volume = Disk {
        name: "dm-0".to_owned(),
        title: Some("root".to_owned()),
        on: vec!["sda".to_owned()],
        ..Disk::default()
    };
    Machine {
        disks: vec![physical, volume],
        ..Machine::default()
    }
}

/// The verdict is on the volume, and the model is that of the disk below it.
fn diagnosis(machine: u64) -> Diagnosis {
    let verdict = Verdict {
        cause: ::doctor::cause::Cause::DeviceBusy,
        name: "device busy",
        kind: ::doctor::cause::Kind::Storage,
        who: "firefox".to_owned(),
        file: Some("/home/me/secret".to_owned()),
        culprit: Some("rsync".to_owned()),
        relation: String::new(),
        disk: Some("dm-0".to_owned()),
        lost_ns: 36 * SECOND_NS,
        who_ns: 0,
        waits: 9,
        samples: 0,
        longest_ns: 4 * SECOND_NS,
        share: 1.0,
        confidence: Confidence::Sure,
        evidence: Vec::new(),
        advice: None,
        to_do: None,
    };
    Diagnosis {
        failing: Vec::new(),
        level: Level::Linked,
        cannot_see: Vec::new(),
        watched_ns: HOUR_NS,
        ended_early_of_ns: None,
        until_stall: None,
        pressure: Pressure::default(),
        verdicts: Vec::from_iter((machine % 5 == 4).then_some(verdict)),
        findings: Vec::new(),
        over_time: Vec::new(),
        held_up: Vec::new(),
    }
}

fn result(machine: u64, kernel: &str) -> ResultFile {
    let rises = if kernel.starts_with("6.12") {
        1.25
    } else {
        1.0
    };
    let row = |metric: &str, seed, value| Row {
        workload: "m1".to_owned(),
        load: "writer".to_owned(),
        policy: "none".to_owned(),
        metric: metric.to_owned(),
        unit: "ms".to_owned(),
        seed,
        value,
        histogram: None,
        series: None,
    };
    let base = 1.0 + machine as f64 / 7.0;
    let rows = (1..=3).flat_map(|seed| {
        let spread = base * (1.0 + seed as f64 / 10.0);
        [
            row("total_ms", seed, spread),
            row("fsync_mean_ms", seed, spread * rises),
        ]
    });
    ResultFile {
        experiment: "bench".to_owned(),
        kernel: kernel.to_owned(),
        device: "sda (Quick 1)".to_owned(),
        scale: Scale::Demo,
        stock_default: "none".to_owned(),
        baselines: Vec::new(),
        bars: Vec::new(),
        inputs: Inputs::default(),
        rows: rows.collect(),
    }
}

#[test]
fn the_questions_over_five_hundred_machines_have_one_answer_in_both_programs() {
    let fleet = generated();
    for (name, expected) in [
        (
            "apps.sql",
            &[
                "backup.service,250,7500,0.75,7",
                "firefox.service,500,2000,0.25,0.5",
            ][..],
        ),
        (
            "disks.sql",
            &[
                "Slow 1,100,100,200,36,4",
                "Quick 1,100,0,200,0,0",
                "Quick 2,100,0,200,0,0",
                "Quick 3,100,0,200,0,0",
                "Quick 4,100,0,200,0,0",
            ],
        ),
        (
            "kernels.sql",
            &[
                "6.1.0-40,6.12.0-9,m1,writer,fsync_mean_ms,ms,500,1.25,500",
                "6.1.0-40,6.12.0-9,m1,writer,total_ms,ms,500,1,0",
            ],
        ),
    ] {
        let question = shipped(name);
        for answer in [
            duckdb(fleet.path(), &question),
            clickhouse(fleet.path(), &question),
        ] {
            let expected: Vec<String> = expected.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(cells(&answer), cells(&expected), "{name}");
        }
    }
    let question = "SELECT DISTINCT disk, disk_model, who, file FROM stalls";
    assert_eq!(
        duckdb(fleet.path(), question),
        ["dm-0,Slow 1,firefox,/home/me/secret"]
    );
}

fn frontrow(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    output
}

#[test]
fn a_machine_adds_its_rows_by_host_and_day_with_or_without_names() {
    let machine = crate::doctor::machine();
    for (name, text) in [("hostname", "web/1=a\n"), ("osrelease", "6.12.0-9\n")] {
        crate::doctor::write(machine.path(), &format!("proc/sys/kernel/{name}"), text);
    }
    let target = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let fleet = target.path().join("fleet");
    let fleet = fleet.to_str().unwrap();
    let measured = target.path().join("measured");
    fs::create_dir(&measured).unwrap();
    let out = target.path().join("study");
    let diagnose = |options: &[&str]| {
        // Each time the pressure rises from here.
        let pressure = "some avg10=0 total=5\n";
        crate::doctor::write(machine.path(), "proc/pressure/io", pressure);
        let output =
            crate::doctor::doctor(machine.path(), &[&["--fleet", fleet], options].concat());
        assert!(output.status.success(), "{output:?}");
    };
    diagnose(&["--seconds", "2"]);
    diagnose(&["--seconds", "2", "--anonymous"]);
    diagnose(&["--study", "2s", "--out", out.to_str().unwrap()]);
    let place = measured.to_str().unwrap();
    let options = ["--workload=m1", "--load=idle", "--scale=0.01", "--seeds=1"];
    frontrow(&[&["bench", place, "--fleet", fleet], &options[..]].concat());

    let asked = |question: &str| duckdb(Path::new(fleet), question);
    let told =
        asked("SELECT host, kernel, coalesce(who, '-'), cause FROM stalls ORDER BY at_s, who");
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("web/1=a,6.12.0-9,app,"), "{told:?}");
    assert!(told[1].starts_with("web/1=a,6.12.0-9,-,"), "{told:?}");
    assert_eq!(asked("SELECT DISTINCT disk FROM disks"), ["sda"]);
    assert_eq!(asked("SELECT app, class FROM apps"), ["app,I_jcommit"]);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let total = asked("SELECT host, workload FROM bench WHERE metric = 'total_ms' AND value > 0");
    assert_eq!(total, [format!("{},m1", host.trim())]);
    let day = asked(
        "SELECT DISTINCT day = CAST(to_timestamp(at_s) AT TIME ZONE 'UTC' AS DATE) FROM disks",
    );
    assert_eq!(day, ["true"]);
}
