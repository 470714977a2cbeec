//! Page versions: the calls with a part in each, and the end of that part.
//!
//! A version begins when the page becomes dirty. It ends when the page is taken for writeback or
//! thrown away. A call has a part in a version from the moment it changes bytes of the page until
//! all of these bytes are overwritten. The end of that part is one page in one link:
//!
//! * `write`: the page was taken, and this request carries it. All calls that still have a part
//!   then are linked to the request.
//! * `overwritten`: later calls replaced all bytes of the call before that.
//! * `truncated`, `removed`: the page was thrown away before that.
//! * `pending`: none of these had happened when the recording ended.
//! * `unlinked`: the page was taken, and no request came.
//!
//! The dirty pages of a call are known at once, its bytes only when it returns. Until then the call
//! has all bytes of the pages that it made dirty. Of calls that write the same bytes at the same
//! time, the one that returns last counts as the later one. Stores to a mapped page may change any
//! of its bytes at any time. They neither overwrite the bytes of others nor are overwritten.
//!
//! A folio becomes dirty as a whole; when the call returns, it gives up the pages that it did not
//! change. A page may be larger than the file system's blocks and be written in parts: its version
//! is then in several requests, the first of which has the page in its link.
//!
//! A run of pages is told when it has ended. A page may thus become dirty anew before the event
//! that it was taken; then the older version is assumed to have been taken. A page may also be in a
//! request before the event of its dirtier. The piece then belongs to call 0, and the next call
//! that is told of gets it.

mod carried;
mod dirty;
mod reads;
mod written;

use super::context::Context;
use super::regions::{Map, Piece, Regions};
use crate::store::Error;
use crate::tables;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// Memory for dirty and fetched ranges; the rest is on disk.
const REGION_BUDGET_BYTES: usize = 64 << 20;
/// Age at the end of the recording from which taken pages without a request count as unlinked, not
/// as pending.
const TAKEN_LONG_AGO_NS: u64 = 1_000_000_000;

/// How the part of a call in a page version ends, as the table `links` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// This request carries the page.
    Write(u64),
    Overwritten,
    Truncated,
    Removed,
    Pending,
    Unlinked,
}

impl End {
    fn name(self) -> &'static str {
        match self {
            End::Write(_) => "write",
            End::Overwritten => "overwritten",
            End::Truncated => "truncated",
            End::Removed => "removed",
            End::Pending => "pending",
            End::Unlinked => "unlinked",
        }
    }

    fn request(self) -> Option<u64> {
        match self {
            End::Write(request) => Some(request),
            _ => None,
        }
    }

    /// Whether only bytes of a page end so: a call that still has other bytes of the page keeps its
    /// part in it.
    fn is_of_bytes(self) -> bool {
        matches!(self, End::Overwritten | End::Truncated | End::Removed)
    }
}

/// The page versions of all files, and the pages that were read and not used yet.
#[derive(Debug)]
pub struct Pages {
    regions: Regions,
    pub page_bytes: u64,
    tells_taken: bool,
    /// Of each issued request that is not complete, its bytes by the task that dirtied them.
    dirtiers: HashMap<u64, HashMap<u64, u64>>,
    /// Request whose segments are being told.
    telling: Option<u64>,
}

impl Pages {
    /// Begins without pages. `tells_taken`: as [`crate::recording::Header::tells_taken`].
    pub fn new(page_bytes: u64, tells_taken: bool) -> Pages {
        Pages {
            regions: Regions::new(REGION_BUDGET_BYTES),
            page_bytes: page_bytes.max(1),
            tells_taken,
            dirtiers: HashMap::new(),
            telling: None,
        }
    }

    /// The bytes of a run of pages.
    pub fn bytes_of(&self, index: u64, pages: u64) -> Range<u64> {
        let start = index.saturating_mul(self.page_bytes);
        start..start.saturating_add(pages.saturating_mul(self.page_bytes))
    }

    /// The bytes of all pages that `bytes` touch.
    fn pages_of(&self, bytes: &Range<u64>) -> Range<u64> {
        let page = self.page_bytes;
        bytes.start / page * page..bytes.end.div_ceil(page).saturating_mul(page)
    }

    fn whole_pages(&self, piece: Piece) -> Piece {
        Piece::new(&self.pages_of(&piece.bytes()), piece.mark)
    }

    /// The pieces, each extended to whole pages.
    fn all_whole(&self, pieces: impl IntoIterator<Item = Piece>) -> Vec<Piece> {
        let pieces = pieces.into_iter();
        pieces.map(|piece| self.whole_pages(piece)).collect()
    }

    /// The pieces of a call in `bytes`, extended to whole pages.
    fn pages_with(
        &mut self,
        map: Map,
        call: u64,
        file: u64,
        bytes: &Range<u64>,
    ) -> Result<Vec<Piece>, Error> {
        let found = self.regions.find(map, file, self.pages_of(bytes))?;
        let mine = found.into_iter().filter(|piece| piece.mark.call == call);
        Ok(self.all_whole(mine))
    }

    /// Writes the links of pieces that are no longer in `map`.
    fn resolve(
        &mut self,
        context: &mut Context,
        map: Map,
        file: u64,
        pieces: &[Piece],
        (end, end_ns): (End, u64),
    ) -> Result<(), Error> {
        let mut by_call: BTreeMap<u64, Vec<Piece>> = BTreeMap::new();
        for piece in pieces.iter().filter(|piece| piece.mark.call != 0) {
            by_call.entry(piece.mark.call).or_default().push(*piece);
        }
        for (call, pieces) in by_call {
            for pages in joined(&self.all_whole(pieces.iter().copied())) {
                let kept = match end.is_of_bytes() {
                    true => self.pages_with(map, call, file, &pages)?,
                    false => Vec::new(),
                };
                for pages in gaps(&pages, &kept) {
                    context.rows.link(tables::Link {
                        syscall_id: call,
                        kind: end.name(),
                        request_id: end.request(),
                        file_id: Some(file),
                        end_ns,
                        ..self.link_of(&pieces, &pages)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// The columns of a link that tell of the pieces in these pages.
    fn link_of(&self, pieces: &[Piece], pages: &Range<u64>) -> tables::Link {
        let mine = pieces
            .iter()
            .filter(|it| it.start < pages.end && it.end > pages.start);
        let bytes = mine
            .clone()
            .map(|it| it.end.min(pages.end) - it.start.max(pages.start));
        tables::Link {
            page_index: Some(pages.start / self.page_bytes),
            pages: (pages.end - pages.start) / self.page_bytes,
            bytes: bytes.sum(),
            begin_ns: mine.map(|piece| piece.mark.time_ns).min().unwrap_or(0),
            ..tables::Link::default()
        }
    }

    /// Writes the links of all versions at the end of the recording.
    pub fn end(&mut self, context: &mut Context, end_ns: u64) -> Result<(), Error> {
        for layer in 0..self.regions.layers() {
            for map in [Map::Live(layer), Map::Taken(layer)] {
                for file in self.regions.files(map) {
                    self.end_file(context, map, file, end_ns)?;
                }
            }
        }
        Ok(())
    }

    fn end_file(
        &mut self,
        context: &mut Context,
        map: Map,
        file: u64,
        end_ns: u64,
    ) -> Result<(), Error> {
        let mut pieces = self.regions.cut(map, file, 0..u64::MAX)?;
        pieces.retain(|piece| piece.mark.request == 0);
        let is_taken = matches!(map, Map::Taken(_));
        let long_ago_ns = end_ns.saturating_sub(TAKEN_LONG_AGO_NS);
        let (unlinked, pending): (Vec<Piece>, Vec<Piece>) = pieces
            .into_iter()
            .partition(|it| is_taken && it.mark.taken_ns < long_ago_ns);
        self.resolve(context, map, file, &unlinked, (End::Unlinked, end_ns))?;
        self.resolve(context, map, file, &pending, (End::Pending, end_ns))
    }
}

/// The parts of `range` that no piece covers.
fn gaps<'a>(range: &Range<u64>, pieces: impl IntoIterator<Item = &'a Piece>) -> Vec<Range<u64>> {
    let mut covered: Vec<(u64, u64)> = pieces.into_iter().map(|it| (it.start, it.end)).collect();
    covered.sort_unstable();
    let mut gaps = Vec::new();
    let mut start = range.start;
    for (from, to) in covered {
        if from > start {
            gaps.push(start..from.min(range.end));
        }
        start = start.max(to);
    }
    if start < range.end {
        gaps.push(start..range.end);
    }
    gaps.retain(|gap| !gap.is_empty());
    gaps
}

/// The parts that at least one piece covers, joined where they adjoin.
fn joined(pieces: &[Piece]) -> Vec<Range<u64>> {
    let mut all: Vec<(u64, u64)> = pieces.iter().map(|it| (it.start, it.end)).collect();
    all.sort_unstable();
    let mut joined: Vec<Range<u64>> = Vec::new();
    for (start, end) in all {
        match joined.last_mut() {
            Some(last) if last.end >= start => last.end = last.end.max(end),
            _ => joined.push(start..end),
        }
    }
    joined
}
