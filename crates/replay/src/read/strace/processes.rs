//! Meaning of descriptors and relative paths. Each process has a table of descriptors, which its
//! threads share, and a working directory.

use super::call::{Call, Outcome};
use crate::calls::{Builder, Calls, Opening, When};
use std::collections::HashMap;

/// Stands for a working directory that is not known; with `-y` strace names it.
const UNKNOWN_DIRECTORY: &[u8] = b"/working-directory";

/// Largest number of descriptors that all processes of a trace inherit.
const INHERITED_LIMIT: usize = 10_000_000;

/// Index of a table of descriptors.
type Table = usize;

/// An open file description, which duplicated descriptors share.
#[derive(Clone, Debug)]
struct Description {
    path: Vec<u8>,
    /// Handle in the trace; None for a directory that only starts paths.
    handle: Option<u32>,
    position: u64,
    append: bool,
    descriptors: u32,
}

#[derive(Default)]
pub(super) struct Processes {
    builder: Builder,
    tables: Vec<HashMap<i32, usize>>,
    directories: Vec<Vec<u8>>,
    table_of: HashMap<String, Table>,
    inherited: usize,
    descriptions: Vec<Description>,
}

impl Processes {
    pub(super) fn leave_out(&mut self, what: &str) {
        self.builder.leave_out(what);
    }

    pub(super) fn count(&self) -> usize {
        self.builder.count()
    }

    pub(super) fn finish(self) -> Calls {
        self.builder.finish()
    }

    /// The table of a thread; a thread without a known parent belongs to the first process.
    fn table(&mut self, thread: &str) -> Table {
        if let Some(table) = self.table_of.get(thread) {
            return *table;
        }
        if self.tables.is_empty() {
            self.tables.push(HashMap::new());
            self.directories.push(UNKNOWN_DIRECTORY.to_vec());
        }
        self.table_of.insert(thread.to_owned(), 0);
        0
    }

    /// Adds a call of a thread.
    ///
    /// # Errors
    /// A sentence that says why no kernel made this call.
    pub(super) fn call(
        &mut self,
        thread: &str,
        lane: u32,
        time_ns: u64,
        call: &Call,
    ) -> Result<(), String> {
        let (result, named) = match &call.result {
            Outcome::Number(number, named) => (*number as u64, named.as_deref()),
            Outcome::Failed => {
                self.leave_out("failed in the trace");
                return Ok(());
            }
            Outcome::Unknown => {
                self.leave_out("unfinished at the end");
                return Ok(());
            }
        };
        let table = self.table(thread);
        let when = When {
            time_ns,
            took_ns: call.took_ns,
            lane,
        };
        match call.name {
            "open" => self.open(when, table, call, (None, 0, 1), result, named),
            "creat" => self.open(when, table, call, (None, 0, usize::MAX), result, named),
            "openat" | "openat2" => self.open(when, table, call, (Some(0), 1, 2), result, named),
            "close" => self.close(when, table, call),
            "read" | "readv" => self.transfer(when, table, call, None, result, Builder::read),
            "write" | "writev" => self.transfer(when, table, call, None, result, Builder::write),
            "pread64" | "preadv" | "preadv2" => {
                self.transfer(when, table, call, Some(3), result, Builder::read)
            }
            "pwrite64" | "pwritev" | "pwritev2" => {
                self.transfer(when, table, call, Some(3), result, Builder::write)
            }
            "lseek" => self.seek(table, call, result),
            "fsync" | "fdatasync" => self.sync(when, table, call),
            "ftruncate" | "ftruncate64" => self.truncate_open(when, table, call),
            "truncate" | "truncate64" => self.truncate(when, table, call),
            "rename" => self.rename(when, table, call, (None, 0), (None, 1)),
            "renameat" | "renameat2" => self.rename(when, table, call, (Some(0), 1), (Some(2), 3)),
            "unlink" => self.unlink(when, table, call, (None, 0), false),
            "rmdir" => self.unlink(when, table, call, (None, 0), true),
            "unlinkat" => {
                let directory = call.argument(2)?.contains("AT_REMOVEDIR");
                self.unlink(when, table, call, (Some(0), 1), directory)
            }
            "mkdir" => self.make_directory(when, table, call, (None, 0)),
            "mkdirat" => self.make_directory(when, table, call, (Some(0), 1)),
            "dup" | "dup2" | "dup3" => self.duplicate(table, call, result),
            "fcntl" | "fcntl64" if call.argument(1)?.starts_with("F_DUPFD") => {
                self.duplicate(table, call, result)
            }
            "chdir" => {
                self.directories[table] = self.path(table, call, (None, 0))?;
                Ok(())
            }
            "fchdir" => {
                if let Some(at) = self.description(table, call, 0)? {
                    self.directories[table] = self.descriptions[at].path.clone();
                }
                Ok(())
            }
            "clone" | "clone3" | "fork" | "vfork" => {
                let shares = call.arguments.iter().any(|it| it.contains("CLONE_FILES"));
                self.begin_thread(table, shares, result)
            }
            other => {
                self.leave_out(other);
                Ok(())
            }
        }
    }

    /// Gives a new process a copy of its parent's table; a thread shares the table.
    fn begin_thread(&mut self, table: Table, shares: bool, thread: u64) -> Result<(), String> {
        let mut own = table;
        if !shares {
            self.inherited += self.tables[table].len() + 1;
            if self.inherited > INHERITED_LIMIT {
                return Err(
                    "its processes have more descriptors than memory should hold".to_owned(),
                );
            }
            own = self.tables.len();
            self.tables.push(self.tables[table].clone());
            self.directories.push(self.directories[table].clone());
            for at in self.tables[own].values() {
                self.descriptions[*at].descriptors += 1;
            }
        }
        self.table_of.insert(thread.to_string(), own);
        Ok(())
    }

    /// The absolute path of a path argument and the directory's descriptor before it.
    fn path(
        &mut self,
        table: Table,
        call: &Call,
        (directory, path): (Option<usize>, usize),
    ) -> Result<Vec<u8>, String> {
        let path = call.path(path)?;
        if path.starts_with(b"/") {
            return Ok(path);
        }
        let mut whole = match directory {
            None => self.directories[table].clone(),
            Some(index) => match call.descriptor(index)? {
                (_, Some(named)) => named,
                (None, None) => self.directories[table].clone(),
                (Some(_), None) => match self.description(table, call, index)? {
                    Some(at) => self.descriptions[at].path.clone(),
                    None => UNKNOWN_DIRECTORY.to_vec(),
                },
            },
        };
        whole.push(b'/');
        whole.extend(path);
        Ok(whole)
    }

    fn open(
        &mut self,
        when: When,
        table: Table,
        call: &Call,
        (directory, path, flags): (Option<usize>, usize, usize),
        descriptor: u64,
        named: Option<&[u8]>,
    ) -> Result<(), String> {
        let asked = self.path(table, call, (directory, path))?;
        let flags = match flags {
            usize::MAX => "O_WRONLY|O_CREAT|O_TRUNC",
            index => call.argument(index)?,
        };
        // strace names the target of links where it names the file.
        let mut path = named.map_or(asked, <[u8]>::to_vec);
        let has = |flag: &str| {
            let ends = |it: char| !it.is_ascii_alphanumeric() && it != '_';
            flags.split(ends).any(|it| it == flag)
        };
        if has("O_TMPFILE") {
            path.extend(format!("/#{}", when.time_ns).bytes());
        }
        let opening = Opening {
            write: has("O_WRONLY") || has("O_RDWR"),
            create: has("O_CREAT") || has("O_TMPFILE"),
            exclusive: has("O_EXCL") || has("O_TMPFILE"),
            truncate: has("O_TRUNC"),
            append: has("O_APPEND"),
            direct: has("O_DIRECT"),
            sync: has("O_SYNC") || has("O_DSYNC"),
            directory: has("O_DIRECTORY") && !has("O_TMPFILE"),
        };
        let handle = match has("O_PATH") {
            true => None,
            false => self.builder.open(when, &path, opening)?,
        };
        self.descriptions.push(Description {
            path,
            handle,
            position: 0,
            append: opening.append,
            descriptors: 1,
        });
        let at = self.descriptions.len() - 1;
        self.describe(table, descriptor, at);
        Ok(())
    }

    fn describe(&mut self, table: Table, descriptor: u64, at: usize) {
        // The descriptor's number was in use: its close was not traced.
        if let Some(old) = self.tables[table].insert(descriptor as i32, at) {
            self.descriptions[old].descriptors -= 1;
        }
    }

    /// Description of a descriptor. `None` where it is not known or is not a file; the call is not
    /// counted.
    fn description(
        &mut self,
        table: Table,
        call: &Call,
        index: usize,
    ) -> Result<Option<usize>, String> {
        let (Some(descriptor), named) = call.descriptor(index)? else {
            return Ok(None);
        };
        let known = self.tables[table].get(&descriptor).copied();
        let Some(named) = named else {
            return Ok(known);
        };
        // A file that was renamed meanwhile has another name but is the same file.
        if known.is_some() {
            return Ok(known);
        }
        let opening = Opening {
            write: true,
            ..Opening::default()
        };
        let handle = self.builder.found_open(&named, opening)?;
        self.descriptions.push(Description {
            path: named,
            handle,
            position: 0,
            append: false,
            descriptors: 1,
        });
        let at = self.descriptions.len() - 1;
        self.describe(table, descriptor as u64, at);
        Ok(Some(at))
    }

    /// Handle of a call's descriptor. `None` if it is not a file's; the call is counted as left
    /// out.
    fn file(&mut self, table: Table, call: &Call) -> Result<Option<(usize, u32)>, String> {
        let at = self.description(table, call, 0)?;
        let file = at.and_then(|at| Some((at, self.descriptions[at].handle?)));
        if file.is_none() {
            self.leave_out("of a descriptor that is no file's, or not known");
        }
        Ok(file)
    }

    fn close(&mut self, when: When, table: Table, call: &Call) -> Result<(), String> {
        let (Some(descriptor), _) = call.descriptor(0)? else {
            return Err("it closes no descriptor".to_owned());
        };
        let Some(at) = self.tables[table].remove(&descriptor) else {
            self.leave_out("of a descriptor that is no file's, or not known");
            return Ok(());
        };
        let description = &mut self.descriptions[at];
        description.descriptors -= 1;
        if let (0, Some(handle)) = (description.descriptors, description.handle) {
            self.builder.close(when, handle);
        }
        Ok(())
    }

    /// Adds a read or write, at its own offset or at the position, which it moves.
    fn transfer(
        &mut self,
        when: When,
        table: Table,
        call: &Call,
        offset: Option<usize>,
        bytes: u64,
        put: fn(&mut Builder, When, u32, u64, u64) -> Result<(), String>,
    ) -> Result<(), String> {
        let Some((at, handle)) = self.file(table, call)? else {
            return Ok(());
        };
        let writes = call.name.contains("write");
        let description = &mut self.descriptions[at];
        if writes && description.append {
            description.position = self.builder.size(handle);
        }
        let offset = match offset {
            // preadv2 and pwritev2 take -1 for the current position.
            Some(index) if call.argument(index)? != "-1" => match writes && description.append {
                true => description.position,
                false => call.number(index)?,
            },
            _ => {
                let position = description.position;
                description.position = position.saturating_add(bytes);
                position
            }
        };
        match bytes {
            0 => {
                self.leave_out("moved nothing");
                Ok(())
            }
            _ => put(&mut self.builder, when, handle, offset, bytes),
        }
    }

    fn seek(&mut self, table: Table, call: &Call, position: u64) -> Result<(), String> {
        if let Some((at, _)) = self.file(table, call)? {
            self.descriptions[at].position = position;
        }
        Ok(())
    }

    fn sync(&mut self, when: When, table: Table, call: &Call) -> Result<(), String> {
        if let Some((_, handle)) = self.file(table, call)? {
            self.builder.sync(when, handle, call.name == "fdatasync");
        }
        Ok(())
    }

    fn truncate_open(&mut self, when: When, table: Table, call: &Call) -> Result<(), String> {
        match self.file(table, call)? {
            Some((_, handle)) => self.builder.truncate(when, handle, call.number(1)?),
            None => Ok(()),
        }
    }

    fn truncate(&mut self, when: When, table: Table, call: &Call) -> Result<(), String> {
        let path = self.path(table, call, (None, 0))?;
        let opening = Opening {
            write: true,
            ..Opening::default()
        };
        match self.builder.found_open(&path, opening)? {
            Some(handle) => self.builder.truncate(when, handle, call.number(1)?),
            None => Ok(()),
        }
    }

    fn rename(
        &mut self,
        when: When,
        table: Table,
        call: &Call,
        from: (Option<usize>, usize),
        to: (Option<usize>, usize),
    ) -> Result<(), String> {
        if call
            .arguments
            .iter()
            .any(|it| it.contains("RENAME_EXCHANGE"))
        {
            self.leave_out("renameat2 with RENAME_EXCHANGE");
            return Ok(());
        }
        let from = self.path(table, call, from)?;
        let to = self.path(table, call, to)?;
        self.builder.rename(when, &from, &to)
    }

    fn unlink(
        &mut self,
        when: When,
        table: Table,
        call: &Call,
        path: (Option<usize>, usize),
        directory: bool,
    ) -> Result<(), String> {
        let path = self.path(table, call, path)?;
        self.builder.unlink(when, &path, directory)
    }

    fn make_directory(
        &mut self,
        when: When,
        table: Table,
        call: &Call,
        path: (Option<usize>, usize),
    ) -> Result<(), String> {
        let path = self.path(table, call, path)?;
        self.builder.make_directory(when, &path)
    }

    fn duplicate(&mut self, table: Table, call: &Call, descriptor: u64) -> Result<(), String> {
        let Some(at) = self.description(table, call, 0)? else {
            // The new descriptor is not a file's, and the number's old meaning has ended.
            self.tables[table].remove(&(descriptor as i32));
            return Ok(());
        };
        self.descriptions[at].descriptors += 1;
        self.describe(table, descriptor, at);
        Ok(())
    }
}
