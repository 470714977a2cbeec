//! Files that tasks waited to read, and in how many pieces they lie on their disks.

use crate::machine::Machine;
use crate::observe::Wait;
use iopro::wait::Class;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use sys::device::Layout;

/// Most files that are looked at: those that were waited for longest.
const MOST_FILES: usize = 8;

/// The pieces of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Number of pieces.
    pub count: u64,
    /// Bytes of all pieces.
    pub bytes: u64,
}

impl Pieces {
    /// Mean size of a piece in bytes.
    pub fn mean_bytes(&self) -> u64 {
        self.bytes / self.count.max(1)
    }
}

/// The pieces of the files that were read, by path.
pub(crate) fn of_read(root: &Path, waits: &[Wait], machine: &Machine) -> BTreeMap<String, Pieces> {
    let mut lost: BTreeMap<&str, u64> = BTreeMap::new();
    let of_disk = |it: &&Wait| matches!(it.class, Class::Service | Class::Tag);
    for wait in waits.iter().filter(of_disk) {
        // A dead server would block the call for ever.
        let local = |file: &&str| machine.mount_of(file).is_some_and(|it| !it.remote);
        if let Some(file) = wait.file.as_deref().filter(|_| wait.reads()).filter(local) {
            *lost.entry(file).or_default() += wait.lost_ns;
        }
    }
    let mut files: Vec<_> = lost.into_iter().collect();
    files.sort_by_key(|(_, lost_ns)| Reverse(*lost_ns));
    let files = files.into_iter().take(MOST_FILES);
    files
        .filter_map(|(path, _)| Some((path.to_owned(), of_file(&root.join(&path[1..]))?)))
        .collect()
}

fn of_file(path: &Path) -> Option<Pieces> {
    let file = sys::walk::open_regular(path).ok()?;
    let layout = Layout::of(&file, false).ok()?;
    let (count, bytes) = (layout.fragments(), layout.placed_bytes());
    (count > 0).then_some(Pieces { count, bytes })
}
