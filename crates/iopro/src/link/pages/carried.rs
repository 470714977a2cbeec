//! Page versions in the requests that carry them.

use super::super::context::Context;
use super::super::recent::Run;
use super::super::regions::{Map, Mark, Piece};
use super::{End, Pages, gaps};
use crate::store::Error;
use crate::tables;
use std::collections::HashMap;
use std::ops::Range;

impl Pages {
    /// Begins to count the dirtiers of a request that was issued, perhaps not for the first time.
    pub fn issued(&mut self, request: u64) {
        self.dirtiers.insert(request, HashMap::new());
        self.telling = Some(request);
    }

    /// Notes that the segments which follow are of this request.
    pub fn tells(&mut self, request: u64) {
        self.telling = Some(request);
    }

    /// Forgets a request that no longer exists. Returns the task that dirtied most of it.
    pub fn over(&mut self, request: u64) -> Option<u64> {
        let dirtiers = self.dirtiers.remove(&request)?.into_iter();
        let most = dirtiers.max_by_key(|(task, bytes)| (*bytes, *task));
        most.map(|(task, _)| task)
    }

    /// Whether the request was issued and is not complete.
    pub(super) fn is_under_way(&self, request: u64) -> bool {
        self.dirtiers.contains_key(&request)
    }

    /// Whether the piece is of a version that is still to be written or being written.
    pub(super) fn is_open(&self, piece: &Piece) -> bool {
        piece.mark.request == 0 || self.is_under_way(piece.mark.request)
    }

    /// Links the calls with a part in these pages to the request that was issued.
    pub fn carried(
        &mut self,
        context: &mut Context,
        file: u64,
        metadata: bool,
        range: Range<u64>,
        request: u64,
    ) -> Result<(), Error> {
        if metadata || !self.tells_taken {
            self.take_untold(context, file, &range)?;
        }
        let mut known = Vec::new();
        for layer in 0..self.regions.layers() {
            let map = Map::Taken(layer);
            let pieces = self.regions.cut(map, file, range.clone())?;
            let (fresh, again): (Vec<Piece>, Vec<Piece>) = pieces
                .iter()
                .copied()
                .partition(|piece| piece.mark.request == 0);
            self.written_by(context, file, &fresh, request)?;
            self.also_in(context, file, &again, request)?;
            for piece in pieces {
                self.regions.insert(map, file, piece.carried_by(request))?;
                known.push(self.whole_pages(piece));
            }
        }
        let mark = Mark {
            request,
            taken_ns: context.now_ns,
            ..Mark::default()
        };
        for gap in gaps(&range, &known) {
            self.regions
                .insert(Map::Taken(0), file, Piece::new(&gap, mark))?;
        }
        Ok(())
    }

    /// Takes what is dirty and in a request, but of which no event told that it was taken. Metadata
    /// buffers are also written one by one, without a change of the page's state.
    fn take_untold(
        &mut self,
        context: &mut Context,
        file: u64,
        range: &Range<u64>,
    ) -> Result<(), Error> {
        let taken = self.regions.find_all(Map::Taken, file, range)?;
        for gap in gaps(range, &self.all_whole(taken)) {
            self.take(context, file, &gap, context.now_ns)?;
        }
        Ok(())
    }

    /// Links pieces to a second request, for a page that is in another one already.
    fn also_in(
        &self,
        context: &mut Context,
        file: u64,
        pieces: &[Piece],
        request: u64,
    ) -> Result<(), Error> {
        let others = pieces
            .iter()
            .filter(|piece| piece.mark.call != 0 && piece.mark.request != request);
        for piece in others {
            context.rows.link(tables::Link {
                syscall_id: piece.mark.call,
                kind: End::Write(request).name(),
                request_id: Some(request),
                file_id: Some(file),
                page_index: Some(piece.start / self.page_bytes),
                begin_ns: piece.mark.time_ns,
                end_ns: context.now_ns,
                ..tables::Link::default()
            })?;
        }
        Ok(())
    }

    /// Ends the pieces of a request that is done; those of a page that another request may carry the
    /// rest of stay, until the page is taken again. Returns the number of pages without a known
    /// dirtier.
    pub fn completed(&mut self, run: &Run, request: u64) -> Result<u64, Error> {
        let (file, range) = (run.file, self.bytes_of(run.index, run.pages));
        let mut orphans = 0;
        for layer in 0..self.regions.layers() {
            let map = Map::Taken(layer);
            for piece in self.regions.cut(map, file, range.clone())? {
                if piece.mark.request != request {
                    self.regions.insert(map, file, piece)?;
                } else if piece.mark.call == 0 {
                    orphans += (piece.end - piece.start) / self.page_bytes;
                } else if !run.whole && !run.metadata {
                    self.regions.insert(map, file, piece)?;
                }
            }
        }
        Ok(orphans)
    }

    /// Links pieces to the request that carries them.
    pub(super) fn written_by(
        &mut self,
        context: &mut Context,
        file: u64,
        pieces: &[Piece],
        request: u64,
    ) -> Result<(), Error> {
        // Pages that are linked late do not change the dirtiers of a request told before.
        if self.telling == Some(request)
            && let Some(dirtiers) = self.dirtiers.get_mut(&request)
        {
            for piece in pieces.iter().filter(|piece| piece.mark.call != 0) {
                *dirtiers.entry(piece.mark.task).or_default() += piece.end - piece.start;
            }
        }
        let end = (End::Write(request), context.now_ns);
        self.resolve(context, Map::Taken(0), file, pieces, end)
    }
}
