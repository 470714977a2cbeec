//! Reading of files whose places on a device are not known, by several threads.
//!
//! squashfs, which Snaps are, packs its files: no page of theirs lies anywhere on the disk. It
//! unpacks a block in the thread that asks for it. Several threads thus unpack on several CPUs, and
//! wait for the device together.

use crate::load::Watch;
use crate::profile::{PAGE_BYTES, Pages, push};
use crate::residency::read_ahead;
use crate::working_set::Opened;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Fewest threads, so that some wait for the device while another unpacks.
const FEWEST: usize = 4;

/// Smallest number of bytes that one thread reads: what squashfs packs together if it is not told
/// otherwise. Of two threads in one block the second would wait for the first.
const BLOCK_BYTES: u64 = 128 << 10;

/// Threads that read what they are given, in its order. They end when all is read, or when memory
/// gets short.
pub struct Unpackers {
    work: Sender<Work>,
    threads: Vec<JoinHandle<()>>,
}

/// Pages of one block of a file.
struct Work {
    file: Arc<File>,
    pages: Vec<Pages>,
}

impl Unpackers {
    /// Starts a thread for each CPU that this process may use.
    pub fn start() -> Unpackers {
        let (work, queue) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let count = thread::available_parallelism().map_or(FEWEST, |it| it.get().max(FEWEST));
        let thread = |_| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || read(&queue))
        };
        Unpackers {
            work,
            threads: (0..count).map(thread).collect(),
        }
    }

    /// Has the missing pages of `files` read. Files that were packed one after another are read one
    /// after another: small ones share a block.
    pub fn read(&self, mut files: Vec<&Opened>) {
        files.sort_by_key(|it| (it.device, it.file.metadata().map_or(0, |it| it.ino())));
        for opened in files {
            // Without a descriptor the app reads the file itself.
            let Ok(file) = opened.file.try_clone() else {
                return;
            };
            let file = Arc::new(file);
            for pages in by_block(&opened.missing, block_bytes(&file)) {
                let file = Arc::clone(&file);
                // The threads end only after this sender, or for want of memory.
                let _ = self.work.send(Work { file, pages });
            }
        }
    }

    /// Waits until all is read.
    pub fn finish(self) {
        drop(self.work);
        for thread in self.threads {
            // A thread that panicked has said so, and the app reads what is left.
            let _ = thread.join();
        }
    }
}

fn read(queue: &Mutex<Receiver<Work>>) {
    let mut memory = Watch::default();
    let next = || {
        let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.recv().ok()
    };
    while let Some(work) = next() {
        for pages in work.pages {
            if memory.is_short(pages.count * PAGE_BYTES).unwrap_or(true) {
                return;
            }
            // A page that cannot be read is an error for the app.
            let _ = read_ahead(&work.file, pages);
        }
    }
}

/// Bytes that the file's file system packs together (squashfs's `f_bsize`).
fn block_bytes(file: &File) -> u64 {
    let bytes = rustix::fs::fstatfs(file).map_or(0, |it| it.f_bsize as u64);
    bytes.max(BLOCK_BYTES)
}

/// Pages by the block that they are in.
fn by_block(pages: &[Pages], block_bytes: u64) -> Vec<Vec<Pages>> {
    let block_pages = block_bytes / PAGE_BYTES;
    let mut blocks: Vec<(u64, Vec<Pages>)> = Vec::new();
    for page in pages.iter().flat_map(|it| it.first..it.end()) {
        let block = page / block_pages;
        match blocks.last_mut() {
            Some((last, pages)) if *last == block => push(pages, page, page + 1),
            _ => blocks.push((
                block,
                vec![Pages {
                    first: page,
                    count: 1,
                }],
            )),
        }
    }
    blocks.into_iter().map(|(_, pages)| pages).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_one_block_are_read_by_one_thread() {
        let pages = |first, count| Pages { first, count };
        let all = [pages(3, 2), pages(30, 40), pages(97, 1)];
        let blocks = [
            vec![pages(3, 2), pages(30, 2)],
            vec![pages(32, 32)],
            vec![pages(64, 6)],
            vec![pages(97, 1)],
        ];
        assert_eq!(by_block(&all, 128 << 10), blocks);
        assert_eq!(by_block(&all, 1 << 20), [all.to_vec()]);
    }
}
