//! The bytes of a trace: of a file, a pipe or the standard input, unpacked if they are packed.

use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use sys::PathError;

/// As many first bytes as tell what a trace is.
const HEAD_BYTES: u64 = 8;

const BUFFER_BYTES: usize = 128 << 10;

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const XZ_MAGIC: &[u8] = b"\xfd7zXZ\0";
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Most memory for unpacking: what a window of `xz -9` and `zstd --long` takes.
const MEMORY_LIMIT_BYTES: u64 = 160 << 20;

/// An open trace, whose first bytes can be looked at without losing them. It is opened once: a pipe
/// has each byte once.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    head: Vec<u8>,
    rest: File,
}

impl Input {
    /// Opens a trace; `-` is the standard input.
    ///
    /// # Errors
    /// The system's.
    pub fn open(path: &Path) -> Result<Self, PathError> {
        let failed = PathError::of("read", path);
        let mut rest = match path == Path::new("-") {
            true => rustix::io::dup(io::stdin())
                .map(File::from)
                .map_err(Into::into),
            false => File::open(path),
        }
        .map_err(&failed)?;
        let mut head = Vec::new();
        let look = rest.by_ref().take(HEAD_BYTES).read_to_end(&mut head);
        look.map_err(&failed)?;
        Ok(Input {
            path: path.to_owned(),
            head,
            rest,
        })
    }

    /// Path that errors name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the trace begins with these bytes, of which at most eight are looked at.
    pub fn begins_with(&self, bytes: &[u8]) -> bool {
        self.head.starts_with(bytes)
    }

    /// All bytes of the trace as they are.
    pub fn bytes(self) -> impl Read {
        io::Cursor::new(self.head).chain(self.rest)
    }

    /// The text of the trace.
    pub(crate) fn text(self) -> io::Result<Box<dyn BufRead>> {
        let (gzip, xz, zstd) = (
            self.begins_with(GZIP_MAGIC),
            self.begins_with(XZ_MAGIC),
            self.begins_with(ZSTD_MAGIC),
        );
        let buffered = |it| BufReader::with_capacity(BUFFER_BYTES, it);
        let bytes = buffered(self.bytes());
        Ok(if gzip {
            Box::new(BufReader::with_capacity(
                BUFFER_BYTES,
                MultiGzDecoder::new(bytes),
            ))
        } else if xz {
            let stream = liblzma::stream::Stream::new_auto_decoder(
                MEMORY_LIMIT_BYTES,
                liblzma::stream::CONCATENATED,
            );
            let stream = stream.map_err(|error| damaged(error.to_string()))?;
            let decoder = XzDecoder::new_stream(bytes, stream);
            Box::new(BufReader::with_capacity(BUFFER_BYTES, decoder))
        } else if zstd {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, Frames::new(bytes)))
        } else {
            Box::new(bytes)
        })
    }
}

/// The frames of a zstd file, one after the other.
struct Frames<R> {
    input: R,
    decoder: FrameDecoder,
    /// A frame has begun, and not all of it has been read.
    inside: bool,
}

impl<R: BufRead> Frames<R> {
    fn new(input: R) -> Self {
        Frames {
            input,
            decoder: FrameDecoder::new(),
            inside: false,
        }
    }

    /// Begins the next frame; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.input.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.input) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let length = u64::from(length);
                    let skipped = self.input.by_ref().take(length);
                    if io::copy(&mut { skipped }, &mut io::sink())? < length {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) => return Err(damaged(error.to_string())),
            }
        }
        Ok(false)
    }

    /// A frame with a checksum must have the content that it was made of.
    fn check(&self) -> io::Result<()> {
        let wanted = self.decoder.get_checksum_from_data();
        match wanted.is_none() || wanted == self.decoder.get_calculated_checksum() {
            true => Ok(()),
            false => Err(damaged("its checksum is another".to_owned())),
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.inside && !self.begin()? {
                return Ok(0);
            }
            self.inside = true;
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let some = BlockDecodingStrategy::UptoBlocks(1);
                let decoded = self.decoder.decode_blocks(&mut self.input, some);
                decoded.map_err(|error| damaged(error.to_string()))?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.check()?;
            self.inside = false;
        }
    }
}

fn damaged(reason: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}
