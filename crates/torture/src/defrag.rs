//! Moves of files: the tests of EXT4_IOC_MOVE_EXT in xfstests ext4/301 to 304 and 308.

mod physical;
mod refusals;
mod snapshots;

use crate::failure::require;
use crate::load::Load;
use crate::volume::{Layout as Made, Volume};
use crate::{Failure, Outcome, TestBed};
use ::layout::defrag::{Donor, Pace, Refusal, Remap, repair, swap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use sys::device::Layout;

/// Size of a file system that is quickly filled.
const VOLUME_MIB: u32 = 24;

/// Size of files that fill it; every other one is removed to make gaps.
const FILLER_BYTES: u64 = 16 << 10;

/// Size and number of the files that are moved.
const FILE_BYTES: usize = 512 << 10;
const FILES: usize = 3;

const BLOCK_BYTES: u64 = 4096;

/// Number of moves of each file under load.
const MOVES: u32 = 6;

/// Number of the load's operations between two moves.
const BETWEEN: u64 = 20;

pub(crate) fn run(bed: &TestBed) -> Outcome<()> {
    let made = Made {
        mib: Some(VOLUME_MIB),
        options: "discard",
        ..Made::DEFAULT
    };
    let volume = Volume::with(bed, made)?;
    let files = fragmented(volume.path(), bed.seed)?;
    twice_is_identity(&files[0])?;
    become_whole(&files, None)?;
    nothing_is_programmed(bed, volume.path())?;
    refusals::run(bed, volume.path())?;
    volume.unmount()?;
    is_clean(bed)?;
    snapshots::run(bed, made)?;
    // The volume has space for the load.
    let volume = Volume::make(bed)?;
    physical::run(bed, volume.path())?;
    moved_under_load(bed, volume.path())?;
    volume.unmount()?;
    is_clean(bed)
}

/// Content of a file of the trial.
fn content(seed: u64, number: usize) -> Vec<u8> {
    let mut state = seed ^ (number as u64) << 32 | 1;
    let mut bytes = Vec::with_capacity(FILE_BYTES);
    while bytes.len() < FILE_BYTES {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes
}

/// Paths and contents of files.
pub(crate) type Files = Vec<(PathBuf, Vec<u8>)>;

/// Writes files while only gaps are free, so that they are fragmented; then frees the rest.
pub(crate) fn fragmented(directory: &Path, seed: u64) -> Outcome<Files> {
    let fillers = fill(directory)?;
    for path in fillers.iter().step_by(2) {
        fs::remove_file(path).map_err(Failure::io("remove", path))?;
    }
    sync(directory)?;
    let mut files = Vec::new();
    for number in 0..FILES {
        let path = directory.join(format!("moved-{seed}-{number}"));
        let bytes = content(seed, number);
        fs::write(&path, &bytes).map_err(Failure::io("write", &path))?;
        files.push((path, bytes));
    }
    sync(directory)?;
    for path in fillers.iter().skip(1).step_by(2) {
        fs::remove_file(path).map_err(Failure::io("remove", path))?;
    }
    sync(directory)?;
    for (path, _) in &files {
        let pieces = layout(path)?.fragments();
        require(pieces > 1, || format!("{} is in one piece", path.display()))?;
    }
    Ok(files)
}

/// Writes files until there is no space left, each next to the previous one.
fn fill(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let mut paths = Vec::new();
    loop {
        let path = directory.join(format!("filler-{}", paths.len()));
        let made = File::create(&path).and_then(|file| {
            let flags = rustix::fs::FallocateFlags::empty();
            Ok(rustix::fs::fallocate(&file, flags, 0, FILLER_BYTES)?)
        });
        match made {
            Ok(()) => paths.push(path),
            // The name of the file may have needed the last block.
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(Failure::io("remove", &path)(error));
                    }
                    _ => return Ok(paths),
                }
            }
            Err(error) => return Err(Failure::io("make room in", &path)(error)),
        }
    }
}

/// Syncs the whole file system.
fn sync(directory: &Path) -> Outcome<()> {
    let file = File::open(directory).map_err(Failure::io("open", directory))?;
    rustix::fs::syncfs(&file).map_err(|errno| Failure::io("sync", directory)(errno.into()))
}

fn layout(path: &Path) -> Outcome<Layout> {
    let file = File::open(path).map_err(Failure::io("open", path))?;
    Layout::of(&file, true).map_err(Failure::io("find the places of", path))
}

pub(crate) fn holds(path: &Path, expected: &[u8]) -> Outcome<()> {
    let bytes = fs::read(path).map_err(Failure::io("read", path))?;
    require(bytes == expected, || {
        format!("{} does not hold what was written to it", path.display())
    })
}

/// ext4/308: two swaps with the same donor put a file back to its place.
fn twice_is_identity((path, bytes): &(PathBuf, Vec<u8>)) -> Outcome<()> {
    let failed = |error| Failure::io("swap", path)(error);
    let file = File::options().read(true).write(true).open(path);
    let file = file.map_err(Failure::io("open", path))?;
    let before = layout(path)?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let owner = file.metadata().map_err(failed)?;
    let donor = Donor::new(directory, &before.segments(), &owner).map_err(failed)?;
    let mut places = vec![before.runs()];
    for _ in 0..2 {
        swap(&file, &donor, BLOCK_BYTES, 0, FILE_BYTES as u64).map_err(failed)?;
        holds(path, bytes)?;
        places.push(layout(path)?.runs());
    }
    require(places[1] != places[0], || "a swap moved nothing".to_owned())?;
    require(places[2] == places[0], || {
        format!("swapped twice, {} is somewhere else", path.display())
    })
}

/// On a device that remaps, the kernel's copy programs nothing.
fn nothing_is_programmed(bed: &TestBed, directory: &Path) -> Outcome<()> {
    let failed = |error: ::layout::defrag::Error| Failure::new(error.to_string());
    let remap = Remap::of(directory).map_err(failed)?;
    let remap = remap.ok_or_else(|| Failure::new("the device cannot remap"))?;
    let elided = || {
        remap
            .elided_pages()
            .map_err(Failure::io("count on", directory))
    };
    let files = fragmented(directory, bed.seed + 1)?;
    let before = elided()?;
    become_whole(&files, Some(&remap))?;
    let pages = (FILES * FILE_BYTES) as u64 / BLOCK_BYTES;
    let done = elided()? - before;
    require(done == pages, || {
        format!("of {pages} pages that were moved the device remapped {done}")
    })
}

/// Files end in fewer pieces with the same content, also when read from the device.
fn become_whole(files: &Files, remap: Option<&Remap>) -> Outcome<()> {
    for (path, bytes) in files {
        let moved = repair(Path::new("/"), path, remap, &mut Pace::new(None), &NEVER);
        let moved = moved.map_err(|refusal| left(path, &refusal))?;
        require(moved.complete && moved.bytes == FILE_BYTES as u64, || {
            format!("{} was moved in part: {moved:?}", path.display())
        })?;
        let pieces = layout(path)?.fragments();
        require(
            pieces == moved.fragments_after && pieces < moved.fragments_before,
            || format!("{} is in {pieces} pieces after {moved:?}", path.display()),
        )?;
        holds(path, bytes)?;
    }
    crate::test_bed::drop_caches()?;
    files
        .iter()
        .try_for_each(|(path, bytes)| holds(path, bytes))
}

static NEVER: AtomicBool = AtomicBool::new(false);

fn left(path: &Path, refusal: &Refusal) -> Failure {
    Failure::new(format!("{} was not moved: {refusal}", path.display()))
}

/// ext4/301 to 304: files are moved while threads write and check them, through the page cache and
/// with O_DIRECT, and while one is truncated repeatedly.
fn moved_under_load(bed: &TestBed, directory: &Path) -> Outcome<()> {
    let load = Load::start(directory, bed.seed);
    load.goes_on(BETWEEN)?;
    let mut moves = 0;
    for _ in 0..MOVES * bed.rounds {
        for name in ["buffered", "direct", "rewritten"] {
            moves += u32::from(move_somewhere(&directory.join(name))?);
        }
        load.goes_on(BETWEEN)?;
    }
    load.end()?;
    require(moves >= MOVES, || {
        format!("only {moves} moves were possible under load")
    })
}

/// Moves a file; false if it changed meanwhile or does not exist.
fn move_somewhere(path: &Path) -> Outcome<bool> {
    let Ok(file) = File::options().read(true).write(true).open(path) else {
        return Ok(false);
    };
    let before = Layout::of(&file, true).map_err(Failure::io("find the places of", path))?;
    let directory = path.parent().unwrap_or(Path::new("/"));
    let owner = file.metadata().map_err(Failure::io("look at", path))?;
    let donor = match Donor::new(directory, &before.segments(), &owner) {
        Ok(donor) => donor,
        Err(error) if error.raw_os_error() == Some(libc::ENOSPC) => return Ok(false),
        Err(error) => return Err(Failure::io("make a donor for", path)(error)),
    };
    for (start, size) in before.segments() {
        match swap(&file, &donor, BLOCK_BYTES, start, size) {
            Ok(()) => {}
            Err(error) => match error.raw_os_error() {
                Some(libc::EBUSY | libc::EINVAL | libc::ENODATA | libc::ENOSPC) => {
                    return Ok(false);
                }
                _ => return Err(Failure::io("move", path)(error)),
            },
        }
    }
    Ok(!before.segments().is_empty())
}

/// Checks that e2fsck finds no error.
pub(crate) fn is_clean(bed: &TestBed) -> Outcome<()> {
    let done = Command::new("/bin/e2fsck")
        .args(["-f", "-n"])
        .arg(bed.device_node())
        .env("LD_LIBRARY_PATH", sys::arch::NATIVE.libraries)
        .output()
        .map_err(Failure::io("run", Path::new("/bin/e2fsck")))?;
    require(done.status.success(), || {
        let said = String::from_utf8_lossy(&done.stdout);
        format!("e2fsck finds errors: {}", said.replace('\n', "; "))
    })
}
