//! Stalls that were noted as they happened, in a file of fixed size.
//!
//! The file has a number of lines of [`PLACE_BYTES`] bytes each: a stall as JSON and spaces, or spaces alone. It
//! gets its size when it is made, so a disk that is full later takes the next stall as well. Each stall is
//! written over the oldest, in one call at a place of its own: a process that is killed leaves whole lines, and
//! a machine that loses its power one bad line at most, which readers leave out.

use crate::judge::Verdict;
use crate::{Diagnosis, page};
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Users who may read a file of stalls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Its user, who is root: it has names of files.
    User,
    /// Everybody, so that a user's session can tell of a stall.
    All,
}

impl Readers {
    /// Stalls that the file has room for.
    pub const fn places(self) -> u64 {
        match self {
            Readers::User => 2048,
            Readers::All => 64,
        }
    }

    const fn mode(self) -> u32 {
        match self {
            Readers::User => 0o600,
            Readers::All => 0o644,
        }
    }
}

/// Bytes of each, the line's end included.
const PLACE_BYTES: usize = 2048;
/// Most verdicts of a stall that are kept.
const VERDICTS: usize = 3;

/// Verdict on a stall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blamed {
    /// Name of the cause.
    pub cause: String,
    /// Process that waited most.
    pub who: String,
    /// Process, thread of the kernel or group that caused the waits, if it is another one.
    pub culprit: Option<String>,
    /// Disk that was waited for, if it is known.
    pub disk: Option<String>,
    /// File with most of these waits.
    pub file: Option<String>,
    /// Time lost, summed over tasks.
    pub lost_ns: u64,
    /// Confidence in the verdict.
    pub confidence: String,
    /// Sentence that names who waited, for what, and because of whom.
    pub sentence: String,
    /// Command or sentence that helps, if any is known.
    pub to_do: Option<String>,
}

/// Stall as it is kept, with its verdicts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    /// Number of the stall since the file was made.
    pub number: u64,
    /// End of the stall, in milliseconds since 1970.
    pub ended_ms: u64,
    /// How long some task was held up without a pause.
    pub stalled_ns: u64,
    /// Verdicts, the first one first.
    pub verdicts: Vec<Blamed>,
}

impl Blamed {
    fn of(verdict: &Verdict) -> Blamed {
        let advised = verdict.advice.as_ref().map(|it| it.command.clone());
        Blamed {
            cause: verdict.name.to_owned(),
            who: verdict.who.clone(),
            culprit: verdict.culprit.clone(),
            disk: verdict.disk.clone(),
            file: verdict.file.clone(),
            lost_ns: verdict.lost_ns,
            confidence: page::sure(verdict.confidence).to_owned(),
            sentence: page::sentence(verdict),
            to_do: advised.or_else(|| verdict.to_do.clone()),
        }
    }
}

impl Noted {
    /// The stall that a diagnosis tells of; it has no number yet.
    pub fn of(diagnosis: &Diagnosis, ended_ms: u64, stalled_ns: u64) -> Noted {
        let verdicts = diagnosis.verdicts.iter().take(VERDICTS);
        Noted {
            number: 0,
            ended_ms,
            stalled_ns,
            verdicts: verdicts.map(Blamed::of).collect(),
        }
    }

    /// The same without names of files, which are not everybody's to read.
    pub fn without_files(mut self) -> Noted {
        for verdict in &mut self.verdicts {
            let Some(file) = verdict.file.take() else {
                continue;
            };
            verdict.to_do.take_if(|it| it.contains(&file));
        }
        self
    }

    /// A line of [`PLACE_BYTES`]. Names of files, and then the last verdicts, make room where it is too long.
    fn line(&self) -> io::Result<Vec<u8>> {
        let mut shortened = self.clone();
        loop {
            let mut line = serde_json::to_vec(&shortened)?;
            if line.len() < PLACE_BYTES {
                line.resize(PLACE_BYTES - 1, b' ');
                line.push(b'\n');
                return Ok(line);
            }
            let named = shortened.verdicts.iter_mut().rev();
            match named.map(|it| it.file.take()).find(Option::is_some) {
                Some(_) => {}
                None if shortened.verdicts.pop().is_some() => {}
                None => return Err(io::Error::other("a stall without verdicts is too long")),
            }
        }
    }
}

/// The file, open for one writer.
#[derive(Debug)]
pub struct Ledger {
    file: File,
    places: u64,
    next: u64,
}

impl Ledger {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::WouldBlock`] if another process writes to it.
    pub fn open(path: &Path, readers: Readers) -> io::Result<Ledger> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).mode(0o600);
        let mut file = options.custom_flags(no_links()).open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.set_permissions(Permissions::from_mode(readers.mode()))?;
        let places = readers.places();
        let bytes = places * PLACE_BYTES as u64;
        if file.metadata()?.len() != bytes {
            file.set_len(bytes)?;
        }
        // File systems that cannot give room beforehand give it when it is written.
        match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => {}
            Err(error) => return Err(error.into()),
        }
        let known = read_from(&mut file)?;
        let next = known.last().map_or(0, |it| it.number + 1);
        Ok(Ledger { file, places, next })
    }

    /// Writes a stall over the oldest.
    ///
    /// # Errors
    /// Those of the system; the stalls before are as they were.
    pub fn add(&mut self, stall: Noted) -> io::Result<()> {
        let number = self.next;
        let line = Noted { number, ..stall }.line()?;
        let place = number % self.places * PLACE_BYTES as u64;
        self.file.write_all_at(&line, place)?;
        self.next += 1;
        Ok(())
    }
}

fn no_links() -> i32 {
    rustix::fs::OFlags::NOFOLLOW.bits() as i32
}

/// All stalls of a file, the oldest first.
///
/// # Errors
/// Those of the system.
pub fn read(path: &Path) -> io::Result<Vec<Noted>> {
    read_from(&mut File::open(path)?)
}

fn read_from(file: &mut File) -> io::Result<Vec<Noted>> {
    let mut bytes = Vec::new();
    // Who may write the file could make it of any size.
    file.take(Readers::User.places() * PLACE_BYTES as u64)
        .read_to_end(&mut bytes)?;
    let lines = bytes.split(|it| *it == b'\n');
    let stalls = lines.filter_map(|line| serde_json::from_slice(line).ok());
    let mut stalls: Vec<Noted> = stalls.collect();
    stalls.sort_by_key(|it| it.number);
    Ok(stalls)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall(number: u64, files: &str) -> Noted {
        let blamed = Blamed {
            cause: "own writes".to_owned(),
            who: "dd".to_owned(),
            culprit: None,
            disk: Some("sda".to_owned()),
            file: Some(files.to_owned()),
            lost_ns: 1,
            confidence: "likely".to_owned(),
            sentence: "dd waited".to_owned(),
            to_do: None,
        };
        Noted {
            number,
            ended_ms: 1000 * number,
            stalled_ns: 300_000_000,
            verdicts: vec![blamed.clone(), blamed],
        }
    }

    #[test]
    fn the_newest_stalls_stay_and_the_file_does_not_grow() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stalls");
        for half in [0..1500, 1500..3000] {
            let mut ledger = Ledger::open(&path, Readers::User).unwrap();
            for number in half {
                ledger.add(stall(number, "/mnt/a")).unwrap();
            }
        }
        let kept = read(&path).unwrap();
        let numbers: Vec<u64> = kept.iter().map(|it| it.number).collect();
        assert_eq!(
            numbers,
            (3000 - Readers::User.places()..3000).collect::<Vec<_>>()
        );
        assert_eq!(kept.last(), Some(&stall(2999, "/mnt/a")));
        let bytes = std::fs::metadata(&path).unwrap().len();
        assert_eq!(bytes, Readers::User.places() * PLACE_BYTES as u64);
    }

    #[test]
    fn one_process_writes_and_bad_lines_are_left_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stalls");
        let mut ledger = Ledger::open(&path, Readers::User).unwrap();
        let second = Ledger::open(&path, Readers::User).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
        for number in 0..3 {
            ledger.add(stall(number, "/mnt/a")).unwrap();
        }
        ledger
            .file
            .write_all_at(b"{\"torn", PLACE_BYTES as u64)
            .unwrap();
        let numbers: Vec<u64> = read(&path).unwrap().iter().map(|it| it.number).collect();
        assert_eq!(numbers, [0, 2]);
    }

    #[test]
    fn a_long_name_leaves_the_verdict() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stalls");
        Ledger::open(&path, Readers::User)
            .unwrap()
            .add(stall(0, &"a".repeat(3000)))
            .unwrap();
        let kept = read(&path).unwrap();
        assert_eq!(kept[0].verdicts.len(), 2);
        assert_eq!(kept[0].verdicts[1].file, None);
    }

    #[test]
    fn what_all_may_read_names_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stalls");
        let mut stall = stall(0, "/home/me/secret.odt");
        stall.verdicts[0].to_do = Some("sudo frontrow defrag --all /home/me/secret.odt".to_owned());
        let mut ledger = Ledger::open(&path, Readers::All).unwrap();
        ledger.add(stall.without_files()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("sentence") && !text.contains("secret"),
            "{text}"
        );
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
    }
}
