//! Layout of pieces in the device's order: merged, and joined across gaps.

use super::pad::Chunk;
use super::{Joining, budget};
use std::ops::Range;

/// Shortest gap that is never padded: the block layer has no requests this long.
const LONGEST_GAP_BYTES: u64 = 1 << 20;

/// An offset in a file of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the file in the plan.
    pub file: usize,
    /// Offset in the file, in bytes.
    pub file_bytes: u64,
}

/// A part of a file that is contiguous on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset on the device, in bytes.
    pub device_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// Place of its first byte in the file.
    pub place: Place,
}

impl Piece {
    fn end_bytes(&self) -> u64 {
        self.device_bytes.saturating_add(self.length_bytes)
    }

    /// The part of the piece in `range`, a range of the device's bytes; None if there is none.
    fn within(&self, range: &Range<u64>) -> Option<Piece> {
        let begin = self.device_bytes.max(range.start);
        let end = self.end_bytes().min(range.end);
        (begin < end).then(|| Piece {
            device_bytes: begin,
            length_bytes: end - begin,
            place: Place {
                file_bytes: self.place.file_bytes + (begin - self.device_bytes),
                ..self.place
            },
        })
    }
}

/// Reasons why a part of a request is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Pages of the working set, which stay in memory.
    Pages(Place),
    /// Padding in a file of the profile, whose data are dropped.
    FilePadding(Place),
    /// Padding elsewhere, which is read from the device and dropped.
    DevicePadding,
}

/// A part of a request with one purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Offset on the device, in bytes.
    pub device_bytes: u64,
    /// Length in bytes.
    pub length_bytes: u64,
    /// Why it is read.
    pub purpose: Purpose,
}

impl Part {
    /// Whether it is read only to join its neighbours.
    pub fn is_padding(&self) -> bool {
        !matches!(self.purpose, Purpose::Pages(_))
    }
}

/// A contiguous read of the device, in adjoining parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Parts in ascending order; each begins where the previous one ends.
    pub parts: Vec<Part>,
}

impl Request {
    /// Offset on the device, in bytes.
    pub fn begin_bytes(&self) -> u64 {
        self.parts.first().map_or(0, |part| part.device_bytes)
    }

    /// Length in bytes.
    pub fn length_bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.length_bytes).sum()
    }
}

/// The working set on one device, and what else can be read of it.
#[derive(Clone, Debug, Default)]
pub struct DevicePieces {
    /// Pieces of the working set, in any order.
    pub pieces: Vec<Piece>,
    /// All pieces of the working set's files. Padding in them can be read with the rights that the
    /// files were opened with.
    pub owned: Vec<Piece>,
    /// Whether the device itself can be read.
    pub readable: bool,
}

/// Requests that read the working set's pieces, in the device's order.
pub fn layout(mut on_device: DevicePieces, joining: &Joining) -> Vec<Request> {
    let order = |piece: &Piece| (piece.device_bytes, piece.place.file, piece.place.file_bytes);
    on_device.pieces.retain(|piece| piece.length_bytes > 0);
    on_device.pieces.sort_by_key(order);
    on_device.owned.sort_by_key(order);
    let mut parts: Vec<Vec<Part>> = Vec::new();
    let mut chunks: Vec<Chunk> = Vec::new();
    for piece in &on_device.pieces {
        let part = Part {
            device_bytes: piece.device_bytes,
            length_bytes: piece.length_bytes,
            purpose: Purpose::Pages(piece.place),
        };
        match (chunks.last_mut(), parts.last_mut()) {
            (Some(chunk), Some(parts)) if chunk.end_bytes == piece.device_bytes => {
                chunk.end_bytes = piece.end_bytes();
                parts.push(part);
            }
            // Files share these extents, and the first file's piece has them already.
            (Some(chunk), _) if chunk.end_bytes > piece.device_bytes => continue,
            _ => {
                chunks.push(Chunk {
                    begin_bytes: piece.device_bytes,
                    end_bytes: piece.end_bytes(),
                });
                parts.push(vec![part]);
            }
        }
    }
    match joining {
        Joining::Merge => parts.into_iter().map(|parts| Request { parts }).collect(),
        Joining::Pad { latency, most } => {
            let gaps = gaps(&chunks, &on_device);
            let lists = split(&chunks, &gaps);
            let bytes = chunks.iter().map(|it| it.end_bytes - it.begin_bytes).sum();
            let found = budget::within(budget::part(bytes, *most), &lists, latency);
            join(parts, gaps, found)
        }
    }
}

/// Parts that read the gap after each chunk. `None` for a gap that cannot be read or is too long.
fn gaps(chunks: &[Chunk], on_device: &DevicePieces) -> Vec<Option<Vec<Part>>> {
    let mut owned = on_device.owned.as_slice();
    let of_pair = |pair: &[Chunk]| {
        let gap = pair[0].end_bytes..pair[1].begin_bytes;
        let passed = owned.partition_point(|it| it.end_bytes() <= gap.start);
        owned = &owned[passed..];
        match gap.end - gap.start <= LONGEST_GAP_BYTES {
            true => fill(gap, owned, on_device.readable),
            false => None,
        }
    };
    chunks.windows(2).map(of_pair).collect()
}

fn fill(gap: Range<u64>, owned: &[Piece], readable: bool) -> Option<Vec<Part>> {
    let mut parts = Vec::new();
    let mut at = gap.start;
    let elsewhere = |begin: u64, end: u64| Part {
        device_bytes: begin,
        length_bytes: end - begin,
        purpose: Purpose::DevicePadding,
    };
    for piece in owned.iter().take_while(|it| it.device_bytes < gap.end) {
        let Some(piece) = piece.within(&(at..gap.end)) else {
            continue;
        };
        if piece.device_bytes > at {
            parts.push(elsewhere(at, piece.device_bytes));
        }
        at = piece.end_bytes();
        parts.push(Part {
            device_bytes: piece.device_bytes,
            length_bytes: piece.length_bytes,
            purpose: Purpose::FilePadding(piece.place),
        });
    }
    if at < gap.end {
        parts.push(elsewhere(at, gap.end));
    }
    let foreign = parts
        .iter()
        .any(|part| part.purpose == Purpose::DevicePadding);
    (readable || !foreign).then_some(parts)
}

/// Lists of chunks whose gaps can be read.
fn split(chunks: &[Chunk], gaps: &[Option<Vec<Part>>]) -> Vec<Vec<Chunk>> {
    let mut lists: Vec<Vec<Chunk>> = Vec::new();
    for (index, chunk) in chunks.iter().enumerate() {
        let joined = index > 0 && gaps[index - 1].is_some();
        match lists.last_mut() {
            Some(list) if joined => list.push(*chunk),
            _ => lists.push(vec![*chunk]),
        }
    }
    lists
}

fn join(
    parts: Vec<Vec<Part>>,
    gaps: Vec<Option<Vec<Part>>>,
    lists: Vec<Vec<Range<usize>>>,
) -> Vec<Request> {
    let mut gaps = std::iter::once(None).chain(gaps);
    let mut parts = parts.into_iter();
    let mut requests = Vec::new();
    for range in lists.into_iter().flatten() {
        let mut all = Vec::new();
        for index in range.clone() {
            let gap = gaps.next().flatten();
            if index > range.start {
                all.extend(gap.into_iter().flatten());
            }
            all.extend(parts.next().into_iter().flatten());
        }
        requests.push(Request { parts: all });
    }
    requests
}
