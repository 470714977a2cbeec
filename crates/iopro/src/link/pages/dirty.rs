//! Pages that become dirty, are taken for writeback, or are thrown away.

use super::super::context::Context;
use super::super::regions::{ASSUMED, Map, Mark, Piece, UNREPORTED};
use super::{End, Pages, gaps, joined};
use crate::event::{CallKind, Event, PageRun, Truncated, Writeback};
use crate::store::Error;
use crate::tables;
use std::ops::Range;

impl Pages {
    /// Begins versions of the pages that a thread made dirty.
    pub fn dirtied(
        &mut self,
        context: &mut Context,
        event: &Event,
        run: &PageRun,
    ) -> Result<(), Error> {
        let file = context.file(run.file)?;
        let call = context.call_or_operation(event, Some(run.file))?;
        let range = self.bytes_of(run.index, run.pages.into());
        let task = context.tasks.get(event.thread);
        let mut known = match task.is_some_and(|task| task.kernel) {
            true => self.restore(file, &range)?,
            false => Vec::new(),
        };
        known.extend(self.told(file, &range)?);
        let adopted = self.adopt(context, call, file, &range, run.begin_ns)?;
        let mut mine: u64 = adopted.iter().map(|it| it.end - it.start).sum();
        known.extend(adopted);
        let of_call = context.calls.get(call);
        let is_fault = of_call.is_some_and(|it| it.kind == Some(CallKind::WriteFault));
        let layer = u8::from(event.in_fault || is_fault);
        let mark = Mark {
            call,
            task: context.calls.task_of(call),
            time_ns: run.begin_ns,
            ..Mark::default()
        };
        for gap in gaps(&range, &known) {
            // They become dirty anew, so an older version must have been taken.
            self.take(context, file, &gap, ASSUMED)?;
            self.regions
                .insert(Map::Live(layer), file, Piece::new(&gap, mark))?;
            mine += gap.end - gap.start;
        }
        if let Some(call) = context.calls.get_mut(call) {
            call.row.dirtied_pages += mine / self.page_bytes;
            if call.entered {
                call.dirtied.push((file, range));
            }
        }
        Ok(())
    }

    /// Pieces that a call dirtied and whose event comes only now.
    fn told(&mut self, file: u64, range: &Range<u64>) -> Result<Vec<Piece>, Error> {
        self.retake(Map::Live(0), file, range, UNREPORTED, 0)
    }

    /// Confirms pieces that were only assumed to be taken, and returns them.
    fn confirm(&mut self, file: u64, range: &Range<u64>, at: u64) -> Result<Vec<Piece>, Error> {
        let mut confirmed = Vec::new();
        for layer in 0..self.regions.layers() {
            confirmed.extend(self.retake(Map::Taken(layer), file, range, ASSUMED, at)?);
        }
        Ok(confirmed)
    }

    /// Changes [`Mark::taken_ns`] of pieces in `range` from one value to another; returns their
    /// whole pages.
    fn retake(
        &mut self,
        map: Map,
        file: u64,
        range: &Range<u64>,
        from_ns: u64,
        to_ns: u64,
    ) -> Result<Vec<Piece>, Error> {
        let mut found = self.regions.find(map, file, range.clone())?;
        found.retain(|piece| piece.mark.taken_ns == from_ns);
        for piece in &found {
            self.regions.cut(map, file, piece.bytes())?;
            self.regions.insert(map, file, piece.taken(to_ns))?;
        }
        Ok(self.all_whole(found))
    }

    /// Returns taken pages to dirty: a worker took them, did not write them, and made them dirty
    /// again. The version goes on.
    fn restore(&mut self, file: u64, range: &Range<u64>) -> Result<Vec<Piece>, Error> {
        let mut restored = Vec::new();
        for layer in 0..self.regions.layers() {
            let map = Map::Taken(layer);
            for piece in self.regions.cut(map, file, range.clone())? {
                let waits = piece.mark.request == 0 && piece.mark.call != 0;
                if !waits || piece.mark.taken_ns == ASSUMED {
                    self.regions.insert(map, file, piece)?;
                    continue;
                }
                self.regions
                    .insert(Map::Live(layer), file, piece.taken(0))?;
                restored.push(self.whole_pages(piece));
            }
        }
        Ok(restored)
    }

    /// Gives the call the whole pages that were taken since `since_ns` and belong to no call.
    fn adopt(
        &mut self,
        context: &mut Context,
        call: u64,
        file: u64,
        range: &Range<u64>,
        since_ns: u64,
    ) -> Result<Vec<Piece>, Error> {
        let mut orphans = self.regions.find(Map::Taken(0), file, range.clone())?;
        orphans.retain(|piece| {
            let is_whole = self.pages_of(&piece.bytes()) == piece.bytes();
            piece.mark.call == 0 && piece.mark.taken_ns >= since_ns && is_whole
        });
        for orphan in &orphans {
            self.regions.cut(Map::Taken(0), file, orphan.bytes())?;
            let mark = Mark {
                call,
                task: context.calls.task_of(call),
                time_ns: since_ns,
                ..orphan.mark
            };
            let piece = Piece { mark, ..*orphan };
            self.regions.insert(Map::Taken(0), file, piece)?;
            if mark.request != 0 {
                self.written_by(context, file, &[piece], mark.request)?;
            }
        }
        Ok(orphans)
    }

    /// Moves dirty pieces from `Live` to `Taken`.
    pub(super) fn take(
        &mut self,
        context: &mut Context,
        file: u64,
        range: &Range<u64>,
        taken_ns: u64,
    ) -> Result<(), Error> {
        let mut live = Vec::new();
        for layer in 0..self.regions.layers() {
            let pieces = self.regions.cut(Map::Live(layer), file, range.clone())?;
            live.extend(pieces.into_iter().map(|piece| (layer, piece)));
        }
        for pages in joined(&self.all_whole(live.iter().map(|(_, piece)| *piece))) {
            self.drop_taken(context, file, &pages)?;
        }
        for (layer, piece) in live {
            self.regions
                .insert(Map::Taken(layer), file, piece.taken(taken_ns))?;
        }
        Ok(())
    }

    /// Drops an older version of these pages, which no request carried, since a newer one was
    /// taken.
    fn drop_taken(
        &mut self,
        context: &mut Context,
        file: u64,
        pages: &Range<u64>,
    ) -> Result<(), Error> {
        for layer in 0..self.regions.layers() {
            let map = Map::Taken(layer);
            let mut old = self.regions.cut(map, file, pages.clone())?;
            old.retain(|piece| piece.mark.request == 0);
            let end = (End::Unlinked, context.now_ns);
            self.resolve(context, map, file, &old, end)?;
        }
        Ok(())
    }

    /// Takes pages for writeback at time `at`.
    pub fn cleaned(&mut self, context: &mut Context, run: &PageRun, at: u64) -> Result<(), Error> {
        let file = context.file(run.file)?;
        let range = self.bytes_of(run.index, run.pages.into());
        let confirmed = self.confirm(file, &range, at)?;
        let unknown = Mark {
            taken_ns: at,
            ..Mark::default()
        };
        for gap in gaps(&range, &confirmed) {
            self.drop_orphans(file, &gap)?;
            let dirty = self.regions.find_all(Map::Live, file, &gap)?;
            let dirty = self.all_whole(dirty);
            self.take(context, file, &gap, at)?;
            for gap in gaps(&gap, &dirty) {
                self.drop_taken(context, file, &gap)?;
                self.regions
                    .insert(Map::Taken(0), file, Piece::new(&gap, unknown))?;
            }
        }
        Ok(())
    }

    /// Drops taken pieces of no call that no request carried: they were written some other way.
    fn drop_orphans(&mut self, file: u64, range: &Range<u64>) -> Result<(), Error> {
        let mut orphans = self.regions.find(Map::Taken(0), file, range.clone())?;
        orphans.retain(|piece| piece.mark.call == 0 && piece.mark.request == 0);
        for orphan in orphans {
            self.regions.cut(Map::Taken(0), file, orphan.bytes())?;
        }
        Ok(())
    }

    /// Ends the versions of pages that were thrown away at time `at`.
    pub fn truncated(
        &mut self,
        context: &mut Context,
        truncated: &Truncated,
        at: u64,
    ) -> Result<(), Error> {
        let file = context.file(truncated.file)?;
        let range = truncated.from_bytes..truncated.to_bytes;
        let end = match truncated.removed {
            true => End::Removed,
            false => End::Truncated,
        };
        let still_dirty = self.left_dirty(file, range.start)?;
        for layer in 0..self.regions.layers() {
            let live = self.regions.cut(Map::Live(layer), file, range.clone())?;
            self.resolve(context, Map::Live(layer), file, &live, (end, at))?;
            let map = Map::Taken(layer);
            let taken = self.regions.cut(map, file, range.clone())?;
            let (waiting, carried): (Vec<Piece>, Vec<Piece>) =
                taken.into_iter().partition(|piece| piece.mark.request == 0);
            for piece in carried {
                if self.is_open(&piece) {
                    self.regions.insert(map, file, piece)?;
                }
            }
            self.resolve(context, map, file, &waiting, (end, at))?;
        }
        self.regions.cut(Map::Fetched, file, range)?;
        match still_dirty {
            Some(piece) => self.regions.insert(Map::Live(0), file, piece),
            None => Ok(()),
        }
    }

    /// The page in which a file is truncated stays dirty, even without bytes of a call. The piece
    /// then belongs to no call.
    fn left_dirty(&mut self, file: u64, cut_at: u64) -> Result<Option<Piece>, Error> {
        let page = self.pages_of(&(cut_at..cut_at));
        let map = Map::Live(0);
        let live = self.regions.find(map, file, page.clone())?;
        let kept = self.regions.find(map, file, page.start..cut_at)?;
        let left = !live.is_empty() && kept.is_empty() && page.start < cut_at;
        Ok(left.then(|| Piece::new(&page, Mark::default())))
    }
}

impl Context {
    /// Adds the row of a writeback that ended.
    pub fn writeback(&mut self, event: &Event, writeback: &Writeback) -> Result<(), Error> {
        let task_id = self.task(event.thread)?.id;
        let file_id = self.file(writeback.file)?;
        self.rows.store.add(&tables::Writeback {
            task_id,
            file_id,
            begin_ns: writeback.begin_ns,
            end_ns: event.time_ns,
            pages: writeback.pages,
            sync: writeback.sync,
        })
    }
}
