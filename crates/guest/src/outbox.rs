//! Files on their way out of a guest.
//!
//! They go through memory that guest and host share, a PCI device's (`ivshmem`),
//! which needs no driver, costs no more than copying, and leaves nothing to
//! chance: a serial port takes a minute for what takes a second here.
//!
//! ```text
//! outbox = "FRPARCEL" · u64 length of all items · item*
//! item   = u32 name length · u64 content length · name · content
//! ```
//! Numbers are little-endian.

use std::path::{Component, Path};

const MAGIC: [u8; 8] = *b"FRPARCEL";
const HEADER_BYTES: usize = 16;

/// Capacity of an outbox in bytes. Its file is sparse, so unused space costs nothing.
pub const BYTES: usize = 1 << 30;

/// PCI's vendor and device number of the shared memory.
pub const PCI_ID: (&str, &str) = ("0x1af4", "0x1110");

/// A file's name, relative, and its content.
pub type Item = (String, Vec<u8>);

/// Encodes files; the error is a sentence about their size.
pub fn pack(items: &[Item]) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    for (name, content) in items {
        body.extend((name.len() as u32).to_le_bytes());
        body.extend((content.len() as u64).to_le_bytes());
        body.extend(name.as_bytes());
        body.extend(content);
    }
    if HEADER_BYTES + body.len() > BYTES {
        return Err(format!(
            "its files have {} and only {} fit: keep fewer",
            record::number::bytes(body.len() as u64),
            record::number::bytes(BYTES as u64)
        ));
    }
    let length = (body.len() as u64).to_le_bytes();
    Ok([&MAGIC[..], &length, &body].concat())
}

/// Decodes files; None if the memory was never packed or is invalid. Names that lead out of the
/// target directory are invalid.
pub fn unpack(memory: &[u8]) -> Option<Vec<Item>> {
    let rest = memory.strip_prefix(&MAGIC)?;
    let (length, rest) = rest.split_first_chunk()?;
    let mut rest = rest.get(..usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let mut items = Vec::new();
    while !rest.is_empty() {
        let (name_length, after) = rest.split_first_chunk()?;
        let (length, after) = after.split_first_chunk()?;
        let (name, after) = after.split_at_checked(u32::from_le_bytes(*name_length) as usize)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (content, after) = after.split_at_checked(length)?;
        let name = str::from_utf8(name).ok().filter(|it| is_inside(it))?;
        items.push((name.to_owned(), content.to_vec()));
        rest = after;
    }
    Some(items)
}

fn is_inside(name: &str) -> bool {
    let mut components = Path::new(name).components();
    !name.is_empty() && components.all(|it| matches!(it, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items() -> Vec<Item> {
        vec![
            ("stdout".to_owned(), b"hello\n".to_vec()),
            ("deep/er/file".to_owned(), Vec::new()),
        ]
    }

    #[test]
    fn packed_files_are_unpacked_whatever_follows() {
        let mut memory = pack(&items()).unwrap();
        memory.extend([0; 100]);
        assert_eq!(unpack(&memory), Some(items()));
    }

    #[test]
    fn memory_that_nobody_packed_is_no_outbox() {
        assert_eq!(unpack(&[0; 64]), None);
        assert_eq!(unpack(b""), None);
    }

    #[test]
    fn what_is_cut_is_no_outbox() {
        let memory = pack(&items()).unwrap();
        for length in 0..memory.len() {
            assert_eq!(unpack(&memory[..length]), None, "{length}");
        }
    }

    #[test]
    fn nothing_is_unpacked_elsewhere() {
        for name in ["../x", "/x", "a/../../x", ""] {
            let memory = pack(&[(name.to_owned(), vec![1])]).unwrap();
            assert_eq!(unpack(&memory), None, "{name}");
        }
    }
}
