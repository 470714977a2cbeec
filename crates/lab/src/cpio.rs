//! The archive format of an initramfs ("newc", `Documentation/driver-api/early-userspace/buffer-format.rst`).
//!
//! The same entries give the same bytes: no times, owners or inode numbers of
//! the host get in, and entries are sorted by path.

use std::collections::BTreeMap;

const DIRECTORY: u32 = 0o040755;
const PROGRAM: u32 = 0o100755;
const DATA: u32 = 0o100644;
const LINK: u32 = 0o120777;
const TRAILER: &str = "TRAILER!!!";

#[derive(Clone, Debug)]
struct Entry {
    mode: u32,
    content: Vec<u8>,
}

/// A file tree on its way into an archive.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    entries: BTreeMap<String, Entry>,
}

impl Archive {
    /// An empty tree.
    pub fn new() -> Archive {
        Archive::default()
    }

    /// Adds the directory `path` and those above it. Paths have no leading slash.
    pub fn directory(&mut self, path: &str) {
        let ends = path
            .match_indices('/')
            .map(|(at, _)| at)
            .chain([path.len()]);
        for end in ends {
            self.add(&path[..end], DIRECTORY, Vec::new());
        }
    }

    /// Adds an executable file.
    pub fn program(&mut self, path: &str, content: Vec<u8>) {
        self.file(path, PROGRAM, content);
    }

    /// Adds a file to read.
    pub fn data(&mut self, path: &str, content: Vec<u8>) {
        self.file(path, DATA, content);
    }

    /// Adds a symbolic link to `target`.
    pub fn link(&mut self, path: &str, target: &str) {
        self.file(path, LINK, target.as_bytes().to_vec());
    }

    fn file(&mut self, path: &str, mode: u32, content: Vec<u8>) {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.directory(above);
        }
        self.add(path, mode, content);
    }

    fn add(&mut self, path: &str, mode: u32, content: Vec<u8>) {
        self.entries
            .insert(path.to_owned(), Entry { mode, content });
    }

    /// The archive's bytes, a multiple of 512.
    pub fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (inode, (path, entry)) in (1u32..).zip(&self.entries) {
            put(&mut out, inode, path, entry);
        }
        let trailer = Entry {
            mode: 0,
            content: Vec::new(),
        };
        put(&mut out, 0, TRAILER, &trailer);
        out.resize(out.len().next_multiple_of(512), 0);
        out
    }
}

/// Header of thirteen 8-digit hexadecimal fields, then name and content, each
/// padded to four bytes.
fn put(out: &mut Vec<u8>, inode: u32, path: &str, entry: &Entry) {
    let links = if entry.mode == DIRECTORY { 2 } else { 1 };
    let (owner, group, time, device) = (0, 0, 0, 0);
    let fields = [
        inode,
        entry.mode,
        owner,
        group,
        links,
        time,
        entry.content.len() as u32,
        device,
        device,
        device,
        device,
        path.len() as u32 + 1,
        0,
    ];
    out.extend(b"070701");
    for field in fields {
        out.extend(format!("{field:08x}").as_bytes());
    }
    out.extend(path.as_bytes());
    out.push(0);
    out.resize(out.len().next_multiple_of(4), 0);
    out.extend(&entry.content);
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_adding_does_not_show() {
        let mut one = Archive::new();
        one.data("b/c", b"x".to_vec());
        one.program("a", b"yy".to_vec());
        let mut other = Archive::new();
        other.program("a", b"yy".to_vec());
        other.directory("b");
        other.data("b/c", b"x".to_vec());
        assert_eq!(one.bytes(), other.bytes());
    }

    #[test]
    fn headers_and_contents_are_aligned_and_the_trailer_ends_them() {
        let mut archive = Archive::new();
        archive.data("etc/mtab", b"12345".to_vec());
        archive.link("bin", "usr/bin");
        let bytes = archive.bytes();
        assert_eq!(bytes.len() % 512, 0);
        let (mut at, mut names) = (0, Vec::new());
        loop {
            assert_eq!(&bytes[at..at + 6], b"070701");
            let field = |index: usize| {
                let from = at + 6 + index * 8;
                let digits = std::str::from_utf8(&bytes[from..from + 8]).unwrap();
                usize::from_str_radix(digits, 16).unwrap()
            };
            assert_eq!([2, 3, 5].map(field), [0; 3], "root's, and without a time");
            let (size, name_size) = (field(6), field(11));
            let name = &bytes[at + 110..at + 110 + name_size - 1];
            names.push(String::from_utf8(name.to_vec()).unwrap());
            at = (at + 110 + name_size).next_multiple_of(4) + size.next_multiple_of(4);
            if names.last().unwrap() == TRAILER {
                break;
            }
        }
        assert_eq!(names, ["bin", "etc", "etc/mtab", TRAILER]);
    }
}
