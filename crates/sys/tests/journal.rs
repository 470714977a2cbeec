//! What was changed can be put back, whatever happened in between.

use std::fs;
use std::path::Path;
use std::thread;
use sys::knobs::{Error, Home, Journal, Restored, Standing};
use tempfile::TempDir;

const SCHEDULER: &str = "/sys/block/sda/queue/scheduler";
const NR_REQUESTS: &str = "/sys/block/sda/queue/nr_requests";
const JOURNAL: &str = "run/frontrow/test.jsonl";

fn system() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, value) in [
        ("proc/sys/kernel/random/boot_id", "boot-1"),
        (&SCHEDULER[1..], "none [mq-deadline] kyber"),
        (&NR_REQUESTS[1..], "64"),
    ] {
        fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
        fs::write(root.path().join(path), format!("{value}\n")).unwrap();
    }
    root
}

fn open(root: &TempDir) -> Journal {
    Journal::open(root.path(), Home::Tools, "test").unwrap()
}

fn set(journal: &mut Journal, path: &str, value: &str) {
    journal.set(Path::new(path), value, "a test").unwrap();
}

/// A journal with these changes, made one after another.
fn changed(root: &TempDir, changes: &[(&str, &str)]) -> Journal {
    let mut journal = open(root);
    for (path, value) in changes {
        set(&mut journal, path, value);
    }
    journal
}

fn value(root: &TempDir, path: &str) -> String {
    sys::knobs::read_choice(&root.path().join(&path[1..])).unwrap()
}

/// The kernel does this when the scheduler is switched.
fn kernel_sets(root: &TempDir, path: &str, value: &str) {
    fs::write(root.path().join(&path[1..]), format!("{value}\n")).unwrap();
}

#[test]
fn every_knob_gets_back_what_it_held() {
    let root = system();
    let journal = changed(
        &root,
        &[
            (SCHEDULER, "frontrow"),
            (NR_REQUESTS, "128"),
            (NR_REQUESTS, "256"),
        ],
    );
    assert_eq!(value(&root, NR_REQUESTS), "256");

    let restored = journal.restore().unwrap();
    assert_eq!(value(&root, SCHEDULER), "mq-deadline");
    assert_eq!(value(&root, NR_REQUESTS), "64");
    let order: Vec<_> = restored
        .iter()
        .map(|(change, outcome)| (change.before.as_str(), *outcome))
        .collect();
    assert_eq!(
        order,
        [
            ("64", Restored::Written),
            ("mq-deadline", Restored::Written)
        ]
    );
    assert!(!Journal::exists(root.path(), Home::Tools, "test"));
}

#[test]
fn what_the_kernel_changes_along_is_remembered() {
    let root = system();
    let mut journal = open(&root);
    journal
        .remember(Path::new(NR_REQUESTS), "switching the scheduler resets it")
        .unwrap();
    set(&mut journal, SCHEDULER, "frontrow");
    kernel_sets(&root, NR_REQUESTS, "2");
    journal.restore().unwrap();
    assert_eq!(value(&root, NR_REQUESTS), "64");
}

#[test]
fn the_net_change_is_told_from_what_the_knobs_hold() {
    let root = system();
    let mut journal = open(&root);
    journal
        .remember(Path::new(NR_REQUESTS), "switching the scheduler resets it")
        .unwrap();
    set(&mut journal, SCHEDULER, "frontrow");
    let told = |journal: &Journal| -> Vec<_> {
        let net = sys::knobs::net(root.path(), journal.changes()).unwrap();
        net.into_iter()
            .map(|change| (change.before, change.value.unwrap()))
            .collect()
    };
    let owned = |before: &str, value: &str| (before.to_owned(), value.to_owned());
    assert_eq!(told(&journal), [owned("mq-deadline", "frontrow")]);
    kernel_sets(&root, NR_REQUESTS, "2");
    set(&mut journal, NR_REQUESTS, "128");
    assert_eq!(
        told(&journal),
        [owned("64", "128"), owned("mq-deadline", "frontrow")]
    );
}

#[test]
fn a_crash_loses_no_change() {
    let root = system();
    drop(changed(
        &root,
        &[(SCHEDULER, "frontrow"), (NR_REQUESTS, "128")],
    ));

    // The next change was being written down when the power of the process ended.
    let path = root.path().join(JOURNAL);
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str(r#"{"path":"/sys/blo"#);
    fs::write(&path, text).unwrap();

    let mut journal = open(&root);
    assert_eq!(journal.changes().len(), 2);
    set(&mut journal, NR_REQUESTS, "32");
    drop(journal);
    open(&root).restore().unwrap();
    assert_eq!(value(&root, SCHEDULER), "mq-deadline");
    assert_eq!(value(&root, NR_REQUESTS), "64");
}

#[test]
fn a_change_that_was_written_down_but_not_made_is_undone_by_doing_nothing() {
    let root = system();
    let journal = changed(&root, &[(NR_REQUESTS, "128")]);
    kernel_sets(&root, NR_REQUESTS, "64");
    let restored = journal.restore().unwrap();
    assert_eq!(restored[0].1, Restored::Unchanged);
}

#[test]
fn what_somebody_else_has_set_since_stays() {
    let root = system();
    let journal = changed(
        &root,
        &[
            (NR_REQUESTS, "128"),
            (NR_REQUESTS, "256"),
            (SCHEDULER, "frontrow"),
        ],
    );
    assert_eq!(
        journal.standing(Path::new(NR_REQUESTS)).unwrap(),
        Standing::Ours
    );
    kernel_sets(&root, NR_REQUESTS, "32");
    assert_eq!(
        journal.standing(Path::new(NR_REQUESTS)).unwrap(),
        Standing::Theirs
    );
    let restored = journal.restore().unwrap();
    assert_eq!(restored[1].1, Restored::Overruled);
    assert_eq!(value(&root, NR_REQUESTS), "32");
    assert_eq!(value(&root, SCHEDULER), "mq-deadline");
}

#[test]
fn one_knob_can_be_put_back_and_others_stay_changed() {
    let root = system();
    let mut journal = changed(&root, &[(NR_REQUESTS, "128"), (SCHEDULER, "frontrow")]);
    let restored = journal.put_back(Path::new(NR_REQUESTS)).unwrap();
    assert_eq!(restored, Restored::Written);
    assert_eq!(value(&root, NR_REQUESTS), "64");
    assert_eq!(value(&root, SCHEDULER), "frontrow");
    // Whatever it is set to from now on is not for us to undo.
    journal.settle().unwrap();
    kernel_sets(&root, NR_REQUESTS, "128");
    drop(journal);
    open(&root).restore().unwrap();
    assert_eq!(value(&root, NR_REQUESTS), "128");
    assert_eq!(value(&root, SCHEDULER), "mq-deadline");
}

#[test]
fn a_settled_journal_is_as_long_as_what_is_in_force() {
    let root = system();
    let mut journal = open(&root);
    for tags in 100..200 {
        set(&mut journal, NR_REQUESTS, &tags.to_string());
        journal.settle().unwrap();
    }
    let text = fs::read_to_string(root.path().join(JOURNAL)).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    // It is the same journal to others, who wait.
    let waiting = thread::spawn({
        let path = root.path().to_owned();
        move || {
            Journal::open(&path, Home::Tools, "test")
                .unwrap()
                .restore()
                .unwrap()
        }
    });
    set(&mut journal, SCHEDULER, "frontrow");
    drop(journal);
    waiting.join().unwrap();
    assert_eq!(value(&root, NR_REQUESTS), "64");
    assert_eq!(value(&root, SCHEDULER), "mq-deadline");
}

#[test]
fn no_change_outlives_a_boot() {
    let root = system();
    drop(changed(&root, &[(NR_REQUESTS, "128")]));
    kernel_sets(&root, "/proc/sys/kernel/random/boot_id", "boot-2");
    assert!(
        Journal::peek(root.path(), Home::Tools, "test")
            .unwrap()
            .is_empty()
    );
    assert!(open(&root).restore().unwrap().is_empty());
    assert_eq!(value(&root, NR_REQUESTS), "128");
}

#[test]
fn a_value_that_is_there_already_is_no_change() {
    let root = system();
    let journal = changed(&root, &[(SCHEDULER, "mq-deadline")]);
    assert!(journal.changes().is_empty());
}

#[test]
fn a_knob_that_is_gone_does_not_keep_the_others_from_going_back() {
    let root = system();
    let journal = changed(&root, &[(NR_REQUESTS, "128"), (SCHEDULER, "frontrow")]);
    fs::remove_file(root.path().join(&SCHEDULER[1..])).unwrap();
    let restored = journal.restore().unwrap();
    assert_eq!(restored[0].1, Restored::Gone);
    assert_eq!(value(&root, NR_REQUESTS), "64");
}

#[test]
fn a_knob_that_refuses_keeps_the_journal() {
    let root = system();
    let journal = changed(&root, &[(NR_REQUESTS, "128"), (SCHEDULER, "frontrow")]);
    let scheduler = root.path().join(&SCHEDULER[1..]);
    fs::remove_file(&scheduler).unwrap();
    fs::create_dir(&scheduler).unwrap();
    assert!(journal.restore().is_err());
    assert_eq!(value(&root, NR_REQUESTS), "64");
    assert_eq!(
        Journal::peek(root.path(), Home::Tools, "test")
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn nothing_is_changed_without_a_journal() {
    let root = system();
    fs::write(root.path().join("run"), "not a directory").unwrap();
    let error = Journal::open(root.path(), Home::Tools, "test").unwrap_err();
    assert!(matches!(error, Error::Journal { .. }), "{error}");
}

#[test]
fn a_knob_that_cannot_be_read_is_not_changed() {
    let root = system();
    let mut journal = open(&root);
    let missing = Path::new("/sys/block/sdb/queue/scheduler");
    let error = journal.set(missing, "none", "a test").unwrap_err();
    assert!(error.to_string().contains("sdb/queue/scheduler"), "{error}");
    assert!(journal.changes().is_empty());
}

#[test]
fn a_damaged_journal_is_not_guessed_at() {
    let root = system();
    drop(open(&root));
    let path = root.path().join(JOURNAL);
    let text = fs::read_to_string(&path).unwrap() + "not a change\n";
    fs::write(&path, text).unwrap();
    let error = Journal::open(root.path(), Home::Tools, "test").unwrap_err();
    assert!(matches!(error, Error::Damaged { line: 2, .. }), "{error}");
}

const FOREGROUND: &str = "/sys/block/sda/queue/iosched/foreground";

fn make_cgroup(root: &TempDir, path: &str) {
    fs::create_dir_all(root.path().join("sys/fs/cgroup").join(&path[1..])).unwrap();
}

/// Cgroups of a user's own, whose path holds another's in brackets.
#[test]
fn brackets_in_the_name_of_a_cgroup_choose_nothing() {
    let root = system();
    let own = "/user.slice/user-1000.slice/x [/user.slice/user-1001.slice]";
    make_cgroup(&root, own);
    make_cgroup(&root, "/app");
    kernel_sets(&root, "/sys/block/sda/queue/nr_requests", "64");
    fs::create_dir_all(root.path().join("sys/block/sda/queue/iosched")).unwrap();
    kernel_sets(&root, FOREGROUND, own);
    let journal = changed(&root, &[(FOREGROUND, "/app")]);
    assert_eq!(journal.changes()[0].before, own);
    journal.restore().unwrap();
    let held = fs::read_to_string(root.path().join(&FOREGROUND[1..])).unwrap();
    assert_eq!(held, own, "another user's cgroup was written");
}

/// The kernel leaves out a cgroup that its user removes just then, who makes it again at once.
#[test]
fn a_list_that_lost_a_cgroup_on_the_way_is_nobody_elses() {
    let root = system();
    kernel_sets(&root, "/sys/block/sda/queue/nr_requests", "64");
    fs::create_dir_all(root.path().join("sys/block/sda/queue/iosched")).unwrap();
    kernel_sets(&root, FOREGROUND, "none");
    let path = Path::new(FOREGROUND);
    let mut journal = changed(&root, &[(FOREGROUND, "/one\n/two\n/three")]);
    for (held, standing) in [
        ("/one\n/three", Standing::Ours),
        ("/three\n/one", Standing::Theirs),
        ("/one\n/four", Standing::Theirs),
    ] {
        kernel_sets(&root, FOREGROUND, held);
        assert_eq!(journal.standing(path).unwrap(), standing, "{held}");
    }
    // Of what is no list, a part is something else.
    set(&mut journal, NR_REQUESTS, "128");
    kernel_sets(&root, NR_REQUESTS, "12");
    let standing = journal.standing(Path::new(NR_REQUESTS)).unwrap();
    assert_eq!(standing, Standing::Theirs);
}

/// The kernel refuses a list of which nothing is there any more, and would for ever.
#[test]
fn a_cgroup_that_has_gone_is_left_out_of_the_list_that_is_put_back() {
    let root = system();
    for cgroup in ["/gone", "/stays", "/app"] {
        make_cgroup(&root, cgroup);
    }
    fs::create_dir_all(root.path().join("sys/block/sda/queue/iosched")).unwrap();
    for (before, after) in [("20 /gone\n30 /stays", "30 /stays"), ("20 /gone", "none")] {
        kernel_sets(&root, FOREGROUND, before);
        make_cgroup(&root, "/gone");
        let mut journal = open(&root);
        set(&mut journal, FOREGROUND, "/app");
        fs::remove_dir(root.path().join("sys/fs/cgroup/gone")).unwrap();
        journal.restore().unwrap();
        assert_eq!(value(&root, FOREGROUND), after);
    }
}

/// Anybody can hold a lock on a file that everybody may read.
#[test]
fn a_lock_on_the_journal_holds_nobody_up() {
    let root = system();
    drop(changed(&root, &[(NR_REQUESTS, "128")]));
    let theirs = fs::File::open(root.path().join(JOURNAL)).unwrap();
    theirs.lock().unwrap();
    open(&root).restore().unwrap();
    assert_eq!(value(&root, NR_REQUESTS), "64");
}

#[test]
fn only_the_owner_can_open_the_lock_and_read_what_users_do() {
    use std::os::unix::fs::PermissionsExt;
    let root = system();
    let mode = |path: &str| {
        let metadata = fs::metadata(root.path().join(path)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    let _tools = open(&root);
    let _daemon = Journal::open(root.path(), Home::Daemon, "test").unwrap();
    assert_eq!(mode("run/frontrow/test.lock"), 0o600);
    assert_eq!(mode("run/frontrowd/test.lock"), 0o600);
    assert_eq!(mode("run/frontrowd/test.jsonl"), 0o600);
}

/// A journal in a directory of somebody else's is no order to write what it says.
#[test]
fn what_is_no_knob_is_not_written_whatever_a_journal_says() {
    let root = system();
    drop(changed(&root, &[(NR_REQUESTS, "128")]));
    let target = "/proc/sys/kernel/core_pattern";
    kernel_sets(&root, target, "core");
    let path = root.path().join(JOURNAL);
    let line = format!(r#"{{"path":"{target}","before":"|/evil","value":"core","reason":""}}"#);
    fs::write(&path, fs::read_to_string(&path).unwrap() + &line + "\n").unwrap();
    let error = open(&root).restore().unwrap_err();
    assert!(matches!(error, Error::NoKnob(_)), "{error}");
    assert_eq!(value(&root, target), "core");
    // The others go back all the same.
    assert_eq!(value(&root, NR_REQUESTS), "64");
}

#[test]
fn a_link_in_place_of_the_journal_is_not_followed() {
    let root = system();
    let theirs = root.path().join("theirs");
    fs::write(&theirs, "as it was").unwrap();
    for name in ["test.lock", "test.jsonl"] {
        let link = root.path().join("run/frontrow").join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&theirs, &link).unwrap();
        assert!(Journal::open(root.path(), Home::Tools, "test").is_err());
        assert_eq!(fs::read_to_string(&theirs).unwrap(), "as it was");
        fs::remove_file(link).unwrap();
    }
}

#[test]
fn no_terminal_acts_on_what_is_shown_of_a_change() {
    let change = sys::knobs::Change {
        path: "/sys/fs/cgroup/a\u{1b}]0;b\u{7}/memory.high".into(),
        before: "/one\n/two\u{1b}[2J\u{202e}".to_owned(),
        value: Some("/caf\u{e9} \u{9b}2J".to_owned()),
        reason: "a test".to_owned(),
    };
    let text = format!("{change:#}");
    assert!(!text.chars().any(char::is_control), "{text:?}");
    assert!(
        text.contains("/one, /two\\u{1b}[2J\\u{202e} -> /caf\u{e9} \\u{9b}2J (a test)"),
        "{text}"
    );
}
