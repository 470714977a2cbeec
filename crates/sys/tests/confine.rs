//! What a confined process still gets to do, told by one that tries it. As root each is tried as nobody, too.

use rustix::io::Errno;
use rustix::process::{geteuid, getpid, getppid, test_kill_process};
use rustix::thread::{capabilities, no_new_privs};
use std::env;
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use sys::confine::{Capabilities, Confined, Confinement, Programs, drop_capabilities, to_change};
use sys::output::Workplace;

/// Variables of a process that is to be confined: its directory, and the user that it becomes.
const DIRECTORY: &str = "FRONTROW_CONFINED_IN";
const USER: &str = "FRONTROW_CONFINED_AS";
const NOBODY: u32 = 65534;

/// Runs `trial` in a process of its own, of which the test `name` is all: what is confined stays so.
fn in_a_process(name: &str, trial: fn(&Path)) {
    if let Some(directory) = env::var_os(DIRECTORY) {
        become_user();
        return trial(Path::new(&directory));
    }
    let users: &[u32] = match geteuid().is_root() {
        true => &[0, NOBODY],
        false => &[geteuid().as_raw()],
    };
    for user in users {
        let directory = tempfile::tempdir().unwrap();
        if *user == NOBODY {
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let output = Command::new(env::current_exe().unwrap())
            // The trial is then in the first thread, as a command is.
            .args(["--exact", "--nocapture", "--test-threads=1", name])
            .env(DIRECTORY, directory.path())
            .env(USER, user.to_string())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "as {user}: {said}{error}");
        assert!(said.contains("1 passed"), "{name} is no test: {said}");
    }
}

fn become_user() {
    let user: u32 = env::var(USER).unwrap().parse().unwrap();
    if user != geteuid().as_raw() {
        // SAFETY: the calls take plain numbers, and change all threads.
        let changed = unsafe {
            libc::setgroups(0, std::ptr::null()) == 0
                && libc::setgid(user) == 0
                && libc::setuid(user) == 0
        };
        assert!(changed, "{}", io::Error::last_os_error());
    }
}

fn has_landlock(confined: Confined) -> bool {
    if !confined.files {
        eprintln!("not tried: this kernel has no Landlock that lets files be moved (5.19)");
    }
    confined.files
}

fn has_seccomp(confined: Confined) -> bool {
    if !confined.calls {
        eprintln!("not tried: this kernel has no seccomp");
    }
    confined.calls
}

fn is_refused<T>(outcome: io::Result<T>) -> bool {
    outcome.is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
}

fn write(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// As this user, who could do it before.
fn could<T>(outcome: io::Result<T>) {
    outcome.unwrap();
}

fn effective() -> Capabilities {
    let sets = capabilities(None).unwrap();
    assert_eq!(sets.effective, sets.permitted);
    assert_eq!(sets.inheritable, Capabilities::empty());
    sets.effective
}

#[test]
fn a_reader_writes_its_output_and_opens_nothing_else() {
    in_a_process(
        "confine::a_reader_writes_its_output_and_opens_nothing_else",
        |directory| {
            let [other, output, new] = ["other", "output", "new"].map(|it| directory.join(it));
            fs::write(&other, "precious").unwrap();
            fs::write(&output, "of before").unwrap();
            let input = File::open(&other).unwrap();
            let temporary = Workplace::beside(&directory.join("tables")).unwrap();
            let work = Workplace::to_replace(&output).unwrap();
            could(File::open("/etc/passwd"));
            could(write(&other));
            let confinement = Confinement::of_reader().publishing(&work).unwrap();
            let confined = confinement.working_in(&temporary).unwrap().begin().unwrap();

            if has_landlock(confined) {
                for path in [Path::new("/etc/passwd"), &other, &output] {
                    assert!(is_refused(File::open(path)), "{path:?}");
                    assert!(is_refused(write(path)), "{path:?}");
                }
                assert!(is_refused(File::open("/etc/shadow")));
                assert!(is_refused(File::create(&new)));
                assert!(is_refused(fs::read_dir("/")));
            }
            if has_seccomp(confined) {
                let length = other.metadata().unwrap().len();
                let all = PermissionsExt::from_mode(0o4777);
                assert!(is_refused(fs::set_permissions(&other, all)));
                assert!(is_refused(chown(&other, Some(geteuid().as_raw()), None)));
                let path = CString::new(other.as_os_str().as_encoded_bytes()).unwrap();
                // SAFETY: the path is terminated and lives.
                let cut = unsafe { libc::truncate(path.as_ptr(), 1) };
                assert_eq!((cut, other.metadata().unwrap().len()), (-1, length));
            }
            // What is open already stays so.
            assert_eq!(io::read_to_string(input).unwrap(), "precious");
            for file in ["a", "b"] {
                fs::write(temporary.path(file), "rows").unwrap();
                assert_eq!(fs::read(temporary.path(file)).unwrap(), b"rows");
            }
            fs::remove_file(temporary.path("a")).unwrap();
            fs::write(work.path("page"), "whole").unwrap();
            work.replace("page").unwrap();
            assert_eq!(output.metadata().unwrap().len(), 5);
            drop(temporary);
            let names = |it: &Path| it.symlink_metadata().is_ok();
            assert!(names(&output) && names(&other));
        },
    );
}

#[test]
fn a_directory_is_published_as_well() {
    in_a_process("confine::a_directory_is_published_as_well", |directory| {
        let output = directory.join("output");
        let work = Workplace::beside(&output).unwrap();
        let confinement = Confinement::of_reader().publishing(&work).unwrap();
        confinement.begin().unwrap();
        fs::create_dir(work.path("made")).unwrap();
        fs::write(work.path("made/table.csv"), "a,b\n").unwrap();
        work.publish("made").unwrap();
        assert!(output.join("table.csv").is_file());
    });
}

#[test]
fn a_path_that_is_exchanged_leads_nowhere() {
    in_a_process(
        "confine::a_path_that_is_exchanged_leads_nowhere",
        |directory| {
            let [ours, theirs] = ["ours", "theirs"].map(|it| directory.join(it));
            for made in [&ours, &theirs] {
                fs::create_dir(made).unwrap();
            }
            let work = Workplace::beside(&ours.join("output")).unwrap();
            let confinement = Confinement::of_reader().publishing(&work).unwrap();
            fs::rename(&ours, directory.join("away")).unwrap();
            std::os::unix::fs::symlink(&theirs, &ours).unwrap();
            if has_landlock(confinement.begin().unwrap()) {
                assert!(is_refused(File::create(ours.join("x"))));
            }
            fs::write(work.path("x"), "whole").unwrap();
            work.publish("x").unwrap();
            assert!(directory.join("away/output").is_file());
        },
    );
}

#[test]
fn nobody_is_called_started_or_ended() {
    in_a_process("confine::nobody_is_called_started_or_ended", |directory| {
        let socket = directory.join("socket");
        let _listener = UnixListener::bind(&socket).unwrap();
        could(UnixStream::connect(&socket));
        let started = thread::spawn(thread::park);
        let confined = Confinement::of_reader().begin().unwrap();
        assert!(no_new_privs().unwrap());
        if !has_seccomp(confined) {
            return;
        }
        assert!(is_refused(UnixStream::connect(&socket)));
        assert!(is_refused(Command::new("true").spawn()));
        assert!(is_refused(Command::new("/proc/self/exe").spawn()));
        assert_eq!(test_kill_process(getppid().unwrap()), Err(Errno::PERM));
        assert_eq!(test_kill_process(getpid()), Ok(()));
        let ptrace = |request: i64| {
            // SAFETY: it asks for nothing that could be written to.
            let refused = unsafe { libc::syscall(libc::SYS_ptrace, request, 0, 0, 0) };
            (refused, Errno::from_io_error(&io::Error::last_os_error()))
        };
        assert_eq!(ptrace(0), (-1, Some(Errno::PERM)));
        // Threads are still begun, and those that ran before are held to it as well.
        let refused = thread::spawn(move || is_refused(UnixStream::connect(socket)));
        assert!(refused.join().unwrap());
        started.thread().unpark();
        started.join().unwrap();
    });
}

#[test]
fn a_thread_that_runs_already_calls_nobody() {
    in_a_process("confine::a_thread_that_runs_already_calls_nobody", |_| {
        let (tell, told) = std::sync::mpsc::channel();
        let running = thread::spawn(move || {
            told.recv().unwrap();
            is_refused(UnixStream::connect("/nowhere"))
        });
        if has_seccomp(Confinement::of_watcher().begin().unwrap()) {
            tell.send(()).unwrap();
            assert!(running.join().unwrap());
        }
    });
}

#[test]
fn capabilities_are_those_that_were_asked_for() {
    in_a_process(
        "confine::capabilities_are_those_that_were_asked_for",
        |directory| {
            let had = effective();
            let theirs = directory.join("theirs");
            fs::write(&theirs, "").unwrap();
            fs::set_permissions(&theirs, PermissionsExt::from_mode(0o0)).unwrap();
            let kept = Capabilities::DAC_READ_SEARCH;
            Confinement::of_watcher().keeping(kept).begin().unwrap();
            assert_eq!(effective(), had & kept);
            // A user has none, with which nothing of mode 0 is read.
            assert_eq!(File::open(&theirs).is_ok(), had.contains(kept));
            drop_capabilities().unwrap();
            assert_eq!(effective(), Capabilities::empty());
            assert!(is_refused(File::open(&theirs)));
        },
    );
}

#[test]
fn a_program_gets_no_more_and_writes_where_it_is_told() {
    in_a_process(
        "confine::a_program_gets_no_more_and_writes_where_it_is_told",
        |directory| {
            let other = directory.join("other");
            fs::write(&other, "precious").unwrap();
            let work = Workplace::beside(&directory.join("output")).unwrap();
            let confinement = Confinement::of_starter().unwrap();
            let confinement = confinement.publishing(&work).unwrap();
            let confined = confinement.begin().unwrap();
            // Its path by this process is for the programs of a process that is confined as a whole.
            let made = fs::canonicalize(work.path("")).unwrap().join("new");
            let script = "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; cat \"$0\"; \
                      echo new > \"$1\"; (echo lost > \"$0\") 2> \"$1.error\" || true";
            let output = Command::new("sh")
                .args(["-c", script])
                .args([&other, &made])
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(said.contains("CapEff:\t0000000000000000\n"), "{said}");
            assert!(said.contains("NoNewPrivs:\t1\n"), "{said}");
            assert_eq!(fs::read(&made).unwrap(), b"new\n");
            if has_landlock(confined) {
                assert_eq!(fs::read(&other).unwrap(), b"precious");
            }
        },
    );
}

#[test]
fn programs_in_the_kernel_are_read_but_not_loaded() {
    in_a_process(
        "confine::programs_in_the_kernel_are_read_but_not_loaded",
        |_| {
            const MAP_LOOKUP: i64 = 1;
            const PROG_LOAD: i64 = 5;
            let bpf = |command: i64| {
                // SAFETY: without a structure the kernel reads and writes nothing.
                unsafe { libc::syscall(libc::SYS_bpf, command, 0, 0) };
                Errno::from_io_error(&io::Error::last_os_error()).unwrap()
            };
            let before = bpf(MAP_LOOKUP);
            let watcher = Confinement::of_watcher().with_programs(Programs::Loaded);
            let confined = watcher.keeping(Capabilities::BPF).begin().unwrap();
            if has_seccomp(confined) {
                assert_eq!(bpf(MAP_LOOKUP), before);
                assert_eq!(bpf(PROG_LOAD), Errno::PERM);
            }
        },
    );
}

#[test]
fn only_a_directory_of_others_takes_capabilities() {
    let directory = tempfile::tempdir().unwrap();
    let needs = |path: &Path| to_change(&File::open(path).unwrap()).unwrap();
    assert_eq!(needs(directory.path()), Capabilities::empty());
    let others = match geteuid().is_root() {
        true => {
            let path = directory.path().join("theirs");
            fs::create_dir(&path).unwrap();
            chown(&path, Some(NOBODY), None).unwrap();
            path
        }
        false => PathBuf::from("/"),
    };
    assert_eq!(
        needs(&others),
        Capabilities::DAC_OVERRIDE | Capabilities::FOWNER
    );
}
