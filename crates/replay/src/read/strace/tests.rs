use super::*;
use crate::calls::{Action, Before};
use proptest::prelude::*;

fn read(text: &str) -> Result<Calls, String> {
    let mut reader = Reader::default();
    for line in text.lines() {
        reader.take(line.trim())?;
    }
    Ok(reader.finish())
}

fn path(calls: &Calls, number: u32) -> String {
    String::from_utf8(calls.paths()[number as usize].clone()).unwrap()
}

/// A line of text for each call: `read a/b 0+10`.
fn told(calls: &Calls) -> Vec<String> {
    let of = |handle: u32| path(calls, calls.handles()[handle as usize].path);
    calls
        .calls()
        .iter()
        .map(|call| match call.action {
            Action::Open { handle } => format!("open {}", of(handle)),
            Action::Close { handle } => format!("close {}", of(handle)),
            Action::Read {
                handle,
                offset,
                bytes,
            } => format!("read {} {offset}+{bytes}", of(handle)),
            Action::Write {
                handle,
                offset,
                bytes,
            } => format!("write {} {offset}+{bytes}", of(handle)),
            Action::Sync { handle, .. } => format!("sync {}", of(handle)),
            Action::Truncate { handle, bytes } => format!("truncate {} {bytes}", of(handle)),
            Action::Rename { from, to } => {
                format!("rename {} {}", path(calls, from), path(calls, to))
            }
            Action::Unlink { path: it } => format!("unlink {}", path(calls, it)),
            Action::MakeDirectory { path: it } => format!("mkdir {}", path(calls, it)),
            Action::RemoveDirectory { path: it } => format!("rmdir {}", path(calls, it)),
        })
        .collect()
}

#[test]
fn positions_duplicates_and_directories_are_followed() {
    let calls = read(
        r#"100 1700000000.000001 chdir("/home/u") = 0 <0.000001>
           100 1700000000.000002 openat(AT_FDCWD, "a", O_RDWR|O_CREAT, 0644) = 3 <0.000010>
           100 1700000000.000100 write(3, "xx"..., 100) = 100 <0.000005>
           100 1700000000.000200 dup(3) = 4 <0.000001>
           100 1700000000.000300 write(4, "yy", 2) = 2 <0.000001>
           100 1700000000.000400 lseek(3, 0, SEEK_SET) = 0 <0.000001>
           100 1700000000.000500 read(4, "xx"..., 4096) = 102 <0.000001>
           100 1700000000.000510 read(4, "", 4096) = 0 <0.000001>
           100 1700000000.000600 pread64(3, "x", 1, 7) = 1 <0.000001>
           100 1700000000.000700 open("log", O_WRONLY|O_APPEND|O_CREAT, 0600) = 5 <0.000001>
           100 1700000000.000800 write(5, "1", 1) = 1 <0.000001>
           100 1700000000.000900 pwrite64(5, "2", 1, 0) = 1 <0.000001>
           100 1700000000.001000 close(3) = 0 <0.000001>
           100 1700000000.001100 fdatasync(4) = 0 <0.000001>
           100 1700000000.001200 close(4) = 0 <0.000001>
           100 1700000000.001300 openat(AT_FDCWD</tmp>, "d", O_RDONLY|O_DIRECTORY) = 6</tmp/d>
           100 1700000000.001400 renameat2(AT_FDCWD, "a", 6, "b", RENAME_NOREPLACE) = 0
           100 1700000000.001500 unlinkat(6, "b", 0) = 0
           100 1700000000.001600 ftruncate(5, 1) = 0
           100 1700000000.001700 access("a", F_OK) = -1 ENOENT (No such file or directory)
           100 1700000000.001800 stat("/x", {st_mode=S_IFREG|0644, ...}) = 0
           100 1700000000.001900 read(0, "a", 1) = 1
           100 1700000000.002000 +++ exited with 0 +++"#,
    )
    .unwrap();
    assert_eq!(
        told(&calls),
        [
            "open home/u/a",
            "write home/u/a 0+100",
            "write home/u/a 100+2",
            "read home/u/a 0+102",
            "read home/u/a 7+1",
            "open home/u/log",
            "write home/u/log 0+1",
            "write home/u/log 1+1",
            "sync home/u/a",
            "close home/u/a",
            "open tmp/d",
            "rename home/u/a tmp/d/b",
            "unlink tmp/d/b",
            "truncate home/u/log 1",
        ]
    );
    let left: Vec<_> = calls
        .left_out()
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    assert_eq!(
        left,
        [
            ("failed in the trace", 1),
            ("moved nothing", 1),
            ("of a descriptor that is no file's, or not known", 1),
            ("stat", 1),
        ]
    );
    assert_eq!(calls.calls()[1].time_ns, 98_000);
    assert_eq!(calls.calls()[1].took_ns, 5_000);
}

#[test]
fn a_call_in_two_lines_is_one_that_began_with_the_first() {
    let calls = read(
        r#"strace: Process 7 attached
           [pid     7] 1700000000.000001 open("/a", O_RDONLY) = 3 <0.000001>
           [pid     7] 1700000000.000100 read(3,  <unfinished ...>
           [pid     8] 1700000000.000200 fsync(3) = 0 <0.000001>
           [pid     7] 1700000000.000300 <... read resumed>"abc"..., 4096) = 4096 <0.000200>
           [pid     8] 1700000000.000400 --- SIGCHLD {si_signo=SIGCHLD} ---
           [pid     9] 1700000000.000400 <... futex resumed>) = 0 <0.1>
           [pid     7] 1700000000.000500 write(3, "x", 1 <unfinished ...>"#,
    )
    .unwrap();
    assert_eq!(told(&calls), ["open a", "read a 0+4096", "sync a"]);
    let lanes: Vec<u32> = calls.calls().iter().map(|it| it.lane).collect();
    assert_eq!(lanes, [0, 0, 1]);
    assert_eq!(calls.calls()[1].took_ns, 200_000);
    assert_eq!(calls.left_out()["unfinished at the end"], 1);
    assert_eq!(calls.left_out()["futex"], 1);
}

#[test]
fn processes_have_their_own_descriptors_and_threads_their_processes() {
    let calls = read(
        r#"1 1700000000.1 open("/a", O_RDONLY) = 3
           1 1700000000.2 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) = 2
           1 1700000000.3 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 3
           2 1700000000.4 close(3) = 0
           2 1700000000.5 open("/b", O_RDONLY) = 3
           2 1700000000.6 read(3, "", 10) = 10
           3 1700000000.7 read(3, "", 10) = 10
           1 1700000000.8 read(3</a>, "", 10) = 10
           1 1700000000.9 read(9</known/by/name>, "", 10) = 10"#,
    )
    .unwrap();
    assert_eq!(
        told(&calls),
        [
            "open a",
            "open b",
            "read b 0+10",
            "read a 0+10",
            "read a 10+10",
            "read known/by/name 0+10",
        ]
    );
    let known = calls
        .paths()
        .iter()
        .position(|it| it == b"known/by/name")
        .unwrap();
    assert_eq!(calls.before()[known], Before::File { bytes: 10 });
}

#[test]
fn a_line_that_is_none_ends_it() {
    for (line, reason) in [
        ("1 read(3, \"\", 1) = 1", "no time since 1970"),
        ("1 0.000100 read(3, \"\", 1) = 1", "no time since 1970"),
        ("x 1700000000.1 read(3) = 1", "no number of a thread"),
        ("1 1700000000.1 read(3, \"\", 1) = ", "no result"),
        (
            "1 1700000000.1 open(\"/a\"..., O_RDONLY) = 3",
            "no whole path",
        ),
        ("1 1700000000.1 open(\"/a\") = 3", "too few arguments"),
        ("1 1700000000.1 close(x) = 0", "no descriptor"),
        ("1 1700000000.1 <... read", "goes on with nothing"),
    ] {
        let said = read(line).unwrap_err();
        assert!(said.contains(reason), "{line}: {said}");
    }
}

proptest! {
    #[test]
    fn no_lines_of_words_make_it_panic(
        lines in prop::collection::vec(
            prop::collection::vec(
                prop::sample::select(vec![
                    "open(", "openat(AT_FDCWD, ", "read(3, ", "pwrite64(3, \"\", 1, ", "close(",
                    "dup2(3, ", "clone(", "ftruncate(3, ", "rename(", "lseek(3, ", "\"/a\"",
                    "\"/a/../..\"", ", ", ")", " = 3", " = -1", " = 99999999999999", " = ?",
                    "3", "18446744073709551615", "<unfinished ...>", "<... read resumed>",
                    "O_RDWR|O_APPEND", "CLONE_FILES", "</b>", " <0.5>", "F_DUPFD",
                ]),
                0..10,
            ),
            0..30,
        )
    ) {
        let mut reader = Reader::default();
        for words in lines {
            let _ = reader.take(&format!("1 1700000000.1 {}", words.concat()));
        }
        let calls = reader.finish();
        // The calls can also be printed and laid out.
        let _ = (told(&calls), calls.as_blocks());
    }
}
