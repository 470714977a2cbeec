//! `frontrow doctor` on a machine made of files: what it refuses, and the page that it prints.

use crate::terminal::Session;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// One disk, and a process that is blocked in an fsync all the time.
pub(crate) fn machine() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str, text: &str| write(root.path(), path, text);
    at("proc/stat", "cpu 1 0 1 100 0 0 0 0 0 0\n");
    for of in ["io", "memory", "cpu"] {
        at(&format!("proc/pressure/{of}"), "some avg10=0 total=5\n");
    }
    at(
        "proc/self/mountinfo",
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n",
    );
    let stat = "7 (app) D 1 2 3 4 5 4194304 0 0 0 0 7 8 0 0 20 0 1 0 99 0\n";
    at("proc/7/stat", stat);
    at("proc/7/task/7/stat", stat);
    let stack = "[<0>] jbd2_log_wait_commit+0x1/0x2\n[<0>] __x64_sys_fsync+0x3/0x4\n";
    at("proc/7/task/7/stack", stack);
    at("sys/block/sda/size", "2048\n");
    at("sys/block/sda/dev", "8:0\n");
    at("sys/block/sda/queue/scheduler", "none [mq-deadline]\n");
    at("sys/block/sda/queue/nr_requests", "64\n");
    root
}

pub(crate) fn doctor(root: &Path, arguments: &[&str]) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["doctor", "--sysroot"])
        .arg(root)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // As long as it watches, the kernel counts that somebody waits for I/O.
    thread::sleep(Duration::from_secs(1));
    let pressure = root.join("proc/pressure/io");
    if pressure.exists() {
        fs::write(pressure, "some avg10=0 total=900000\n").unwrap();
    }
    child.wait_with_output().unwrap()
}

const SHORT: [&str; 2] = ["--seconds", "2"];

#[test]
fn at_a_terminal_it_tells_how_long_it_has_watched_and_takes_that_away() {
    let root = machine();
    let mut command = Command::new(env!("CARGO_BIN_EXE_frontrow"));
    command.args(["doctor", "--sysroot"]).arg(root.path());
    let mut session = Session::start((24, 100), command.args(["--seconds", "3"]));
    session.wait_for("Watching, 1s of 3 seconds", 0);
    assert!(session.wait_for_end().success());
    let page = session.wait_for("Watched 3", 0);
    assert!(!session.shown()[page..].contains("Watching"));
}

#[test]
fn the_page_says_who_waits_and_how_it_was_seen() {
    let root = machine();
    let output = doctor(root.path(), &SHORT);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for words in [
        "of 3 (",
        "Cannot see: ",
        "1. own commits: 100 %",
        "app waited",
        "64 requests",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let root = machine();
    let json = doctor(root.path(), &["--seconds", "2", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    crate::schema::check("doctor", &json);
    assert_eq!(json["verdicts"][0]["cause"], "own_commits");
    assert_eq!(json["verdicts"][0]["who"], "app");
}

#[test]
fn where_nothing_can_be_told_a_sentence_says_why() {
    let cases: [(&str, Option<&str>, &str); 4] = [
        ("proc/pressure/io", None, "psi=1"),
        (".dockerenv", Some(""), "run frontrow doctor on its host"),
        ("proc/stat", None, "mount /proc"),
        (
            "proc/self/mountinfo",
            Some("1 0 0:9 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw\n"),
            "version 1",
        ),
    ];
    for (path, text, words) in cases {
        let root = machine();
        match text {
            Some(text) => write(root.path(), path, text),
            None => fs::remove_file(root.path().join(path)).unwrap(),
        }
        let output = doctor(root.path(), &SHORT);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{path}: {said}");
        assert!(
            said.starts_with("frontrow: ") && said.contains(words),
            "{path}: {said}"
        );
        assert_eq!(
            (said.lines().count(), output.stdout.len()),
            (1, 0),
            "{said}"
        );
    }
    let usage = doctor(machine().path(), &["--seconds", "0"]);
    assert_eq!(usage.status.code(), Some(2));
}

#[test]
fn what_keeps_it_from_seeing_is_a_sentence_of_the_page() {
    let overlay = "1 0 0:30 / / rw - overlay overlay rw,lowerdir=/a,upperdir=/b\n\
        2 1 8:1 / /home rw - ext4 /dev/sda1 rw\n";
    let lockdown = "none integrity [confidentiality]\n";
    for (path, text, words) in [
        ("proc/self/mountinfo", overlay, "it is an overlay"),
        ("sys/kernel/security/lockdown", lockdown, "locked down"),
    ] {
        let root = machine();
        write(root.path(), path, text);
        let output = doctor(root.path(), &SHORT);
        let text = String::from_utf8_lossy(&output.stdout);
        let mut said = text.lines().filter(|it| it.starts_with("Cannot see: "));
        assert!(said.any(|it| it.contains(words)), "{path}: {text}");
        assert!(output.status.success() && text.contains("1. own commits"));
    }
}

/// Holds a task up by I/O for this time, as far as the machine's files say.
fn stall(root: &Path, length: Duration) {
    let (file, new) = (root.join("proc/pressure/io"), root.join("new"));
    let begun = Instant::now();
    while begun.elapsed() < length {
        let total_us = begun.elapsed().as_micros();
        fs::write(&new, format!("some avg10=0 total={total_us}\n")).unwrap();
        fs::rename(&new, &file).unwrap();
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn it_watches_until_a_stall_and_tells_of_the_time_around_it() {
    let root = machine();
    write(root.path(), "proc/pressure/io", "some avg10=0 total=0\n");
    let child = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["doctor", "--until-stall", "300ms", "--json", "--sysroot"])
        .arg(root.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    thread::sleep(Duration::from_secs(1));
    stall(root.path(), Duration::from_secs(3));
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    crate::schema::check("doctor", &json);
    let ended = &json["until_stall"];
    assert_eq!(ended["asked_ns"], 300_000_000);
    assert!(ended["stalled_ns"].as_u64() >= Some(300_000_000), "{ended}");
    assert_eq!(json["verdicts"][0]["cause"], "own_commits");
}

#[test]
fn without_a_stall_it_watches_no_longer_than_asked_and_says_so() {
    let none = doctor(machine().path(), &["--until-stall", "2s", "--seconds", "2"]);
    let text = String::from_utf8_lossy(&none.stdout);
    assert!(text.contains("without a stall of 2.00 s"), "{text}");
    for wrong in ["100ms", "11m", "soon"] {
        let output = doctor(machine().path(), &["--until-stall", wrong]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("from 200ms to 10m"), "{said}");
    }
    let both = ["--until-stall", "1s", "--study", "2s"];
    assert_eq!(doctor(machine().path(), &both).status.code(), Some(2));
}

#[test]
fn nothing_is_tried_where_nothing_can_be_changed() {
    let root = machine();
    let mounts = "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:22 / /sys ro,nosuid - sysfs sysfs rw\n";
    write(root.path(), "proc/self/mountinfo", mounts);
    let output = doctor(root.path(), &["--seconds", "3600", "--try"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        said.contains("/sys is read-only") && said.lines().count() == 1,
        "{said}"
    );
    // It only watches there.
    assert!(doctor(root.path(), &SHORT).status.success());
}

#[test]
fn a_study_writes_what_was_seen_and_says_whether_it_was_all() {
    let root = machine();
    let out = root.path().join("study");
    let path = out.to_string_lossy();
    let output = doctor(root.path(), &["--study", "2s", "--out", &path]);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains("app waited longest for storage"), "{text}");
    let json = fs::read(out.join("study.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["ended_early"], false);
    assert_eq!(json["apps"][0]["name"], "app");
    assert_eq!(json["apps"][0]["classes"][0]["class"], "I_jcommit");
    let page = fs::read_to_string(out.join("study.html")).unwrap();
    assert!(page.contains("I_jcommit") && page.contains("<svg"));
    assert!(
        fs::read(out.join("study.parquet"))
            .unwrap()
            .ends_with(b"PAR1")
    );
}

#[test]
fn the_page_of_pictures_says_the_same_and_json_is_printed_beside_it() {
    let root = machine();
    let stat = fs::read_to_string(root.path().join("proc/7/stat")).unwrap();
    for path in ["proc/7/stat", "proc/7/task/7/stat"] {
        write(root.path(), path, &stat.replace("(app)", "(<script>)"));
    }
    let out = root.path().join("it's.html");
    let path = out.to_string_lossy();
    let output = doctor(root.path(), &["--seconds", "2", "--json", "--html", &path]);
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    crate::schema::check("doctor", &json);
    assert_eq!(json["verdicts"][0]["who"], "<script>");
    let spans = json["over_time"].as_array().unwrap();
    let sum: u64 = spans
        .iter()
        .map(|it| it["pressure"]["io_ns"].as_u64().unwrap())
        .sum();
    assert_eq!(sum, json["pressure"]["io_ns"].as_u64().unwrap());
    assert!(spans.len() >= 4, "{spans:?}");
    let page = fs::read_to_string(&out).unwrap();
    for words in [
        "<h1>&lt;script&gt; waited",
        "own commits",
        "<svg class=\"lost\"",
        "<svg class=\"spans of-storage\"",
        "frontrow doctor --seconds 2 --html '",
        "it'\\''s.html'",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("<script"), "{page}");
    let mode = fs::metadata(&out).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it has names of others' files");
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_the_watching() {
    let root = machine();
    for (path, code) in [("/nowhere/why.html", 2), ("/dev/null", 7), ("/", 7)] {
        let began = Instant::now();
        let output = doctor(root.path(), &["--seconds", "60", "--html", path]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{path}: {said}");
        assert!(said.contains(path) && output.stdout.is_empty(), "{said}");
        assert!(began.elapsed() < Duration::from_secs(30), "{path}");
    }
    let same = ["--recording", "why", "--html", "why"];
    let output = doctor(root.path(), &same);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let both = ["--study", "2s", "--html", "why.html"];
    assert_eq!(doctor(root.path(), &both).status.code(), Some(2));
}

/// Whether the process catches SIGINT by now.
fn catches_interrupts(process: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    assert!(!status.contains("(zombie)"), "it has ended");
    let caught = status.lines().find_map(|it| it.strip_prefix("SigCgt:"));
    let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
    caught & 1 << (libc::SIGINT - 1) != 0
}

/// Begins to watch for long, and is interrupted.
fn interrupted(root: &Path, arguments: &[&str]) -> String {
    let child = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["doctor", "--sysroot"])
        .arg(root)
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    while !catches_interrupts(child.id()) {
        thread::sleep(Duration::from_millis(10));
    }
    // SAFETY: the child was not waited for, so its id is its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn ctrl_c_ends_the_watching_and_the_page_comes() {
    let text = interrupted(machine().path(), &["--seconds", "3600"]);
    assert!(
        text.contains(" of 60.0 min, ended early, at level ") && text.contains("64 requests"),
        "{text}"
    );
}

#[test]
fn ctrl_c_ends_the_watching_and_the_page_of_pictures_is_written() {
    let root = machine();
    let out = root.path().join("why.html");
    let path = out.to_string_lossy();
    interrupted(root.path(), &["--seconds", "3600", "--html", &path]);
    let page = fs::read_to_string(out).unwrap();
    assert!(
        page.contains(" of 60.0 min, ended early, at level ") && page.ends_with("</html>"),
        "{page}"
    );
}

#[test]
fn ctrl_c_ends_a_study_which_says_so_and_keeps_what_was_seen() {
    let root = machine();
    let out = root.path().join("study");
    let text = interrupted(
        root.path(),
        &["--study", "24h", "--out", &out.to_string_lossy()],
    );
    assert!(text.contains("ended early"), "{text}");
    let page = fs::read_to_string(out.join("study.html")).unwrap();
    assert!(page.contains("Ended early"), "{page}");
}

/// A line `NAME{LABEL="VALUE",…} NUMBER` as Prometheus reads it: its name, and the series.
fn sample(line: &str) -> Option<(&str, &str)> {
    let (series, value) = line.rsplit_once(' ')?;
    value.parse::<f64>().ok()?;
    let is_word = |word: &str| {
        let mut letters = word.chars();
        letters.next().is_some_and(|it| it.is_ascii_lowercase())
            && letters.all(|it| it.is_ascii_lowercase() || it == '_')
    };
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let mut rest = labels.strip_suffix('}').unwrap_or(labels);
    while !rest.is_empty() {
        let (label, value) = rest.split_once("=\"")?;
        let mut escapes = false;
        let end = value.find(|letter| {
            let ends = letter == '"' && !escapes;
            escapes = letter == '\\' && !escapes;
            ends
        })?;
        rest = &value[end + 1..];
        rest = rest.strip_prefix(',').unwrap_or(rest);
        is_word(label).then_some(())?;
    }
    is_word(name).then_some((name, series))
}

#[test]
fn metrics_are_prometheus_text() {
    let root = machine();
    let out = root.path().join("frontrow.prom");
    let name = out.to_str().unwrap();
    let output = doctor(root.path(), &[&SHORT[..], &["--metrics", name]].concat());
    assert!(output.status.success(), "{output:?}");
    let text = fs::read_to_string(&out).unwrap();
    let mut declared = Vec::new();
    let mut series = Vec::new();
    for line in text.lines() {
        if let Some(about) = line.strip_prefix("# ") {
            let words: Vec<_> = about.split(' ').collect();
            assert!(["HELP", "TYPE"].contains(&words[0]), "{line}");
            declared.extend((words[0] == "TYPE").then(|| words[1].to_owned()));
            continue;
        }
        let (name, whole) = sample(line).unwrap_or_else(|| panic!("{line}"));
        assert_eq!(declared.last().map(String::as_str), Some(name), "{line}");
        assert!(!series.contains(&whole.to_owned()), "twice: {line}");
        series.push(whole.to_owned());
    }
    let lost = r#"frontrow_lost_seconds{app="app",class="own commits",culprit="",disk=""}"#;
    assert!(series.iter().any(|it| it == lost), "{text}");
    // The collector is another user.
    let mode = fs::metadata(&out).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    let promtool =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/readers/debian/usr/bin/promtool");
    let checked = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(fs::File::open(&out).unwrap())
        .output()
        .expect("run `make readers` first");
    // It warns of nothing either.
    assert!(
        checked.status.success() && checked.stderr.is_empty(),
        "{checked:?}"
    );
}

#[test]
fn two_outputs_are_not_one_file() {
    let root = machine();
    let out = root.path().join("out");
    let name = out.to_str().unwrap();
    let both = ["--seconds", "1", "--html", name, "--metrics", name];
    let output = doctor(root.path(), &both);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn a_disk_with_errors_in_the_kernels_log_heads_the_page() {
    let root = machine();
    let log = "3,2,2000000,-;I/O error, dev sda, sector 8 op 0x0:(READ) flags 0x0\n";
    write(root.path(), "dev/kmsg", log);
    let output = doctor(root.path(), &SHORT);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("sda reports errors: 1 request failed, the last "),
        "{text}"
    );
}
