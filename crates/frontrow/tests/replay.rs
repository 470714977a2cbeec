//! `frontrow-lab replay` as a user runs it.

use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const TRACE: &str = "fio version 3 iolog\n0 d write 0 65536\n10 d read 0 4096\n\
    20 d trim 65536 4096\n30 d sync 0 0\n500 d write 4096 4096\n";

fn replay(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_frontrow-lab"))
        .arg("replay")
        .args(arguments)
        .output()
        .unwrap()
}

fn written(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn the_name_of_a_disk_makes_no_file() {
    let disks = std::fs::read_dir("/sys/class/block").into_iter().flatten();
    let Some(disk) = disks.flatten().next() else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let trace = written(directory.path(), "trace", TRACE);
    let output = Command::new(env!("CARGO_BIN_EXE_frontrow-lab"))
        .args(["replay", &trace, "--onto"])
        .arg(disk.file_name())
        .current_dir(directory.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("give /dev/"), "{said}");
    assert!(!directory.path().join(disk.file_name()).exists());
}

#[test]
fn through_the_flash_core_the_same_trace_gives_the_same_figures() {
    let directory = tempfile::tempdir().unwrap();
    let trace = written(directory.path(), "trace", TRACE);
    let of = || -> Value {
        let output = replay(&[&trace, &trace, "--loops", "3", "--pace", "mixed", "--json"]);
        assert!(output.status.success(), "{output:?}");
        let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["host_ns"].take();
        report["page_operations_per_host_s"].take();
        report
    };
    let report = of();
    assert_eq!(report, of());
    assert_eq!(report["operations"], 30);
    assert_eq!(report["counters"]["host_write_pages"], 6 * 17);
    assert_eq!(report["times"]["discard"]["count"], 6);
    assert!(report["write_amplification"].as_f64().unwrap() > 0.0);
}

#[test]
fn onto_a_file_it_says_how_long_operations_took() {
    let directory = tempfile::tempdir().unwrap();
    let trace = written(directory.path(), "trace", TRACE);
    let file = directory.path().join("file");
    let onto = ["--onto", file.to_str().unwrap(), "--buffered"];
    let output = replay(&[&[trace.as_str()], onto.as_slice()].concat());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("5 operations onto "), "{text}");
    assert_eq!(file.metadata().unwrap().len(), 17 * 4096);
    let again = replay(&[&[trace.as_str()], onto.as_slice()].concat());
    assert_eq!(again.status.code(), Some(7));
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(said.contains("--overwrite destroys"), "{said}");
}

const STRACE: &str = r#"execve("/bin/app", ["app"], 0x7ffd /* 9 vars */) = 0 <0.000900>
1700000000.000100 openat(AT_FDCWD</home/u>, "config", O_RDONLY) = 3</home/u/config> <0.000010>
1700000000.000200 read(3</home/u/config>, "..."..., 8192) = 8192 <0.000010>
1700000000.000300 openat(AT_FDCWD</home/u>, "/etc/new", O_RDWR|O_CREAT|O_EXCL, 0600) = 4</etc/new> <0.000010>
1700000000.000400 write(4</etc/new>, "..."..., 20000) = 20000 <0.000010>
1700000000.000500 fdatasync(4</etc/new>) = 0 <0.000010>
1700000000.000600 rename("/etc/new", "/etc/passwd") = 0 <0.000010>
1700000000.000700 openat(AT_FDCWD</home/u>, "../../../etc/shadow", O_RDWR|O_TRUNC) = 5 <0.000010>
1700000000.000800 mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 3</home/u/config>, 0) = 0x7f00 <0.000010>
1700000000.000900 +++ exited with 0 +++
"#;

/// Played and left out are all that was read.
fn accounted(report: &Value, events: u64) {
    crate::schema::check("lab replay", report);
    let left = report["left_out"].as_object().unwrap().values();
    let left: u64 = left.map(|it| it.as_u64().unwrap()).sum();
    assert_eq!(report["read_events"], events, "{report:#}");
    assert_eq!(report["played_events"].as_u64().unwrap() + left, events);
}

fn strace(directory: &Path) -> String {
    let text = STRACE.replacen("execve", "1700000000.000001 execve", 1);
    written(directory, "app.strace", &text)
}

#[test]
fn system_calls_are_made_again_below_a_directory_and_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    let trace = strace(directory.path());
    let machine = ["/etc/passwd", "/etc/shadow"].map(|it| std::fs::metadata(it).unwrap());
    let sandbox = directory.path().join("sandbox");
    let onto = [trace.as_str(), "--onto", sandbox.to_str().unwrap()];
    let output = replay(&[onto.as_slice(), &["--pace", "mixed", "--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["operations"], 7);
    assert_eq!(report["unlike_operations"], 0);
    assert_eq!(report["prepared_bytes"], 8192);
    assert_eq!(report["times"]["write"]["pages"], 5);
    let mapped = "mmap of a file: its page faults are not in the trace";
    assert_eq!(report["left_out"][mapped], 1);
    accounted(&report, 9);
    let size = |path: &str| sandbox.join(path).metadata().unwrap().len();
    assert_eq!(size("home/u/config"), 8192);
    assert_eq!(size("etc/passwd"), 20_000);
    assert_eq!(size("etc/shadow"), 0);
    for (path, before) in ["/etc/passwd", "/etc/shadow"].iter().zip(machine) {
        let now = std::fs::metadata(path).unwrap();
        assert_eq!(now.modified().unwrap(), before.modified().unwrap());
    }
    let again = replay(&onto);
    assert_eq!(again.status.code(), Some(7), "{again:?}");
    let again = replay(&[onto.as_slice(), &["--overwrite"]].concat());
    let text = String::from_utf8_lossy(&again.stdout);
    assert!(text.starts_with("7 calls in "), "{again:?}");
    assert!(
        text.contains("left out: 1 execve, 1 mmap of a file"),
        "{text}"
    );
}

/// A file of 64 MiB with nothing in it.
fn file_of(directory: &Path) -> PathBuf {
    let path = directory.join("file");
    std::fs::File::create(&path)
        .and_then(|it| it.set_len(64 << 20))
        .unwrap();
    path
}

#[test]
fn without_a_directory_system_calls_are_what_they_read_write_and_flush() {
    let directory = tempfile::tempdir().unwrap();
    let trace = strace(directory.path());
    let output = replay(&[&trace, "--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["operations"], 3);
    assert_eq!(report["counters"]["host_write_pages"], 5);
    accounted(&report, 9);
    assert_eq!(report["left_out"]["open: no request of a device"], 3);
    let file = file_of(directory.path());
    let file = file.to_str().unwrap();
    let onto = ["--onto", file, "--overwrite", "--buffered", "--json"];
    let output = replay(&[&[trace.as_str()], onto.as_slice()].concat());
    assert!(output.status.success(), "{output:?}");
    accounted(&serde_json::from_slice(&output.stdout).unwrap(), 9);
    let path = directory.path().to_str().unwrap();
    let output = replay(&[&trace, &trace, "--onto", path]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// What iopro saw of a guest's shell script (crates/iopro/tests/recordings).
#[test]
fn what_iopro_recorded_is_replayed() {
    let recording = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../iopro/tests/recordings/6.12.iopro"
    );
    let directory = tempfile::tempdir().unwrap();
    let sandbox = directory.path().join("sandbox");
    let output = replay(&[recording, "--onto", sandbox.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["unlike_operations"], 0, "{report:#}");
    // What the script wrote: the dd of one block is 63 calls of its own.
    assert_eq!(report["times"]["write"]["count"], 63);
    assert_eq!(report["times"]["rename"]["count"], 1);
    assert_eq!(report["times"]["unlink"]["count"], 1);
    // Onto the console, which no file stands for.
    assert_eq!(report["left_out"]["sendfile"], 3, "{report:#}");
    accounted(&report, 97);
}

#[test]
fn what_cannot_be_replayed_is_said_in_one_sentence_with_its_own_code() {
    let directory = tempfile::tempdir().unwrap();
    let broken = written(
        directory.path(),
        "broken",
        &TRACE.replace("20 d trim", "20 d trip"),
    );
    let no_trace = written(directory.path(), "no-trace", "hello\n");
    for (arguments, code, part) in [
        (vec![broken.as_str()], 2, "line 4 of"),
        (vec![no_trace.as_str()], 2, "no trace that is known"),
        (vec!["/nonexistent"], 2, "cannot read /nonexistent"),
        (vec![broken.as_str(), "--device", "tape"], 2, "line 4 of"),
        (vec![broken.as_str(), "--speed", "0"], 2, "give a number"),
        (
            vec![broken.as_str(), "--allow-left-out", "150%"],
            2,
            "give a share",
        ),
    ] {
        let output = replay(&arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(part), "{said}");
        assert!(output.stdout.is_empty());
    }
}

/// A program that writes by io_uring: strace shows its loader's reads.
#[test]
fn a_trace_of_which_most_would_be_left_out_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let ring = "7 1700000000.1 openat(AT_FDCWD, \"/lib/x.so\", O_RDONLY) = 3</lib/x.so> <0.1>\n\
        7 1700000000.2 read(3</lib/x.so>, \"\"..., 832) = 832 <0.1>\n\
        7 1700000000.3 io_uring_setup(4, {flags=0}) = 4<anon_inode:[io_uring]> <0.1>\n\
        7 1700000000.4 io_uring_enter(4<anon_inode:[io_uring]>, 4, 0, 0, NULL, 8) = 4 <0.1>\n";
    let trace = written(directory.path(), "ring", ring);
    let file = file_of(directory.path());
    let onto = ["--onto", file.to_str().unwrap(), "--buffered"];
    for mode in [&[][..], &onto] {
        let refused = replay(&[&[trace.as_str()], mode].concat());
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(10), "{said}");
        assert!(
            said.contains("80.0 % of the trace's reads, writes"),
            "{said}"
        );
        assert!(
            said.contains("1 io_uring_enter: strace does not show"),
            "{said}"
        );
        let blocks = std::fs::metadata(&file).unwrap().blocks();
        assert_eq!(blocks, 0, "something was played");
        let allowed = replay(&[&[trace.as_str(), "--allow-left-out", "80%"], mode].concat());
        let text = String::from_utf8_lossy(&allowed.stdout);
        assert!(
            text.contains("of the trace's 4 events 1 are played"),
            "{text}"
        );
        assert!(text.contains("80.0 % are left out (4)"), "{text}");
    }
    let nothing = written(directory.path(), "nothing", ring.lines().last().unwrap());
    let refused = replay(&[&nothing, "--allow-left-out", "100%"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(10), "{said}");
    assert!(
        said.contains("nothing of the trace can be played"),
        "{said}"
    );
}

/// A pipe has each byte once.
#[test]
fn a_trace_comes_through_a_pipe_as_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let recording = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../iopro/tests/recordings/6.12.iopro"
    );
    let table = "128166372003061629,hm,1,Read,383496192,32768,1331\n";
    let blkparse = "8,0 3 1 0.000000000 697 D WS 223490 + 8 [kjournald]\n";
    let traces = [
        TRACE,
        PHONE,
        table,
        blkparse,
        &std::fs::read_to_string(strace(directory.path())).unwrap(),
    ];
    let mut paths: Vec<String> = traces
        .iter()
        .enumerate()
        .map(|(at, text)| written(directory.path(), &at.to_string(), text))
        .collect();
    paths.push(recording.to_owned());
    for path in paths {
        let of = |command: String| {
            let output = Command::new("sh").args(["-c", &command]).output().unwrap();
            assert!(output.status.success(), "{command}: {output:?}");
            let mut report: Value = serde_json::from_slice(&output.stdout).unwrap();
            report["host_ns"].take();
            report["page_operations_per_host_s"].take();
            report
        };
        let lab = env!("CARGO_BIN_EXE_frontrow-lab");
        let whole = of(format!("{lab} replay {path} --json"));
        assert_eq!(of(format!("cat {path} | {lab} replay - --json")), whole);
        assert_eq!(
            of(format!("cat {path} | {lab} replay /dev/stdin --json")),
            whole
        );
    }
}

#[test]
fn a_table_is_read_by_its_columns() {
    let directory = tempfile::tempdir().unwrap();
    let table = "op;at;length\nwrite;0;8\nwrite;8;8\nread;0;8\n";
    let trace = written(directory.path(), "table", table);
    let columns = [
        "--columns",
        "op=op,offset=at:sectors,size=length:sectors",
        "--json",
    ];
    let output = replay(&[&[trace.as_str()], columns.as_slice()].concat());
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["counters"]["host_write_pages"], 2);
    assert!(
        report["notes"][0].as_str().unwrap().contains("no times"),
        "{report:#}"
    );
    let wrong = replay(&[&trace, "--columns", "time=1"]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
}

/// Two threads of an app and one of the kernel's.
const PHONE: &str = "proces,device,rw_flag,sector,size,timestamp\n\
    Pool-Thread-11,8388608,R,800,8,100.000000\n\
    kworker/3:1H-227,8388608,W,80000,64,100.000500\n\
    Pool-Thread-12,8388608,R,808,16,100.001000\n\
    kworker/3:1H-227,8388608,W,80064,64,100.002000\n\
    Render-13,8388608,W,1600,8,100.003000\n\
    kworker/3:1H-227,8388608,R,80000,8,250.000000\n";

#[test]
fn foreground_and_background_threads_are_two_processes_with_times_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let trace = written(directory.path(), "trace.csv", PHONE);
    let file = directory.path().join("file");
    let front = [
        "--onto",
        file.to_str().unwrap(),
        "--overwrite",
        "--buffered",
        "--prepare",
        "--pace",
        "mixed",
        "--length",
        "1",
        "--front",
        "Pool*,Render",
        "--json",
        "--",
        trace.as_str(),
    ];
    let output = replay(&front);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    crate::schema::check("lab replay", &report);
    assert_eq!(report["front"]["times"]["read"]["count"], 2);
    assert_eq!(report["front"]["times"]["write"]["pages"], 1);
    assert_eq!(report["behind"]["operations"], 2);
    assert_eq!(report["behind"]["times"]["write"]["pages"], 16);
    assert!(report["behind"]["times"]["read"].is_null());
    // Where everything is, is the same for both.
    assert_eq!(file.metadata().unwrap().len(), (1 + 2 + 1 + 16) * 4096);

    let output = replay(&[&["--alone"], &front[..]].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["front"]["operations"], 3);
    assert!(report["behind"].is_null());
    accounted(&report, 6);
}

#[test]
fn a_thread_that_is_not_in_the_trace_is_answered_with_those_that_are() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    let said = |text: &str, more: &[&str]| {
        let trace = written(directory.path(), "trace", text);
        let onto = [trace.as_str(), "--onto", file.to_str().unwrap(), "--front"];
        let output = replay(&[&onto[..], more].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(!file.exists());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let known = said(PHONE, &["Pool"]);
    assert!(
        known.contains("kworker/3:1H, Pool-Thread, Render"),
        "{known}"
    );
    let nameless = said(TRACE, &["app"]);
    assert!(nameless.contains("does not name its threads"), "{nameless}");
    let empty = said(PHONE, &["Render", "--from", "50", "--length", "10"]);
    assert!(empty.contains("nothing happened in that time"), "{empty}");
    let moved = ["Render", "--front-cgroup", "/nonexistent"];
    let cgroup = said(PHONE, &[&moved[..], &["--alone"]].concat());
    assert!(cgroup.contains("/nonexistent"), "{cgroup}");
    // The others would be played in the front's cgroup.
    let nowhere = said(PHONE, &moved);
    assert!(nowhere.contains("--behind-cgroup"), "{nowhere}");
}
