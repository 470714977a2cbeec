//! Finds the BTF in the files a kernel comes in.

use crate::abi::Error;
use liblzma::read::XzDecoder;
use liblzma::stream::Stream;
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::io::Read;

const BTF_MAGIC: u16 = 0xeb9f;
const ELF_MAGIC: &[u8] = b"\x7fELF";

/// Offset and magic of an arm64 image without ELF headers (Documentation/arch/arm64/booting.rst).
const FLAT_MAGIC: (usize, &[u8]) = (56, b"ARM\x64");

/// Size of `struct btf_header`.
const BTF_HEADER_BYTES: usize = 24;

/// Legacy LZ4 frames, the kind `lz4 -l` writes: a length before each block, and every
/// block but the last expands to this.
const LZ4_BLOCK_BYTES: usize = 8 << 20;

/// Larger than any kernel with debug information stripped; bounds what a damaged
/// image can make us allocate.
const KERNEL_MAX_BYTES: u64 = 1 << 30;

/// A kernel's own dictionary has 64 MiB at most.
const LZMA_MEMORY_BYTES: u64 = 1 << 30;

type Unpack = fn(&[u8]) -> Option<Vec<u8>>;

/// The compressions of `CONFIG_KERNEL_*` whose streams can be recognised.
const COMPRESSIONS: [(&[u8], Unpack); 5] = [
    (b"\x1f\x8b\x08", gzip),
    (b"\xfd7zXZ\0", xz),
    (b"\x5d\x00\x00", lzma),
    (b"\x02\x21\x4c\x18", lz4),
    (b"\x28\xb5\x2f\xfd", zstd),
];

/// The raw BTF that `file` is or contains.
///
/// # Errors
/// [`Error::NoBtf`] with what was found instead.
pub fn btf_section(file: &[u8]) -> Result<Cow<'_, [u8]>, Error> {
    if is_btf(file) {
        return Ok(Cow::Borrowed(file));
    }
    if is_kernel(file) {
        return section(file).map(Cow::Owned);
    }
    let kernel = unpack(file)
        .ok_or_else(|| Error::NoBtf("it is neither BTF, nor ELF, nor a kernel image".into()))?;
    section(&kernel).map(Cow::Owned)
}

fn is_kernel(file: &[u8]) -> bool {
    file.starts_with(ELF_MAGIC) || is_flat(file)
}

fn is_flat(file: &[u8]) -> bool {
    let (place, magic) = FLAT_MAGIC;
    file.get(place..).is_some_and(|it| it.starts_with(magic))
}

fn section(kernel: &[u8]) -> Result<Vec<u8>, Error> {
    if !is_flat(kernel) {
        return elf_section(kernel);
    }
    let found = (0..kernel.len()).find_map(|place| btf_at(&kernel[place..]));
    let found = found.ok_or_else(|| Error::NoBtf("nothing in it looks like BTF".into()));
    found.map(<[u8]>::to_vec)
}

/// The BTF that `bytes` begin with. A flat kernel says nowhere where its parts are, so all that
/// the header says has to fit: version 1 without flags, types and after them strings, the first
/// of which is empty.
fn btf_at(bytes: &[u8]) -> Option<&[u8]> {
    let header = bytes.first_chunk::<BTF_HEADER_BYTES>()?;
    let [low, high] = BTF_MAGIC.to_le_bytes();
    if !header.starts_with(&[low, high, 1, 0]) {
        return None;
    }
    let word = |index: usize| {
        let word: [u8; 4] = header[index * 4..][..4].try_into().ok()?;
        Some(u32::from_le_bytes(word) as usize)
    };
    let (header_bytes, types, types_bytes) = (word(1)?, word(2)?, word(3)?);
    let (strings, strings_bytes) = (word(4)?, word(5)?);
    if header_bytes < BTF_HEADER_BYTES || types != 0 || types_bytes == 0 || strings < types_bytes {
        return None;
    }
    let first = header_bytes.checked_add(strings)?;
    let all = bytes.get(..first.checked_add(strings_bytes)?)?;
    let strings = &all[first..];
    (strings.first() == Some(&0) && strings.last() == Some(&0)).then_some(all)
}

fn is_btf(file: &[u8]) -> bool {
    let magic = file.first_chunk().copied().unwrap_or_default();
    u16::from_le_bytes(magic) == BTF_MAGIC || u16::from_be_bytes(magic) == BTF_MAGIC
}

fn elf_section(elf: &[u8]) -> Result<Vec<u8>, Error> {
    let parsed = object::File::parse(elf)
        .map_err(|error| Error::NoBtf(format!("its ELF header is damaged: {error}")))?;
    let section = parsed
        .section_by_name(".BTF")
        .ok_or_else(|| Error::NoBtf("it has no .BTF section".into()))?;
    let bytes = section
        .data()
        .map_err(|error| Error::NoBtf(format!("its .BTF section is damaged: {error}")))?;
    Ok(bytes.to_vec())
}

/// The kernel inside a boot image: the first compressed stream that expands to one, as `scripts/extract-vmlinux` of the kernel's source finds it. A boot image's
/// header differs by architecture; its payload does not.
fn unpack(image: &[u8]) -> Option<Vec<u8>> {
    (0..image.len()).find_map(|start| {
        let stream = &image[start..];
        let (_, unpack) = COMPRESSIONS
            .iter()
            .find(|(magic, _)| stream.starts_with(magic))?;
        unpack(stream).filter(|kernel| is_kernel(kernel))
    })
}

/// Output of a decoder, which stops at the end of its stream, whatever follows in the image.
fn read_stream(decoder: impl Read) -> Option<Vec<u8>> {
    let mut kernel = Vec::new();
    decoder
        .take(KERNEL_MAX_BYTES)
        .read_to_end(&mut kernel)
        .ok()?;
    Some(kernel)
}

fn gzip(stream: &[u8]) -> Option<Vec<u8>> {
    read_stream(flate2::read::GzDecoder::new(stream))
}

fn xz(stream: &[u8]) -> Option<Vec<u8>> {
    read_stream(XzDecoder::new(stream))
}

fn lzma(stream: &[u8]) -> Option<Vec<u8>> {
    let decoder = Stream::new_lzma_decoder(LZMA_MEMORY_BYTES).ok()?;
    read_stream(XzDecoder::new_stream(stream, decoder))
}

fn zstd(stream: &[u8]) -> Option<Vec<u8>> {
    read_stream(ruzstd::decoding::StreamingDecoder::new(stream).ok()?)
}

fn lz4(stream: &[u8]) -> Option<Vec<u8>> {
    let mut rest = stream.get(4..)?;
    let mut kernel = Vec::new();
    let mut expanded = vec![0; LZ4_BLOCK_BYTES];
    while let Some((length, tail)) = rest.split_first_chunk() {
        let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
        let (block, tail) = tail.split_at_checked(length)?;
        let filled = lz4_flex::block::decompress_into(block, &mut expanded).ok()?;
        kernel.extend_from_slice(&expanded[..filled]);
        if filled < LZ4_BLOCK_BYTES {
            break;
        }
        rest = tail;
    }
    Some(kernel)
}
