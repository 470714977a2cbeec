//! Reads of a 512 KB file that is in 1 to 8 pieces on the device, with its pages on all dies or on
//! some: figure 25 of the dissertation. Each file is read by one `pread64`. Its name is the begin
//! of its figures' names, so that a recording gives the other figures (figure 26).
//!
//! Addresses: contiguous space is preallocated, and single blocks are cut out of it
//! (`FALLOC_FL_COLLAPSE_RANGE`), so the rest is in pieces.
//!
//! Dies: the device gives rows to its dies in turn. The file is thus written again row by row, with
//! rows of another file between them for the dies to leave out.
//!
//! Both results are checked on the device.

use crate::background::Background;
use crate::code::Code;
use crate::cold::{Reads, drop_caches};
use crate::content;
use crate::layout::settle;
use crate::meter::Meter;
use crate::simflash::Statistics;
use crate::sqlite;
use crate::stage::{Foreground, RunContext, rate_mb_s};
use crate::{Error, Measurement};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::device::janus::{Janus, Range};
use sys::device::{Device, Layout, PAGE_BYTES, Pages};
use sys::random::Random;

/// Size of a file (dissertation §4.1.1).
const FILE_BYTES: u64 = 512 << 10;
/// The dissertation's values of DoF_L, and those of DoF_P with figures, in per cent.
const DOF_L: [u64; 4] = [1, 2, 4, 8];
const DOF_P: [u64; 3] = [0, 25, 50];
/// Largest deviation of DoF_P, in thousandths: rows cannot be divided among every number of dies.
const OFF_PERMILLE: u32 = 110;

/// Bytes that a die programs at once, in all profiles.
const ROW_BYTES: u64 = 16 << 10;
const BLOCK_BYTES: u64 = PAGE_BYTES as u64;

/// Longest piece in pages; the mean is half of it.
const PIECE_PAGES: u64 = 25;

pub(crate) const GRID: Code =
    Code::app(|_, context| Box::new(Grid::new(context)), sqlite::footprint).telling_layers();

/// All files, by their DoF_L and DoF_P.
pub(crate) struct Grid {
    directory: PathBuf,
    data: Pages,
    files: Vec<Piecewise>,
}

struct Piecewise {
    path: PathBuf,
    dof_l: u64,
    dof_p: u64,
    time: Duration,
    requests: u64,
    busy_dies: Option<f64>,
}

impl Grid {
    pub(crate) fn new(context: &RunContext) -> Self {
        let mut random: Random = context.random("pieces");
        Grid {
            directory: context.directory.clone(),
            data: content::uniform(FILE_BYTES as usize, &mut random),
            files: Vec::new(),
        }
    }

    fn make(&self, dof_l: u64, dof_p: u64, flash: &Flash) -> Result<Piecewise, Error> {
        let path = self.directory.join(format!("dof_l_{dof_l}_dof_p_{dof_p}"));
        let failed = |source| Error::io("lay out", &path, source);
        let file = open_directly(&path).map_err(failed)?;
        let piece = FILE_BYTES / dof_l;
        in_pieces(&file, &vec![piece; dof_l as usize]).map_err(failed)?;
        file.write_all_at(&self.data, 0).map_err(failed)?;
        // Tables go to the device last, and a flush after them ends the row that they began.
        settle(&self.directory)?;
        file.sync_all().map_err(failed)?;
        let rest = open_directly(&self.directory.join("rest")).map_err(failed)?;
        let used = flash.dies - flash.dies * dof_p / 100;
        let row = &self.data[..ROW_BYTES as usize];
        for number in 0..FILE_BYTES / ROW_BYTES {
            let at = number * ROW_BYTES;
            let row_of_file = &self.data[at as usize..][..ROW_BYTES as usize];
            file.write_all_at(row_of_file, at).map_err(failed)?;
            if (number + 1).is_multiple_of(used) {
                for left_out in 0..flash.dies - used {
                    rest.write_all_at(row, left_out * ROW_BYTES)
                        .map_err(failed)?;
                }
            }
        }
        settle(&self.directory)?;
        let layout = Layout::of(&file, true).map_err(failed)?;
        let is_permille = flash.dof_p_permille(&layout).map_err(failed)?;
        let wanted = dof_p as u32 * 10;
        if layout.fragments() != dof_l || is_permille.abs_diff(wanted) > OFF_PERMILLE {
            return Err(failed(io::Error::other(format!(
                "it is in {} pieces with DoF_P {}, and was to be in {dof_l} with {}",
                layout.fragments(),
                f64::from(is_permille) / 1e3,
                f64::from(wanted) / 1e3
            ))));
        }
        Ok(Piecewise {
            path,
            dof_l,
            dof_p,
            time: Duration::ZERO,
            requests: 0,
            busy_dies: None,
        })
    }
}

/// Allocates space for an empty file in pieces of these sizes, in whole blocks, one block apart.
pub(crate) fn in_pieces(file: &File, piece_bytes: &[u64]) -> io::Result<()> {
    let gaps = piece_bytes.len().saturating_sub(1) as u64;
    let mut at = piece_bytes.iter().sum::<u64>() + gaps * BLOCK_BYTES;
    fallocate(file, 0, 0, at)?;
    for piece in piece_bytes.iter().skip(1).rev() {
        at -= piece + BLOCK_BYTES;
        fallocate(file, libc::FALLOC_FL_COLLAPSE_RANGE, at, BLOCK_BYTES)?;
    }
    Ok(())
}

/// Sizes in bytes of the pieces of a file with so many pages.
pub(crate) fn piece_bytes(pages: u64, random: &mut Random) -> Vec<u64> {
    let mut pieces = Vec::new();
    let mut left = pages;
    while left > 0 {
        let piece = random.between(1, PIECE_PAGES).min(left);
        pieces.push(piece * PAGE_BYTES as u64);
        left -= piece;
    }
    pieces
}

fn fallocate(file: &File, mode: libc::c_int, offset: u64, bytes: u64) -> io::Result<()> {
    // SAFETY: takes numbers and an open file.
    match unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, bytes as i64) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn open_directly(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(libc::O_DIRECT)
        .open(path)
}

/// The emulated device of the file system, which knows the die of each page.
struct Flash {
    janus: Janus,
    node: File,
    dies: u64,
}

impl Flash {
    fn below(directory: &Path) -> Result<Self, Error> {
        let failed = |source| Error::io("find the flash of", directory, source);
        let none = || failed(io::Error::other("only the lab's device tells of its dies"));
        let device = Device::resolve(Path::new("/"), &directory.to_string_lossy())
            .map_err(|error| failed(io::Error::other(error.to_string())))?;
        let janus = Janus::of(&device).map_err(failed)?.ok_or_else(none)?;
        let node = File::open(Path::new("/dev").join(device.name())).map_err(failed)?;
        let dies = Statistics::of(&node).ok_or_else(none)?.dies;
        Ok(Flash { janus, node, dies })
    }

    /// DoF_P in thousandths of a file on the whole disk.
    fn dof_p_permille(&self, layout: &Layout) -> io::Result<u32> {
        let page = |bytes: u64| (bytes / BLOCK_BYTES) as u32;
        let runs = layout.runs().into_iter();
        let ranges: Vec<Range> = runs
            .map(|run| Range::new(page(run.physical_bytes), 0, page(run.size_bytes)))
            .collect();
        self.janus.dof_p_permille(&ranges)
    }
}

impl Foreground for Grid {
    fn prepare(&mut self) -> Result<(), Error> {
        let flash = Flash::below(&self.directory)?;
        let rest = self.directory.join("rest");
        fs::write(&rest, &self.data[..]).map_err(|source| Error::io("write", &rest, source))?;
        for dof_p in DOF_P {
            for dof_l in DOF_L {
                let file = self.make(dof_l, dof_p, &flash)?;
                self.files.push(file);
            }
        }
        Ok(())
    }

    /// The file is open, and its data are not in memory.
    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        let flash = Flash::below(&self.directory)?;
        let mut buffer = Pages::zeroed(FILE_BYTES as usize);
        for file in &mut self.files {
            meter.go_on()?;
            let failed = |source| Error::io("read", &file.path, source);
            drop_caches()?;
            let open = File::open(&file.path).map_err(failed)?;
            // After this the file's extents are in memory.
            Layout::of(&open, false).map_err(failed)?;
            let before = Reads::of(&self.directory)?;
            let dies = Statistics::of(&flash.node);
            let begun = Instant::now();
            open.read_exact_at(&mut buffer, 0).map_err(failed)?;
            file.time = begun.elapsed();
            file.busy_dies = dies.and_then(|it| it.busy_dies_since(&flash.node));
            file.requests = Reads::of(&self.directory)?.since(before).requests;
        }
        Ok(())
    }

    fn figures(&self, _: Duration) -> Vec<Measurement> {
        let mut figures = Vec::new();
        for file in &self.files {
            let name = |what: &str| format!("dof_l_{}_dof_p_{}_{what}", file.dof_l, file.dof_p);
            let rate = rate_mb_s(FILE_BYTES, file.time);
            figures.push(Measurement::new(name("read_mb_s"), "MB/s", rate));
            let requests = file.requests as f64;
            figures.push(Measurement::new(name("requests"), "1", requests));
            let dies = file.busy_dies;
            figures.extend(dies.map(|it| Measurement::new(name("busy_dies"), "dies", it)));
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_make_up_the_file_and_none_is_too_long(pages in 0u64..5000, seed: u64) {
            let pieces = piece_bytes(pages, &mut Random::for_purpose(seed, "test"));
            let page = PAGE_BYTES as u64;
            prop_assert_eq!(pieces.iter().sum::<u64>(), pages * page);
            let fits = |it: &u64| (1..=PIECE_PAGES).contains(&(it / page)) && it.is_multiple_of(page);
            prop_assert!(pieces.iter().all(fits));
        }
    }
}
