//! Builder of a trace from calls in the order of their ends. It resolves which file a path means,
//! what existed before the trace, and how large files become.

use super::{Action, Before, Call, Calls, Handle};
use crate::account::{Account, Fate};
use std::collections::HashMap;

/// Limit of a file's size; no file system has larger files.
const FILE_LIMIT_BYTES: u64 = 1 << 44;

/// Limit of the size of all files together, so that device addresses cannot overflow.
const ALL_LIMIT_BYTES: u64 = 1 << 62;

/// Most bytes that one call moves (MAX_RW_COUNT in include/linux/fs.h).
const CALL_LIMIT_BYTES: u64 = 0x7fff_f000;

/// The kernel's limits PATH_MAX and NAME_MAX.
const PATH_LIMIT_BYTES: usize = 4096;
const NAME_LIMIT_BYTES: usize = 255;

/// Top directories whose files are not on a disk.
const PSEUDO: [&[u8]; 3] = [b"proc", b"sys", b"dev"];

/// Time, duration and thread of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// Begin of the call on the trace's clock, in nanoseconds.
    pub time_ns: u64,
    /// Duration of the call, in nanoseconds.
    pub took_ns: u64,
    /// Number of the thread that called, from 0.
    pub lane: u32,
}

/// Flags of an open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opening {
    /// O_WRONLY or O_RDWR: the file is opened for writing.
    pub write: bool,
    /// O_CREAT: a missing file is created.
    pub create: bool,
    /// O_EXCL: an existing file is an error.
    pub exclusive: bool,
    /// O_TRUNC: the file becomes empty.
    pub truncate: bool,
    /// O_APPEND: writes go to the end of the file.
    pub append: bool,
    /// O_DIRECT: the I/O bypasses the page cache.
    pub direct: bool,
    /// O_SYNC or O_DSYNC: writes wait for the device.
    pub sync: bool,
    /// O_DIRECTORY: only a directory can be opened.
    pub directory: bool,
}

#[cfg(test)]
impl Opening {
    /// As `open(path, O_RDONLY)`.
    pub const READ: Opening = Opening {
        write: false,
        create: false,
        exclusive: false,
        truncate: false,
        append: false,
        direct: false,
        sync: false,
        directory: false,
    };

    /// As `open(path, O_RDWR | O_CREAT | O_EXCL)`.
    pub const CREATE: Opening = Opening {
        write: true,
        create: true,
        exclusive: true,
        ..Opening::READ
    };
}

/// State of a file during the trace.
#[derive(Clone, Debug, Default)]
struct File {
    /// Its first open may have created it.
    may_be_new: bool,
    /// Smallest size that it had before the trace, since the trace reads so far.
    first_bytes: u64,
    /// The file was truncated to this size; bytes beyond it are not from before the trace.
    cut_bytes: u64,
    /// Bytes up to here were written or truncated during the trace.
    known_bytes: u64,
    /// Current size in bytes.
    size: u64,
    /// Largest size so far, in bytes.
    most_bytes: u64,
}

/// State of a path when it was first named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    File(u32),
    Directory,
    Nothing,
}

/// Builds [`Calls`] from the calls of threads.
#[derive(Debug, Default)]
pub struct Builder {
    calls: Vec<Call>,
    handles: Vec<Handle>,
    paths: Vec<Vec<u8>>,
    path_numbers: HashMap<Vec<u8>, u32>,
    first: Vec<Option<First>>,
    files: Vec<File>,
    /// Number of the file that each path means now; `None` if it was removed.
    names: HashMap<u32, Option<u32>>,
    /// Sum of the largest sizes of all files.
    all_bytes: u64,
    account: Account,
    account_of_blocks: Account,
    /// Number of the calls that belong to events which were counted.
    counted: usize,
}

impl Builder {
    /// Number of calls so far.
    pub fn count(&self) -> usize {
        self.calls.len()
    }

    /// Counts an event of the trace, whose actions are those that were added since the last one.
    pub fn event(&mut self, fate: &Fate) {
        let actions = &self.calls[self.counted..];
        let requests = actions.iter().filter(|it| it.action.is_request()).count() as u64;
        self.account.count(fate, requests);
        match (fate, actions.first()) {
            (Fate::Played | Fate::Changed { .. }, Some(first)) if requests == 0 => {
                let kind = Action::KINDS[first.action.kind()];
                let what = format!("{kind}: no request of a device");
                let lost = match fate {
                    Fate::Changed { lost, .. } => *lost,
                    _ => 0,
                };
                self.account_of_blocks.leave_out(&what, 1, lost);
            }
            _ => self.account_of_blocks.count(fate, requests),
        }
        self.counted = self.calls.len();
    }

    /// Adds a note to the account.
    pub fn note(&mut self, note: &str) {
        self.account.note(note);
        self.account_of_blocks.note(note);
    }

    /// Adds an open and returns its handle. `None` for a file that is not on a disk.
    ///
    /// # Errors
    /// A sentence that says why no machine has such a path.
    pub fn open(
        &mut self,
        when: When,
        path: &[u8],
        opening: Opening,
    ) -> Result<Option<u32>, String> {
        let Some(path) = self.path(path)? else {
            return Ok(None);
        };
        let handle = self.handle(path, opening);
        self.push(when, Action::Open { handle });
        if opening.truncate {
            let file = self.handles[handle as usize].file;
            self.set_size(file, 0);
        }
        Ok(Some(handle))
    }

    /// Adds a file that was open before the trace began, or whose open is not in the trace.
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub fn found_open(&mut self, path: &[u8], opening: Opening) -> Result<Option<u32>, String> {
        let path = self.path(path)?;
        Ok(path.map(|path| self.handle(path, opening)))
    }

    fn handle(&mut self, path: u32, opening: Opening) -> u32 {
        if opening.directory {
            self.seen(path, First::Directory);
        }
        let known = self.names.get(&path).copied().flatten();
        let removed = matches!(self.names.get(&path), Some(None));
        let file = match known {
            Some(file) => file,
            None => {
                let made = opening.create && (opening.exclusive || removed);
                let file = self.add_file(path, !made);
                self.files[file as usize].may_be_new = opening.create;
                file
            }
        };
        self.handles.push(Handle {
            path,
            file,
            opening,
        });
        self.handles.len() as u32 - 1
    }

    /// Adds a file; `was_there` if it seems to have existed before the trace.
    fn add_file(&mut self, path: u32, was_there: bool) -> u32 {
        self.files.push(File {
            cut_bytes: if was_there { u64::MAX } else { 0 },
            ..File::default()
        });
        let file = self.files.len() as u32 - 1;
        self.seen(
            path,
            match was_there {
                true => First::File(file),
                false => First::Nothing,
            },
        );
        self.names.insert(path, Some(file));
        file
    }

    /// Adds a read; the caller keeps track of the position after it.
    ///
    /// # Errors
    /// A sentence that says why no machine does this.
    pub fn read(&mut self, when: When, handle: u32, offset: u64, bytes: u64) -> Result<(), String> {
        let end = end(offset, bytes)?;
        self.grow(handle, end)?;
        let file = self.file_of(handle);
        let old = end.min(file.cut_bytes);
        if old > file.known_bytes {
            file.first_bytes = file.first_bytes.max(old);
        }
        file.size = file.size.max(end);
        self.push(
            when,
            Action::Read {
                handle,
                offset,
                bytes,
            },
        );
        Ok(())
    }

    /// Adds a write; the caller keeps track of the position after it.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn write(
        &mut self,
        when: When,
        handle: u32,
        offset: u64,
        bytes: u64,
    ) -> Result<(), String> {
        let end = end(offset, bytes)?;
        self.grow(handle, end)?;
        let file = self.file_of(handle);
        if offset <= file.known_bytes {
            file.known_bytes = file.known_bytes.max(end);
        }
        file.size = file.size.max(end);
        self.push(
            when,
            Action::Write {
                handle,
                offset,
                bytes,
            },
        );
        Ok(())
    }

    /// Current size of the file of a handle, in bytes, as far as the trace tells.
    pub fn size(&self, handle: u32) -> u64 {
        self.files[self.handles[handle as usize].file as usize].size
    }

    /// Adds an fsync(2), or an fdatasync(2) if `data_only` is set.
    pub fn sync(&mut self, when: When, handle: u32, data_only: bool) {
        self.push(when, Action::Sync { handle, data_only });
    }

    /// Adds the close(2) of a handle's last descriptor.
    pub fn close(&mut self, when: When, handle: u32) {
        self.push(when, Action::Close { handle });
    }

    /// Adds an ftruncate(2) to `bytes` bytes.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn truncate(&mut self, when: When, handle: u32, bytes: u64) -> Result<(), String> {
        if bytes > FILE_LIMIT_BYTES {
            return Err("it makes a file larger than any".to_owned());
        }
        self.grow(handle, bytes)?;
        self.set_size(self.handles[handle as usize].file, bytes);
        self.push(when, Action::Truncate { handle, bytes });
        Ok(())
    }

    fn grow(&mut self, handle: u32, end: u64) -> Result<(), String> {
        let file = self.file_of(handle);
        let more = end.saturating_sub(file.most_bytes);
        file.most_bytes = file.most_bytes.max(end);
        self.all_bytes += more;
        match self.all_bytes <= ALL_LIMIT_BYTES {
            true => Ok(()),
            false => Err("its files are larger than all devices".to_owned()),
        }
    }

    fn set_size(&mut self, file: u32, bytes: u64) {
        let file = &mut self.files[file as usize];
        file.cut_bytes = file.cut_bytes.min(bytes);
        file.known_bytes = file.known_bytes.min(bytes);
        file.size = bytes;
    }

    /// Adds a syncfs(2) or sync(2).
    pub fn sync_all(&mut self, when: When) {
        self.push(when, Action::SyncAll);
    }

    /// Adds a sync_file_range(2) with its flags.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn sync_range(
        &mut self,
        when: When,
        handle: u32,
        (offset, bytes): (u64, u64),
        flags: u8,
    ) -> Result<(), String> {
        if offset
            .checked_add(bytes)
            .is_none_or(|end| end > FILE_LIMIT_BYTES)
        {
            return Err("it ends beyond any file".to_owned());
        }
        self.push(
            when,
            Action::SyncRange {
                handle,
                offset,
                bytes,
                flags,
            },
        );
        Ok(())
    }

    /// Adds a fallocate(2) with its mode; `grows` if it makes the file longer.
    ///
    /// # Errors
    /// As [`Builder::read`].
    pub fn allocate(
        &mut self,
        when: When,
        handle: u32,
        (offset, bytes): (u64, u64),
        (mode, grows): (u8, bool),
    ) -> Result<(), String> {
        let end = offset
            .checked_add(bytes)
            .filter(|end| *end <= FILE_LIMIT_BYTES);
        let end = end.ok_or("it ends beyond any file")?;
        if grows {
            self.grow(handle, end)?;
            let file = self.file_of(handle);
            file.size = file.size.max(end);
        }
        self.push(
            when,
            Action::Allocate {
                handle,
                mode,
                offset,
                bytes,
            },
        );
        Ok(())
    }

    /// Adds a rename(2), unless a path is not on a disk.
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub fn rename(&mut self, when: When, from: &[u8], to: &[u8]) -> Result<Fate, String> {
        let (Some(from), Some(to)) = (self.path(from)?, self.path(to)?) else {
            return Ok(pseudo());
        };
        self.push(when, Action::Rename { from, to });
        self.move_names(from, to);
        Ok(Fate::Played)
    }

    /// Moves the name of a file, or those of all files below a directory.
    fn move_names(&mut self, from: u32, to: u32) {
        let mut prefix = self.paths[from as usize].clone();
        prefix.push(b'/');
        let below: Vec<(u32, u32)> = self
            .names
            .iter()
            .filter(|(path, _)| self.paths[**path as usize].starts_with(&prefix))
            .filter_map(|(path, file)| file.map(|file| (*path, file)))
            .collect();
        self.seen(to, First::Nothing);
        if below.is_empty() {
            let file = match self.names.get(&from).copied().flatten() {
                Some(file) => file,
                None => self.add_file(from, true),
            };
            self.names.insert(to, Some(file));
        }
        for (path, file) in below {
            let rest = self.paths[path as usize][prefix.len()..].to_vec();
            let mut moved = self.paths[to as usize].clone();
            moved.push(b'/');
            moved.extend(rest);
            let moved = self.number(moved);
            self.seen(moved, First::Nothing);
            self.names.insert(moved, Some(file));
            self.names.insert(path, None);
        }
        self.names.insert(from, None);
    }

    /// Adds an unlink(2), or an rmdir(2) if `directory` is set, unless the path is not on a disk.
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub fn unlink(&mut self, when: When, path: &[u8], directory: bool) -> Result<Fate, String> {
        let Some(path) = self.path(path)? else {
            return Ok(pseudo());
        };
        if directory {
            self.seen(path, First::Directory);
            self.names.insert(path, None);
            self.push(when, Action::RemoveDirectory { path });
            return Ok(Fate::Played);
        }
        if !self.names.contains_key(&path) {
            self.add_file(path, true);
        }
        self.names.insert(path, None);
        self.push(when, Action::Unlink { path });
        Ok(Fate::Played)
    }

    /// Adds a mkdir(2), unless the path is not on a disk.
    ///
    /// # Errors
    /// As [`Builder::open`].
    pub fn make_directory(&mut self, when: When, path: &[u8]) -> Result<Fate, String> {
        let Some(path) = self.path(path)? else {
            return Ok(pseudo());
        };
        self.seen(path, First::Nothing);
        self.push(when, Action::MakeDirectory { path });
        Ok(Fate::Played)
    }

    /// The trace with all calls, in the order of their times.
    pub fn finish(mut self) -> Calls {
        self.calls.sort_by_key(|it| it.time_ns);
        let first_ns = self.calls.first().map_or(0, |it| it.time_ns);
        for call in &mut self.calls {
            call.time_ns -= first_ns;
        }
        let files = &self.files;
        let before = |first: &Option<First>| match first {
            Some(First::Directory) => Before::Directory,
            Some(First::Nothing) | None => Before::Nothing,
            Some(First::File(file)) => {
                let file = &files[*file as usize];
                match (file.first_bytes, file.may_be_new) {
                    (0, true) => Before::Nothing,
                    (bytes, _) => Before::File { bytes },
                }
            }
        };
        let mut before: Vec<Before> = self.first.iter().map(before).collect();
        self.directories(&mut before);
        Calls {
            lanes: self.calls.iter().map(|it| it.lane + 1).max().unwrap_or(0),
            before,
            sizes: self.files.iter().map(|it| it.most_bytes).collect(),
            calls: self.calls,
            handles: self.handles,
            paths: self.paths,
            account: self.account,
            account_of_blocks: self.account_of_blocks,
        }
    }

    fn seen(&mut self, path: u32, as_what: First) {
        self.first[path as usize].get_or_insert(as_what);
    }

    /// Marks each path that has another one below it as a directory. It exists before the trace if
    /// one below it does, or unless the trace makes it.
    fn directories(&self, before: &mut [Before]) {
        for (number, path) in self.paths.iter().enumerate() {
            let is_there = before[number] != Before::Nothing;
            let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
            for (at, _) in slashes {
                let above = self.path_numbers.get(&path[..at]);
                let Some(above) = above.map(|it| &mut before[*it as usize]) else {
                    continue;
                };
                if is_there || *above != Before::Nothing {
                    *above = Before::Directory;
                }
            }
        }
    }

    fn push(&mut self, when: When, action: Action) {
        self.calls.push(Call {
            time_ns: when.time_ns,
            took_ns: when.took_ns,
            lane: when.lane,
            action,
        });
    }

    fn file_of(&mut self, handle: u32) -> &mut File {
        &mut self.files[self.handles[handle as usize].file as usize]
    }

    /// Number of an absolute path. `None` for a path of a pseudo file system.
    fn path(&mut self, absolute: &[u8]) -> Result<Option<u32>, String> {
        let path = inside(absolute)?;
        let top = path.split(|it| *it == b'/').next().unwrap_or_default();
        if PSEUDO.contains(&top) {
            return Ok(None);
        }
        Ok(Some(self.number(path)))
    }

    fn number(&mut self, path: Vec<u8>) -> u32 {
        if let Some(number) = self.path_numbers.get(&path) {
            return *number;
        }
        let number = self.paths.len() as u32;
        self.paths.push(path.clone());
        self.first.push(None);
        self.path_numbers.insert(path, number);
        number
    }
}

/// What becomes of a call on a path of a pseudo file system.
pub fn pseudo() -> Fate {
    Fate::left_out("of /proc, /sys and /dev")
}

fn end(offset: u64, bytes: u64) -> Result<u64, String> {
    if bytes > CALL_LIMIT_BYTES {
        return Err("it moves more than one call can".to_owned());
    }
    match offset.checked_add(bytes) {
        Some(end) if end <= FILE_LIMIT_BYTES => Ok(end),
        _ => Err("it ends beyond any file".to_owned()),
    }
}

/// The path relative to a directory that stands for the root, without `.`. `..` does not lead out
/// of that directory.
fn inside(path: &[u8]) -> Result<Vec<u8>, String> {
    if path.len() > PATH_LIMIT_BYTES || path.contains(&0) {
        return Err("no path is like its own".to_owned());
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|it| *it == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            name if name.len() > NAME_LIMIT_BYTES => {
                return Err("no name is as long as one in its path".to_owned());
            }
            name => parts.push(name),
        }
    }
    Ok(parts.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(time_ns: u64) -> When {
        When {
            time_ns,
            took_ns: 1,
            lane: 0,
        }
    }

    fn before(calls: &Calls, path: &str) -> Option<Before> {
        let number = calls.paths().iter().position(|it| it == path.as_bytes());
        number.map(|number| calls.before()[number])
    }

    #[test]
    fn what_is_read_before_it_is_written_was_there() {
        let mut builder = Builder::default();
        let old = builder
            .open(at(1), b"/a/old", Opening::READ)
            .unwrap()
            .unwrap();
        builder.read(at(2), old, 4096, 100).unwrap();
        let new = builder
            .open(at(3), b"/a/new", Opening::CREATE)
            .unwrap()
            .unwrap();
        builder.write(at(4), new, 0, 500).unwrap();
        builder.read(at(5), new, 0, 500).unwrap();
        builder.rename(at(6), b"/a/new", b"/a/old").unwrap();
        let again = builder
            .open(at(7), b"/a/old", Opening::READ)
            .unwrap()
            .unwrap();
        builder.read(at(8), again, 0, 300).unwrap();
        assert_eq!(builder.size(again), 500);
        builder.unlink(at(9), b"/a/gone", false).unwrap();
        let calls = builder.finish();
        assert_eq!(before(&calls, "a/old"), Some(Before::File { bytes: 4196 }));
        assert_eq!(before(&calls, "a/new"), Some(Before::Nothing));
        assert_eq!(before(&calls, "a/gone"), Some(Before::File { bytes: 0 }));
        let files: Vec<u32> = calls.handles().iter().map(|it| it.file).collect();
        assert_eq!(files, [0, 1, 1]);
    }

    #[test]
    fn what_was_cut_off_need_not_have_been_there() {
        let mut builder = Builder::default();
        let plain = Opening {
            exclusive: false,
            ..Opening::CREATE
        };
        let log = builder.open(at(1), b"/log", plain).unwrap().unwrap();
        builder.truncate(at(2), log, 1000).unwrap();
        builder.write(at(3), log, 2000, 10).unwrap();
        builder.read(at(4), log, 0, 2010).unwrap();
        let fresh = builder.open(at(5), b"/fresh", plain).unwrap().unwrap();
        builder.write(at(6), fresh, 0, 10).unwrap();
        let calls = builder.finish();
        assert_eq!(before(&calls, "log"), Some(Before::File { bytes: 1000 }));
        assert_eq!(before(&calls, "fresh"), Some(Before::Nothing));
    }

    #[test]
    fn a_directory_takes_what_is_below_it_along() {
        let mut builder = Builder::default();
        builder.make_directory(at(1), b"/made").unwrap();
        let file = builder
            .open(at(2), b"/made/f", Opening::CREATE)
            .unwrap()
            .unwrap();
        builder.write(at(3), file, 0, 10).unwrap();
        builder.rename(at(4), b"/made", b"/moved").unwrap();
        let again = builder
            .open(at(5), b"/moved/f", Opening::READ)
            .unwrap()
            .unwrap();
        builder.open(at(6), b"/there/g", Opening::READ).unwrap();
        builder.open(at(7), b"/there", Opening::READ).unwrap();
        let calls = builder.finish();
        let handles = calls.handles();
        assert_eq!(handles[file as usize].file, handles[again as usize].file);
        assert_eq!(before(&calls, "made"), Some(Before::Nothing));
        assert_eq!(before(&calls, "moved"), Some(Before::Nothing));
        assert_eq!(before(&calls, "moved/f"), Some(Before::Nothing));
        assert_eq!(before(&calls, "there"), Some(Before::Directory));
    }

    #[test]
    fn as_blocks_no_two_files_share_a_place() {
        let mut builder = Builder::default();
        for (time, path) in [(1, b"/a"), (2, b"/b")] {
            let handle = builder
                .open(at(time), path, Opening::CREATE)
                .unwrap()
                .unwrap();
            builder.write(at(time + 10), handle, 0, 5000).unwrap();
            builder.sync(at(time + 20), handle, true);
        }
        let trace = builder.finish().as_blocks();
        let places: Vec<_> = trace.operations().iter().map(|it| it.pages()).collect();
        assert_eq!(places, [Some((0, 2)), Some((2, 4)), None, None]);
    }

    #[test]
    fn what_is_no_disks_is_left_out_and_what_is_no_path_refused() {
        let mut builder = Builder::default();
        assert_eq!(
            builder.open(at(1), b"/proc/self/maps", Opening::READ),
            Ok(None)
        );
        assert_eq!(
            builder.open(at(1), b"/x/../dev/null", Opening::READ),
            Ok(None)
        );
        assert!(builder.open(at(1), b"/a\0b", Opening::READ).is_err());
        assert!(builder.open(at(1), &[b'x'; 300], Opening::READ).is_err());
        let handle = builder.open(at(1), b"/f", Opening::READ).unwrap().unwrap();
        assert!(builder.read(at(1), handle, u64::MAX, 1).is_err());
        assert!(builder.write(at(1), handle, 0, u64::MAX).is_err());
        assert!(builder.truncate(at(1), handle, u64::MAX).is_err());
        let moved = builder.rename(at(2), b"/f", b"/proc/f");
        assert_eq!(moved, Ok(pseudo()));
    }

    proptest! {
        #[test]
        fn no_path_leads_out(path in prop::collection::vec(
            prop::sample::select(vec!["..", ".", "", "a", "b c", "..."]), 0..12
        )) {
            let inside = inside(path.join("/").as_bytes()).unwrap();
            let parts: Vec<&[u8]> = inside.split(|it| *it == b'/').collect();
            prop_assert!(!inside.starts_with(b"/"));
            for part in parts.iter().filter(|_| !inside.is_empty()) {
                prop_assert!(![&b""[..], b".", b".."].contains(part));
            }
        }
    }
}
