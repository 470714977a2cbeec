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
            Action::SyncAll => "sync all".to_owned(),
            Action::SyncRange {
                handle,
                offset,
                bytes,
                flags,
            } => format!("sync {} {offset}+{bytes} {flags}", of(handle)),
            Action::Allocate {
                handle,
                mode,
                offset,
                bytes,
            } => format!("allocate {} {offset}+{bytes} {mode}", of(handle)),
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
fn a_call_goes_on_after_a_message_of_strace() {
    // As terminals have it: the new process is told of in the middle of the call that makes it.
    let calls = read(
        r#"openat(AT_FDCWD, "/a", O_WRONLY|O_CREAT, 0644) = 3 <0.000100>
           [pid 41] clone(child_stack=NULL, flags=CLONE_FILES|SIGCHLDstrace: Process 43 attached
           , child_tidptr=0x7fe49186fa10) = 43 <0.000560>
           [pid 43] restart_syscall(<... resuming interrupted futex ...> <unfinished ...>
           [pid 41] clone3({flags=CLONE_FILES, stack_size=0x7fff00}Process 44 attached
            => {parent_tid=[44]}, 88) = 44 <0.000560>
           [pid 43] <... restart_syscall resumed>) = -1 ETIMEDOUT (Connection timed out)
           [pid 44] write(3, "x", 28) = 28 <0.000010>
           [pid 41] clone3({flags=CLONE_VM}strace: Process 45 attached
           [pid 41] write(3, "x", 2) = 2 <0.000010>"#,
    )
    .unwrap();
    assert_eq!(told(&calls), ["open a", "write a 0+28", "write a 28+2"]);
    let left = &calls.account().left_out;
    assert_eq!(left["cut by a message of strace"], 1, "{left:?}");
    assert_eq!(calls.account().changed["clone and fork, followed"], 2);
    assert_eq!(calls.account().read_events, 7);
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
        .account()
        .left_out
        .iter()
        .map(|(name, count)| (name.as_str(), *count))
        .collect();
    assert_eq!(
        left,
        [
            ("failed in the trace", 1),
            ("moved nothing", 1),
            ("of a descriptor that is no file's", 1),
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
    assert_eq!(calls.account().left_out["unfinished at the end"], 1);
    assert_eq!(
        calls.account().left_out["futex, whose begin is not in the trace"],
        1
    );
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
        ("1 99:00:00 read(3, \"\", 1) = 1", "no time"),
        ("1 1.0 close(3) = 0\n1 close(3) = 0", "the trace began with"),
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

#[test]
fn a_32_bit_program_writes_where_it_sought_to() {
    let calls = read(
        r#"4042  1479201234.100000 open("/data/app.db", O_RDWR|O_CREAT, 0644) = 3</data/app.db> <0.000050>
           4042  1479201234.120300 _llseek(3</data/app.db>, 8192, [8192], SEEK_SET) = 0 <0.000010>
           4042  1479201234.120400 write(3</data/app.db>, "abc"..., 512) = 512 <0.000010>
           4042  1479201234.120500 _llseek(3, 0, 4096, [12288], SEEK_CUR) = 0 <0.000010>
           4042  1479201234.120600 write(3</data/app.db>, "abc"..., 512) = 512 <0.000010>
           4042  1479201234.120700 ftruncate64(3</data/app.db>, 100) = 0 <0.000010>"#,
    )
    .unwrap();
    assert_eq!(
        told(&calls),
        [
            "open data/app.db",
            "write data/app.db 8192+512",
            "write data/app.db 12288+512",
            "truncate data/app.db 100",
        ]
    );
    assert_eq!(calls.account().changed["_llseek, followed"], 2);
}

#[test]
fn calls_without_a_read_or_write_in_their_name_move_data_too() {
    let calls = read(
        r#"1 1700000000.1 open("/a", O_RDONLY) = 3
           1 1700000000.2 open("/b", O_RDWR|O_CREAT) = 4
           1 1700000000.3 socket(AF_INET, SOCK_STREAM, IPPROTO_IP) = 5
           1 1700000000.4 copy_file_range(3, NULL, 4, [0] => [100], 100, 0) = 100
           1 1700000000.5 sendfile(5, 3, [4096] => [8192], 4096) = 4096
           1 1700000000.6 sendfile(4, 3, NULL, 50) = 50
           1 1700000000.7 pipe2([6, 7], O_CLOEXEC) = 0
           1 1700000000.8 splice(6, NULL, 4, NULL, 10, 0) = 10
           1 1700000000.9 write(7, "x", 1) = 1
           1 1700000001.0 sync_file_range(4, 0, 4096, SYNC_FILE_RANGE_WRITE) = 0
           1 1700000001.1 fallocate(4, FALLOC_FL_KEEP_SIZE, 0, 8192) = 0
           1 1700000001.2 fallocate(4, 0, 0, 8192) = 0
           1 1700000001.3 syncfs(4) = 0
           1 1700000001.4 sync() = 0
           1 1700000001.5 mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_SHARED, 4, 0) = 0x7f0000000000
           1 1700000001.6 msync(0x7f0000001000, 4096, MS_SYNC) = 0
           1 1700000001.7 msync(0x7f0000009000, 4096, MS_SYNC) = 0
           1 1700000001.8 msync(0x7f0000001000, 4096, MS_ASYNC) = 0
           1 1700000001.9 io_uring_enter(9, 8, 0, 0, NULL, 8) = 8
           1 1700000002.0 readahead(3, 0, 4096) = 0
           1 1700000002.1 read(9, "", 10) = 10"#,
    )
    .unwrap();
    assert_eq!(
        told(&calls),
        [
            "open a",
            "open b",
            "read a 0+100",
            "write b 0+100",
            "read a 4096+4096",
            "read a 100+50",
            "write b 0+50",
            "write b 50+10",
            "sync b 0+4096 2",
            "allocate b 0+8192 1",
            "allocate b 0+8192 0",
            "sync all",
            "sync all",
            "sync b",
        ]
    );
    let account = calls.account();
    assert_eq!(account.read_events, 21);
    assert_eq!(
        account.played_events + account.left_out.values().sum::<u64>(),
        21
    );
    // The stores before the msync and by the mapping; an msync and a read of what is not known; 8
    // requests of the ring and a readahead.
    assert_eq!(account.left_out_data_operations, 1 + 1 + 1 + 1 + 8 + 1);
    let of_blocks = calls.as_blocks();
    assert_eq!(of_blocks.operations().len(), 9);
    assert_eq!(
        of_blocks.account().left_out["open: no request of a device"],
        2
    );
    assert_eq!(of_blocks.account().read_events, 21);
}

#[test]
fn requests_of_io_submit_are_under_way_at_once() {
    let calls = read(
        r#"1 1700000000.1 open("/a", O_RDWR|O_DIRECT) = 3
           1 1700000000.2 io_submit(0x7f, 2, [{aio_data=0, aio_lio_opcode=IOCB_CMD_PWRITE, aio_fildes=3, aio_buf="x"..., aio_nbytes=4096, aio_offset=8192}, {aio_data=0, aio_lio_opcode=IOCB_CMD_PREAD, aio_fildes=3, aio_buf=0x7f, aio_nbytes=512, aio_offset=0}]) = 2
           1 1700000000.3 io_getevents(0x7f, 1, 2, [{data=0, obj=0x55, res=512, res2=0}, {data=0, obj=0x56, res=4096, res2=0}], NULL) = 2
           1 1700000000.4 io_submit(0x7f, 2, [{aio_lio_opcode=IOCB_CMD_FSYNC, aio_fildes=3}, ...]) = 2
           1 1700000000.5 io_submit(0x7f, 3, 0x7ffd) = 3"#,
    )
    .unwrap();
    assert_eq!(
        told(&calls),
        ["open a", "write a 8192+4096", "read a 0+512", "sync a"]
    );
    let lanes: Vec<u32> = calls.calls().iter().map(|it| it.lane).collect();
    assert_eq!(lanes, [0, 1, 2, 1]);
    assert_eq!(calls.account().left_out_data_operations, 4);
    assert_eq!(calls.account().read_events, 5);
}

#[test]
fn any_kind_of_times_orders_the_calls() {
    let of = |times: [&str; 3]| {
        let [one, two, three] = times;
        let text = format!(
            "{one}open(\"/a\", O_RDWR) = 3\n{two}write(3, \"x\", 1) = 1\n{three}fsync(3) = 0\n"
        );
        let calls = read(&text).unwrap();
        assert_eq!(told(&calls), ["open a", "write a 0+1", "sync a"]);
        let times: Vec<u64> = calls.calls().iter().map(|it| it.time_ns).collect();
        (times, calls.account().notes.concat())
    };
    let (times, note) = of(["23:59:59.900000 ", "00:00:00.000000 ", "00:00:00.500000 "]);
    assert_eq!(times, [0, 100_000_000, 600_000_000]);
    assert!(note.contains("after midnight"), "{note}");
    let (times, _) = of(["7 07:52:41 ", "7 07:52:41 ", "7 07:52:43 "]);
    assert_eq!(times, [0, 0, 2_000_000_000]);
    let (times, note) = of(["     0.000000 ", "     0.000100 ", "     0.000300 "]);
    assert_eq!(times, [0, 100_000, 400_000]);
    assert!(note.contains("-r"), "{note}");
    let (times, note) = of(["", "", ""]);
    assert_eq!(times, [0, 0, 0]);
    assert!(note.contains("no times"), "{note}");
    let (_, note) = of(["1700000000.1 ", "1700000000.2 ", "1700000000.3 "]);
    assert_eq!(note, "");
}

/// A line of strace, or two for one call.
fn any_call() -> impl Strategy<Value = String> {
    let calls = prop::sample::select(vec![
        "open(\"/a\", O_RDWR|O_CREAT) = N",
        "openat(AT_FDCWD, \"b\", O_WRONLY|O_APPEND) = N",
        "openat(AT_FDCWD, \"/dev/sda\", O_RDWR) = N",
        "openat(AT_FDCWD, \"/proc/x\", O_RDONLY) = N",
        "openat(AT_FDCWD, \"/c\", O_PATH) = N",
        "creat(\"/d\", 0600) = N",
        "close(N) = 0",
        "read(N, \"\"..., 100) = 100",
        "write(N, \"\"..., 10) = 10",
        "read(N</y>, \"\", 9) = 0",
        "pread64(N, \"\"..., 10, 4096) = 10",
        "pwritev2(N, [{}], 1, -1, 0) = 5",
        "write(2, \"\", 1) = 1",
        "writev(N<socket:[7]>, [], 1) = 3",
        "lseek(N, 5, SEEK_SET) = 5",
        "_llseek(N, 0, [77], SEEK_SET) = 0",
        "dup(N) = N",
        "dup2(N, N) = N",
        "fcntl(N, F_DUPFD, 0) = N",
        "fcntl(N, F_GETFL) = 0x8000",
        "socket(AF_UNIX, SOCK_STREAM, 0) = N",
        "pipe([N, N]) = 0",
        "socketpair(AF_UNIX, SOCK_STREAM, 0, [N, N]) = 0",
        "epoll_create1(0) = N",
        "futex(0x7f) = 0",
        "copy_file_range(N, NULL, N, [5], 10, 0) = 7",
        "sendfile(N, N, NULL, 10) = 7",
        "splice(N, [1], N, NULL, 10, 0) = 0",
        "fsync(N) = 0",
        "fdatasync(N) = 0",
        "sync() = 0",
        "syncfs(N) = 0",
        "sync_file_range(N, 0, 0, SYNC_FILE_RANGE_WRITE|0x8) = 0",
        "sync_file_range(N, 0, 0, 0) = 0",
        "msync(0x1000, 4096, MS_SYNC) = 0",
        "msync(0x1000, 1, MS_ASYNC) = 0",
        "mmap(NULL, 8192, PROT_WRITE, MAP_SHARED, N, 0) = 0x1000",
        "munmap(0x1000, 4096) = 0",
        "mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, N, 0) = 0x1000",
        "mmap(NULL, 8192, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x1000",
        "fallocate(N, FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE, 0, 10) = 0",
        "fallocate(N, FALLOC_FL_COLLAPSE_RANGE, 0, 10) = 0",
        "io_uring_enter(N, 4, 0, 0, NULL, 8) = 4",
        "io_submit(0x7f, 2, [{pwrite, fildes=N, str=\"\", nbytes=9, offset=1}, {poll, fildes=N}]) = 2",
        "io_getevents(0x7f, 1, 1, [], NULL) = 1",
        "readahead(N, 0, 10) = 0",
        "ioctl(N, FICLONE, N) = 0",
        "ioctl(N, TCGETS, {}) = 0",
        "ftruncate(N, 10) = 0",
        "truncate(\"/a\", 10) = 0",
        "rename(\"/a\", \"/e\") = 0",
        "renameat2(AT_FDCWD, \"/a\", N, \"/e\", RENAME_EXCHANGE) = 0",
        "unlink(\"/a\") = 0",
        "unlinkat(N, \"x\", AT_REMOVEDIR) = 0",
        "mkdir(\"/m\", 0700) = 0",
        "rmdir(\"/m\") = 0",
        "link(\"/a\", \"/l\") = 0",
        "chdir(\"/m\") = 0",
        "fchdir(N) = 0",
        "clone(flags=CLONE_FILES) = N",
        "fork() = N",
        "execve(\"/x\", [\"x\"], []) = 0",
        "read(N, 0x7f, 10) = -1 EAGAIN (Resource temporarily unavailable)",
        "exit_group(0) = ?",
        "close_range(3, 5, 0) = 0",
        "a_call_of_the_future(N, {a=[1, 2]}) = 0",
    ]);
    let part = prop::sample::select(vec![0u8, 0, 0, 0, 0, 0, 1, 2, 3]);
    (calls, prop::collection::vec(3u32..9, 3), 1u32..4, part).prop_map(
        |(call, numbers, thread, part)| {
            let mut numbers = numbers.into_iter().cycle();
            let mut text = String::new();
            for (at, piece) in call.split('N').enumerate() {
                // Names of calls and flags in capitals keep their letters.
                if at > 0 {
                    let before = text.chars().last().unwrap_or(' ');
                    let is_word = before.is_ascii_uppercase()
                        || before == '_'
                        || piece.starts_with(|it: char| it.is_ascii_uppercase() || it == '_');
                    match is_word {
                        true => text.push('N'),
                        false => text.push_str(&numbers.next().unwrap_or(3).to_string()),
                    }
                }
                text.push_str(piece);
            }
            let (name, rest) = text.split_once('(').unwrap();
            match part {
                1 => format!(
                    "{thread} {name}( <unfinished ...>\n{thread} <... {name} resumed>{rest}"
                ),
                2 => format!("{thread} {name}( <unfinished ...>"),
                3 => format!("{thread} <... {name} resumed>{rest}"),
                _ => format!("{thread} {text}"),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    /// Played and left out are what was read, in a directory and as block requests.
    #[test]
    fn no_call_is_lost_from_the_account(parts in prop::collection::vec(any_call(), 1..25)) {
        let mut events = 0;
        let mut under_way = std::collections::HashSet::new();
        let lines: Vec<&str> = parts.iter().flat_map(|it| it.lines()).collect();
        let mut reader = Reader::default();
        for line in &lines {
            let (thread, rest) = line.split_once(' ').unwrap();
            let known = under_way.contains(thread);
            if rest.starts_with("<... ") {
                // Another call than the one that is under way is an error of its own.
                if reader.take(line).is_err() {
                    return Ok(());
                }
                under_way.remove(thread);
                events += u64::from(!known);
                continue;
            }
            reader.take(line).map_err(TestCaseError::fail)?;
            events += 1;
            if rest.ends_with("...>") {
                under_way.insert(thread.to_owned());
            }
        }
        let calls = reader.finish();
        let blocks = calls.as_blocks();
        for account in [calls.account(), blocks.account()] {
            prop_assert_eq!(account.read_events, events, "{:?}", &lines);
            let left: u64 = account.left_out.values().sum();
            prop_assert_eq!(account.played_events + left, events, "{:?} {:?}", account, &lines);
            prop_assert!(account.changed.values().sum::<u64>() <= account.played_events);
        }
        let window = blocks.clone().window(0, 1);
        let left: u64 = window.account().left_out.values().sum();
        prop_assert_eq!(window.account().played_events + left, events);
        prop_assert_eq!(blocks.account().played_data_operations, blocks.operations().len() as u64);
    }
}
