//! Writer of recordings.

use super::{BLOCK_HEADER_BYTES, BLOCK_MAGIC, BlockKind, Header, MAGIC};
use std::io::{self, Write};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Size of a write to the file. For each page that it copies, the kernel looks at all pages to
/// come, so a larger write costs more.
pub const WRITE_BYTES: usize = 64 << 10;

/// Writes a recording block by block.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Writer<W> {
    /// Begins a recording with its header.
    pub fn new(mut out: W, header: &Header) -> io::Result<Writer<W>> {
        let text = serde_json::to_vec(header)?;
        let mut begin = (text.len() as u32).to_le_bytes().to_vec();
        begin.extend(&text);
        let checksum = xxh3_64(&begin);
        let all = [&MAGIC[..], &begin, &checksum.to_le_bytes()].concat();
        out.write_all(&all)?;
        Ok(Writer {
            out,
            bytes: all.len() as u64,
        })
    }

    /// Writes a block with the content of one CPU's ring. `parts` are joined: the content may be in
    /// two pieces.
    pub fn data(&mut self, cpu: u16, parts: &[&[u8]]) -> io::Result<()> {
        self.block(BlockKind::Data, cpu, 0, parts)
    }

    /// Writes the end of a round that emptied all rings and began at `begin_ns`.
    pub fn round(&mut self, begin_ns: u64) -> io::Result<()> {
        self.block(BlockKind::Round, 0, begin_ns, &[])
    }

    /// Passes all blocks so far to the system.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Ends the recording in order at `end_ns`.
    pub fn end(&mut self, end_ns: u64) -> io::Result<()> {
        self.block(BlockKind::End, 0, end_ns, &[])?;
        self.out.flush()
    }

    /// Size of the recording so far, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn block(&mut self, kind: BlockKind, cpu: u16, time: u64, parts: &[&[u8]]) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let mut header = [0; BLOCK_HEADER_BYTES];
        header[..4].copy_from_slice(&BLOCK_MAGIC.to_le_bytes());
        header[4..6].copy_from_slice(&(kind as u16).to_le_bytes());
        header[6..8].copy_from_slice(&cpu.to_le_bytes());
        header[8..12].copy_from_slice(&(length as u32).to_le_bytes());
        header[16..24].copy_from_slice(&time.to_le_bytes());
        let mut checksum = Xxh3::new();
        checksum.update(&header[..24]);
        for part in parts {
            checksum.update(part);
        }
        header[24..].copy_from_slice(&checksum.digest().to_le_bytes());
        self.out.write_all(&header)?;
        for piece in parts.iter().flat_map(|part| part.chunks(WRITE_BYTES)) {
            self.out.write_all(piece)?;
        }
        self.bytes += (BLOCK_HEADER_BYTES + length) as u64;
        Ok(())
    }
}
