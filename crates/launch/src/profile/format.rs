//! Binary format of a profile.
//!
//! ```text
//! profile = "FRLAUNCH" · u16 version · body · u64 XXH64 of all before it
//! body    = text command · recorded_s · runs · timing · measured · files · file*
//!           · devices · device*
//! measured = 0, or 1 · demand_us · before_us · beside_us; version 3 has none
//! file    = prefix · text suffix · device · inode · generation · size_bytes
//!           · zigzag mtime_s · mtime_ns · ranges · range* · (ranges · range*)*3
//! device  = number · ranges · range*
//! range   = gap · count
//! ```
//! Fixed numbers are little-endian; all others are LEB128 in their shortest form. A text is its
//! length and its bytes. `prefix` is the number of bytes that a path has in common with the
//! previous one.
//!
//! A range begins `gap` pages after the end of the previous one, or after the begin of the file or
//! device. Ranges thus neither touch nor overlap. A file has the ranges of its pages first. Then
//! come those that the second, third and last part of a start are the first to need.
//!
//! A profile decides what is opened and read with the rights of the user who starts the app. It is
//! therefore not trusted: each count is checked against the remaining bytes before memory is
//! allocated.

use super::{
    Measured, Metadata, PAGE_BYTES, PARTS, Pages, Profile, ProfiledFile, Timing, difference,
    intersection,
};
use crate::identity::Identity;
use std::borrow::Cow;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use xxhash_rust::xxh64::xxh64;

const MAGIC: &[u8; 8] = b"FRLAUNCH";
const VERSION: u16 = 4;
/// The version without `measured`, which is read, too.
const UNMEASURED: u16 = 3;
const HEADER_BYTES: usize = 10;
const CHECKSUM_BYTES: usize = 8;

/// The kernel's `PATH_MAX`.
const PATH_LIMIT_BYTES: usize = 4096;
/// Largest `loff_t`.
const SIZE_LIMIT_BYTES: u64 = i64::MAX as u64;
/// Largest number of pages, 1 TiB: no machine has more of one app in memory.
const PAGES_LIMIT: u64 = 1 << 28;

/// Reasons why bytes are not a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes do not begin with the magic number.
    #[error("it is not a profile")]
    NotAProfile,
    /// The format has a version that this program does not read.
    #[error("it has format version {0}, which this frontrow does not read")]
    Version(u16),
    /// The checksum is wrong: bytes are missing or were changed.
    #[error("it is damaged: its checksum does not fit")]
    Checksum,
    /// The checksum is right, but this program does not write such a profile.
    #[error("it makes no sense: {0}")]
    Nonsense(&'static str),
}

impl Profile {
    /// Encodes the profile.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        put_text(&mut out, self.command.as_bytes());
        put(&mut out, self.recorded_s);
        put(&mut out, self.runs.into());
        put(&mut out, self.timing as u64);
        put_measured(&mut out, self.measured);
        put(&mut out, self.files.len() as u64);
        let mut before: &[u8] = &[];
        for file in &self.files {
            let path = file.path.as_os_str().as_bytes();
            let prefix = common_prefix(before, path);
            put(&mut out, prefix as u64);
            put_text(&mut out, &path[prefix..]);
            put_file(&mut out, file);
            before = path;
        }
        put(&mut out, self.metadata.len() as u64);
        for metadata in &self.metadata {
            put(&mut out, metadata.device);
            put_pages(&mut out, &metadata.pages);
        }
        out.extend(xxh64(&out, 0).to_le_bytes());
        out
    }

    /// Decodes the result of [`Profile::encode`].
    ///
    /// # Errors
    /// [`Error`] for any other bytes.
    pub fn decode(bytes: &[u8]) -> Result<Profile, Error> {
        if bytes.len() < HEADER_BYTES + CHECKSUM_BYTES || !bytes.starts_with(MAGIC) {
            return Err(Error::NotAProfile);
        }
        let version = u16::from_le_bytes([bytes[8], bytes[9]]);
        if ![UNMEASURED, VERSION].contains(&version) {
            return Err(Error::Version(version));
        }
        let (content, checksum) = bytes.split_at(bytes.len() - CHECKSUM_BYTES);
        if xxh64(content, 0).to_le_bytes() != checksum {
            return Err(Error::Checksum);
        }
        Reader(&content[HEADER_BYTES..]).profile(version)
    }
}

fn put_measured(out: &mut Vec<u8>, measured: Option<Measured>) {
    put(out, measured.is_some().into());
    if let Some(measured) = measured {
        put(out, measured.demand_us);
        put(out, measured.before_us);
        put(out, measured.beside_us);
    }
}

fn put_file(out: &mut Vec<u8>, file: &ProfiledFile) {
    let identity = &file.identity;
    put(out, identity.device);
    put(out, identity.inode);
    put(out, identity.generation.into());
    put(out, identity.size_bytes);
    put(out, zigzag(identity.mtime_s));
    put(out, identity.mtime_ns.into());
    put_pages(out, &file.pages);
    for late in &file.late {
        put_pages(out, late);
    }
}

fn put_pages(out: &mut Vec<u8>, all: &[Pages]) {
    put(out, all.len() as u64);
    let mut end = 0;
    for pages in all {
        put(out, pages.first - end);
        put(out, pages.count);
        end = pages.end();
    }
}

/// Zigzag encoding: numbers close to 0 become small, whatever their sign.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_text(out: &mut Vec<u8>, text: &[u8]) {
    put(out, text.len() as u64);
    out.extend(text);
}

fn common_prefix(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

/// The bytes that are not decoded yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn profile(&mut self, version: u16) -> Result<Profile, Error> {
        let command = std::str::from_utf8(self.text()?)
            .map_err(|_| Error::Nonsense("its command is not text"))?
            .to_owned();
        let recorded_s = self.number()?;
        let runs = self.small()?;
        let timing = match self.number()? {
            0 => Timing::Before,
            1 => Timing::Beside,
            2 => Timing::Never,
            _ => return Err(Error::Nonsense("there is no such timing")),
        };
        let measured = match version {
            UNMEASURED => None,
            _ => self.measured()?,
        };
        let mut left_pages = PAGES_LIMIT;
        let files = self.files(&mut left_pages)?;
        let metadata = self.metadata(&files, &mut left_pages)?;
        if !self.0.is_empty() {
            return Err(Error::Nonsense("something follows its end"));
        }
        Ok(Profile {
            command,
            recorded_s,
            runs,
            timing,
            measured,
            files,
            metadata,
        })
    }

    fn measured(&mut self) -> Result<Option<Measured>, Error> {
        match self.number()? {
            0 => Ok(None),
            1 => Ok(Some(Measured {
                demand_us: self.number()?,
                before_us: self.number()?,
                beside_us: self.number()?,
            })),
            _ => Err(Error::Nonsense("it was measured in an unknown way")),
        }
    }

    fn metadata(
        &mut self,
        files: &[ProfiledFile],
        left_pages: &mut u64,
    ) -> Result<Vec<Metadata>, Error> {
        let count = self.count()?;
        let mut all: Vec<Metadata> = Vec::new();
        for _ in 0..count {
            let device = self.number()?;
            if !files.iter().any(|it| it.identity.device == device) {
                return Err(Error::Nonsense("none of its files is on a device of it"));
            }
            if all.iter().any(|it| it.device == device) {
                return Err(Error::Nonsense("a device is in it twice"));
            }
            let pages = self.pages(SIZE_LIMIT_BYTES, left_pages)?;
            all.push(Metadata { device, pages });
        }
        Ok(all)
    }

    fn files(&mut self, left_pages: &mut u64) -> Result<Vec<ProfiledFile>, Error> {
        let count = self.count()?;
        let mut files: Vec<ProfiledFile> = Vec::new();
        let mut paths: HashSet<Vec<u8>> = HashSet::new();
        let mut path: Vec<u8> = Vec::new();
        for _ in 0..count {
            self.path(&mut path)?;
            if !paths.insert(path.clone()) {
                return Err(Error::Nonsense("a file is in it twice"));
            }
            let identity = self.identity()?;
            let pages = self.pages(identity.size_bytes, left_pages)?;
            files.push(ProfiledFile {
                path: checked(&path)?,
                late: self.late(&pages)?,
                pages,
                identity,
            });
        }
        Ok(files)
    }

    fn path(&mut self, path: &mut Vec<u8>) -> Result<(), Error> {
        let prefix = usize::try_from(self.number()?).unwrap_or(usize::MAX);
        if prefix > path.len() {
            return Err(Error::Nonsense("a path continues more than there is"));
        }
        let continued = path.get(prefix).copied();
        path.truncate(prefix);
        path.extend(self.text()?);
        if continued.is_some() && path.get(prefix).copied() == continued {
            return Err(Error::Nonsense("a path repeats what it continues"));
        }
        match path.len() <= PATH_LIMIT_BYTES {
            true => Ok(()),
            false => Err(Error::Nonsense("a path is too long")),
        }
    }

    fn identity(&mut self) -> Result<Identity, Error> {
        let (device, inode, generation) = (self.number()?, self.number()?, self.small()?);
        let size_bytes = self.number()?;
        if size_bytes > SIZE_LIMIT_BYTES {
            return Err(Error::Nonsense("a file is larger than files can be"));
        }
        Ok(Identity {
            device,
            inode,
            generation,
            size_bytes,
            mtime_s: unzigzag(self.number()?),
            mtime_ns: self.small()?,
        })
    }

    fn pages(&mut self, size_bytes: u64, left: &mut u64) -> Result<Vec<Pages>, Error> {
        let pages = self.ranges(size_bytes.div_ceil(PAGE_BYTES), left)?;
        match pages.is_empty() {
            true => Err(Error::Nonsense("a file or device has no pages")),
            false => Ok(pages),
        }
    }

    /// Pages of a file by later part; a page may be in one of them only.
    fn late(&mut self, pages: &[Pages]) -> Result<[Vec<Pages>; PARTS - 1], Error> {
        let mut late: [Vec<Pages>; PARTS - 1] = Default::default();
        let mut left = Cow::Borrowed(pages);
        for part in &mut late {
            let end = pages.last().map_or(0, Pages::end);
            *part = self.ranges(end, &mut PAGES_LIMIT.clone())?;
            // Most files have all their pages in one part.
            if part.is_empty() {
                continue;
            }
            if intersection(part, &left) != *part {
                return Err(Error::Nonsense("a part needs a page of another or of none"));
            }
            left = Cow::Owned(difference(&left, part));
        }
        Ok(late)
    }

    fn ranges(&mut self, file_pages: u64, left: &mut u64) -> Result<Vec<Pages>, Error> {
        let ranges = self.count()?;
        let mut all = Vec::new();
        let mut end: u64 = 0;
        for index in 0..ranges {
            let (gap, count) = (self.number()?, self.number()?);
            if count == 0 || (gap == 0 && index > 0) {
                return Err(Error::Nonsense(
                    "a range of pages is empty or adjoins another",
                ));
            }
            end = end
                .checked_add(gap)
                .and_then(|first| first.checked_add(count))
                .filter(|&end| end <= file_pages)
                .ok_or(Error::Nonsense("a page is beyond the end of its file"))?;
            *left = left
                .checked_sub(count)
                .ok_or(Error::Nonsense("it has more pages than memory can have"))?;
            all.push(Pages {
                first: end - count,
                count,
            });
        }
        Ok(all)
    }

    /// Reads a number of items, each of which takes at least one byte.
    fn count(&mut self) -> Result<usize, Error> {
        let count = self.number()?;
        match usize::try_from(count) {
            Ok(count) if count <= self.0.len() => Ok(count),
            _ => Err(Error::Nonsense("a count is larger than the profile")),
        }
    }

    fn text(&mut self) -> Result<&'a [u8], Error> {
        let length = self.count()?;
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        Ok(text)
    }

    fn small(&mut self) -> Result<u32, Error> {
        u32::try_from(self.number()?).map_err(|_| Error::Nonsense("a number is too large"))
    }

    fn number(&mut self) -> Result<u64, Error> {
        let mut value: u64 = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self
                .0
                .split_first()
                .ok_or(Error::Nonsense("it ends in the middle"))?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte has room for one bit, and the shortest form does not end in a zero
            // byte.
            if (shift == 63 && bits > 1) || (byte == 0 && shift > 0) {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::Nonsense("a number is too long"))
    }
}

/// Checks that a path has the recorder's form: absolute, without `.` and `..`.
fn checked(path: &[u8]) -> Result<PathBuf, Error> {
    let is_plain = |name: &[u8]| !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
    let names = path
        .strip_prefix(b"/")
        .map(|it| it.split(|byte| *byte == b'/'));
    match names.is_some_and(|mut names| names.all(is_plain)) {
        true => Ok(OsStr::from_bytes(path).into()),
        false => Err(Error::Nonsense("a path is not an absolute one without ..")),
    }
}
