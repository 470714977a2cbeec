//! The fields of a superblock that are used here (`struct ext4_super_block`).

use serde::Serialize;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Size of a file system, and its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Superblock {
    /// Size of a block, in bytes.
    pub block_bytes: u64,
    /// Size of the file system, in bytes.
    pub size_bytes: u64,
    /// Bytes of all blocks in use, with metadata.
    pub used_bytes: u64,
    /// Number of files, directories and links, with the few of the file system itself.
    pub inodes: u64,
}

const OFFSET: u64 = 1024;
const BYTES: usize = 1024;
const MAGIC: u16 = 0xef53;
const INCOMPAT_64BIT: u32 = 0x80;
/// Largest `s_log_block_size`, for blocks of 64 KB.
const MOST_LOG_BLOCK_SIZE: u32 = 6;

impl Superblock {
    /// Reads the superblock in `file`; `None` if it has none.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn of(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; BYTES];
        match file.read_exact_at(&mut bytes, OFFSET) {
            Ok(()) => Ok(Self::parse(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn parse(bytes: &[u8; BYTES]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let magic = u16::from_le_bytes([bytes[0x38], bytes[0x39]]);
        let log_block_size = word(0x18);
        if magic != MAGIC || log_block_size > MOST_LOG_BLOCK_SIZE {
            return None;
        }
        let block_bytes = 1024 << log_block_size;
        let high = word(0x60) & INCOMPAT_64BIT != 0;
        let blocks = |low: usize, at_high: usize| {
            u64::from(word(low))
                | if high {
                    u64::from(word(at_high)) << 32
                } else {
                    0
                }
        };
        let all = blocks(0x4, 0x150);
        let free = blocks(0xc, 0x158);
        Some(Superblock {
            block_bytes,
            size_bytes: all.checked_mul(block_bytes)?,
            used_bytes: all.checked_sub(free)? * block_bytes,
            inodes: u64::from(word(0)).checked_sub(u64::from(word(0x10)))?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn superblock(magic: u16) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[0..4].copy_from_slice(&64_u32.to_le_bytes());
        bytes[0x4..0x8].copy_from_slice(&1000_u32.to_le_bytes());
        bytes[0xc..0x10].copy_from_slice(&400_u32.to_le_bytes());
        bytes[0x10..0x14].copy_from_slice(&50_u32.to_le_bytes());
        bytes[0x18] = 2;
        bytes[0x38..0x3a].copy_from_slice(&magic.to_le_bytes());
        bytes[0x150] = 1;
        bytes
    }

    #[test]
    fn sizes_are_in_bytes_and_the_high_words_count_where_there_are_any() {
        let mut bytes = superblock(MAGIC);
        let small = Superblock::parse(&bytes).unwrap();
        assert_eq!(small.size_bytes, 1000 * 4096);
        assert_eq!(small.used_bytes, 600 * 4096);
        assert_eq!(small.inodes, 14);
        bytes[0x60] = INCOMPAT_64BIT as u8;
        let large = Superblock::parse(&bytes).unwrap();
        assert_eq!(large.size_bytes, (1000 + (1 << 32)) * 4096);
    }

    #[test]
    fn another_number_is_another_file_system() {
        assert_eq!(Superblock::parse(&superblock(0xef54)), None);
    }

    proptest! {
        #[test]
        fn nothing_in_it_makes_numbers_overflow(words in prop::collection::vec(any::<u8>(), BYTES)) {
            let mut bytes: [u8; BYTES] = words.try_into().unwrap();
            bytes[0x38..0x3a].copy_from_slice(&MAGIC.to_le_bytes());
            bytes[0x19..0x1c].fill(0);
            if let Some(superblock) = Superblock::parse(&bytes) {
                prop_assert!(superblock.used_bytes <= superblock.size_bytes);
            }
        }
    }
}
