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
//! A run of pages is told when it has ended. A page may thus become dirty anew before the event
//! that it was taken; then the older version is assumed to have been taken. A page may also be in a
//! request before the event of its dirtier. The piece then belongs to call 0, and the next call
//! that is told of gets it.

use super::regions::{ASSUMED, Map, Mark, Piece, UNTOLD};
use super::{Linker, calls};
use crate::event::{CallKind, Event, PageRun, Truncated, Writeback};
use crate::store::Error;
use crate::tables;
use std::collections::BTreeMap;
use std::ops::Range;

/// Most processes whose stores to one page version are told apart.
const MOST_LAYERS: u8 = 9;
/// Age at the end of the recording from which taken pages without a request count as unlinked, not
/// as pending.
const TAKEN_LONG_AGO_NS: u64 = 1_000_000_000;

/// The end of pieces, as the table `links` has it.
#[derive(Clone, Copy, Debug)]
struct Fate {
    kind: &'static str,
    request: Option<u64>,
    end_ns: u64,
}

impl Linker {
    fn pages_of(&self, bytes: &Range<u64>) -> Range<u64> {
        let page = self.page_bytes;
        bytes.start / page * page..bytes.end.div_ceil(page).saturating_mul(page)
    }

    fn task_of(&self, call: u64) -> u64 {
        self.calls.get(call).map_or(0, |call| call.task)
    }

    /// The bytes of a run of pages.
    pub(super) fn bytes_of(&self, index: u64, pages: u64) -> Range<u64> {
        let start = index.saturating_mul(self.page_bytes);
        start..start.saturating_add(pages.saturating_mul(self.page_bytes))
    }

    pub(super) fn dirtied(&mut self, event: &Event, run: &PageRun) -> Result<(), Error> {
        let file = self.files.id(run.file, &mut self.store)?;
        let call = match self.ring_call(event, Some(run.file)) {
            Some(call) => call,
            None => self.call_of(event)?,
        };
        let range = self.bytes_of(run.index, run.pages.into());
        let restored = match self.tasks.get(event.thread).is_some_and(|task| task.kernel) {
            true => self.restore(file, &range)?,
            false => Vec::new(),
        };
        let known = self.told(file, &range)?;
        let adopted = self.adopt(call, file, &range, run.begin_ns)?;
        let in_fault = event.in_fault
            || self
                .calls
                .get(call)
                .is_some_and(|call| call.kind == Some(CallKind::WriteFault));
        let layer = u8::from(in_fault);
        let task = self.task_of(call);
        let mark = Mark {
            call,
            task,
            time_ns: run.begin_ns,
            ..Mark::default()
        };
        let mut mine = 0;
        let there = restored.iter().chain(&known).chain(&adopted);
        for (start, end) in gaps(&range, there) {
            self.assume_taken(file, start..end)?;
            self.regions
                .insert(Map::Live(layer), file, Piece { start, end, mark })?;
            mine += end - start;
        }
        mine += adopted
            .iter()
            .map(|piece| piece.end - piece.start)
            .sum::<u64>();
        let pages = mine / self.page_bytes;
        if let Some(call) = self.calls.get_mut(call) {
            call.dirtied_pages += pages;
            if call.entered {
                call.dirtied.push((file, range));
            }
        }
        Ok(())
    }

    /// Pieces that a call dirtied and whose event comes only now.
    fn told(&mut self, file: u64, range: &Range<u64>) -> Result<Vec<Piece>, Error> {
        let map = Map::Live(0);
        let live = self.regions.find(map, file, range.clone())?;
        let mut told = Vec::new();
        for piece in live.into_iter().filter(|it| it.mark.taken_ns == UNTOLD) {
            self.regions.cut(map, file, piece.start..piece.end)?;
            let mark = Mark {
                taken_ns: 0,
                ..piece.mark
            };
            self.regions.insert(map, file, Piece { mark, ..piece })?;
            told.push(self.whole_pages(piece));
        }
        Ok(told)
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
                let mark = Mark {
                    taken_ns: 0,
                    ..piece.mark
                };
                let live = Piece { mark, ..piece };
                self.regions.insert(Map::Live(layer), file, live)?;
                restored.push(Piece {
                    start: self.pages_of(&(piece.start..piece.end)).start,
                    end: self.pages_of(&(piece.start..piece.end)).end,
                    mark,
                });
            }
        }
        Ok(restored)
    }

    /// Gives the call the pieces that were taken since `since_ns` and belong to no call.
    fn adopt(
        &mut self,
        call: u64,
        file: u64,
        range: &Range<u64>,
        since_ns: u64,
    ) -> Result<Vec<Piece>, Error> {
        let taken = self.regions.find(Map::Taken(0), file, range.clone())?;
        let page = self.page_bytes;
        let whole =
            |piece: &&Piece| piece.start.is_multiple_of(page) && piece.end.is_multiple_of(page);
        let nobodys = |piece: &&Piece| {
            piece.mark.call == 0 && piece.mark.taken_ns >= since_ns && whole(piece)
        };
        let orphans: Vec<Piece> = taken.iter().filter(nobodys).copied().collect();
        for orphan in &orphans {
            let bytes = orphan.start..orphan.end;
            self.regions.cut(Map::Taken(0), file, bytes)?;
            let mark = Mark {
                call,
                task: self.task_of(call),
                time_ns: since_ns,
                ..orphan.mark
            };
            let piece = Piece { mark, ..*orphan };
            self.regions.insert(Map::Taken(0), file, piece)?;
            if mark.request != 0 {
                self.written_by(file, &[piece], mark.request)?;
            }
        }
        Ok(orphans)
    }

    /// Takes the dirty pieces in `range`: they become dirty anew, so they must have been taken.
    fn assume_taken(&mut self, file: u64, range: Range<u64>) -> Result<(), Error> {
        self.take(file, range, ASSUMED)
    }

    /// Moves dirty pieces from `Live` to `Taken`.
    fn take(&mut self, file: u64, range: Range<u64>, taken_ns: u64) -> Result<(), Error> {
        let mut live = Vec::new();
        for layer in 0..self.regions.layers() {
            let pieces = self.regions.cut(Map::Live(layer), file, range.clone())?;
            live.extend(pieces.into_iter().map(|piece| (layer, piece)));
        }
        let pages: Vec<Piece> = live
            .iter()
            .map(|(_, piece)| self.whole_pages(*piece))
            .collect();
        for (start, end) in joined(&pages) {
            self.drop_taken(file, start..end)?;
        }
        for (layer, piece) in live {
            let mark = Mark {
                taken_ns,
                ..piece.mark
            };
            let piece = Piece { mark, ..piece };
            self.regions.insert(Map::Taken(layer), file, piece)?;
        }
        Ok(())
    }

    /// Drops an older version of these pages, which no request carried, since a newer one was
    /// taken.
    fn drop_taken(&mut self, file: u64, pages: Range<u64>) -> Result<(), Error> {
        for layer in 0..self.regions.layers() {
            let map = Map::Taken(layer);
            let mut old = self.regions.cut(map, file, pages.clone())?;
            old.retain(|piece| piece.mark.request == 0);
            let fate = Fate {
                kind: "unlinked",
                request: None,
                end_ns: self.last_ns,
            };
            self.resolve(map, file, &old, fate, true)?;
        }
        Ok(())
    }

    pub(super) fn cleaned(&mut self, run: &PageRun, at: u64) -> Result<(), Error> {
        let file = self.files.id(run.file, &mut self.store)?;
        let range = self.bytes_of(run.index, run.pages.into());
        let confirmed = self.confirm(file, &range, at)?;
        for (start, end) in gaps(&range, confirmed.iter()) {
            self.drop_orphans(file, start..end)?;
            let mut dirty = Vec::new();
            for layer in 0..self.regions.layers() {
                dirty.extend(self.regions.find(Map::Live(layer), file, start..end)?);
            }
            let dirty: Vec<Piece> = dirty
                .into_iter()
                .map(|piece| self.whole_pages(piece))
                .collect();
            self.take(file, start..end, at)?;
            for (start, end) in gaps(&(start..end), dirty.iter()) {
                let mark = Mark {
                    taken_ns: at,
                    ..Mark::default()
                };
                self.drop_taken(file, start..end)?;
                self.regions
                    .insert(Map::Taken(0), file, Piece { start, end, mark })?;
            }
        }
        Ok(())
    }

    fn whole_pages(&self, piece: Piece) -> Piece {
        let pages = self.pages_of(&(piece.start..piece.end));
        Piece {
            start: pages.start,
            end: pages.end,
            ..piece
        }
    }

    /// Confirms pieces that were only assumed to be taken, and returns them.
    fn confirm(&mut self, file: u64, range: &Range<u64>, at: u64) -> Result<Vec<Piece>, Error> {
        let mut confirmed = Vec::new();
        for layer in 0..self.regions.layers() {
            let map = Map::Taken(layer);
            let taken = self.regions.find(map, file, range.clone())?;
            for piece in taken
                .into_iter()
                .filter(|piece| piece.mark.taken_ns == ASSUMED)
            {
                self.regions.cut(map, file, piece.start..piece.end)?;
                let mark = Mark {
                    taken_ns: at,
                    ..piece.mark
                };
                self.regions.insert(map, file, Piece { mark, ..piece })?;
                confirmed.push(self.whole_pages(piece));
            }
        }
        Ok(confirmed)
    }

    /// Drops taken pieces of no call that no request carried: they were written some other way.
    fn drop_orphans(&mut self, file: u64, range: Range<u64>) -> Result<(), Error> {
        let taken = self.regions.find(Map::Taken(0), file, range)?;
        for piece in taken {
            if piece.mark.call == 0 && piece.mark.request == 0 {
                self.regions
                    .cut(Map::Taken(0), file, piece.start..piece.end)?;
            }
        }
        Ok(())
    }

    /// Gives these bytes to a call that writes and returned.
    pub(super) fn written(&mut self, call: u64, file: u64, range: Range<u64>) -> Result<(), Error> {
        if range.is_empty() {
            return Ok(());
        }
        let pages = self.pages_of(&range);
        self.trim(call, file, &range, &pages)?;
        let mut covered = Vec::new();
        for layer in 0..self.regions.layers() {
            let live = self.regions.find(Map::Live(layer), file, pages.clone())?;
            covered.extend(live.into_iter().map(|piece| self.whole_pages(piece)));
        }
        for (start, end) in joined(&covered) {
            let bytes = start.max(range.start)..end.min(range.end);
            self.paint(Map::Live(0), call, file, bytes)?;
        }
        for (start, end) in gaps(&pages, covered.iter()) {
            let bytes = start.max(range.start)..end.min(range.end);
            self.written_and_taken(call, file, bytes)?;
        }
        Ok(())
    }

    /// Restricts the call's part in the first and last page to its own bytes.
    fn trim(
        &mut self,
        call: u64,
        file: u64,
        range: &Range<u64>,
        pages: &Range<u64>,
    ) -> Result<(), Error> {
        for map in [Map::Live(0), Map::Taken(0)] {
            for edge in [pages.start..range.start, range.end..pages.end] {
                let found = self.regions.find(map, file, edge.clone())?;
                let mine = |piece: &&Piece| piece.mark.call == call && piece.mark.request == 0;
                let mine: Vec<Piece> = found.iter().filter(mine).copied().collect();
                for piece in &mine {
                    self.regions.cut(map, file, piece.start..piece.end)?;
                }
                let fate = Fate {
                    kind: "overwritten",
                    request: None,
                    end_ns: self.last_ns,
                };
                // The bytes of the range itself are still there, unless another call replaced them
                // meanwhile.
                self.resolve(map, file, &mine, fate, false)?;
            }
        }
        Ok(())
    }

    /// Gives these bytes to the call; calls that had them lose them.
    fn paint(&mut self, map: Map, call: u64, file: u64, bytes: Range<u64>) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let before = self.pages_with(map, call, file, &bytes)?;
        let old = self.regions.cut(map, file, bytes.clone())?;
        let taken_ns = old
            .iter()
            .map(|piece| piece.mark.taken_ns)
            .max()
            .unwrap_or(0);
        let mine = old.iter().filter(|piece| piece.mark.call == call);
        let time_ns = mine.map(|piece| piece.mark.time_ns).min();
        let call_begin_ns = self.calls.get(call).map_or(0, |call| call.begin_ns);
        let mark = Mark {
            call,
            task: self.task_of(call),
            time_ns: time_ns.unwrap_or(call_begin_ns),
            request: 0,
            taken_ns,
        };
        let piece = Piece {
            start: bytes.start,
            end: bytes.end,
            mark,
        };
        self.regions.insert(map, file, piece)?;
        let others: Vec<Piece> = old
            .into_iter()
            .filter(|piece| piece.mark.call != call)
            .collect();
        let fate = Fate {
            kind: "overwritten",
            request: None,
            end_ns: self.last_ns,
        };
        self.resolve(map, file, &others, fate, false)?;
        let after = self.pages_with(map, call, file, &bytes)?;
        if let Some(call) = self.calls.get_mut(call) {
            call.dirtied_pages += after - before;
        }
        Ok(())
    }

    /// Number of these pages in which the call has a part.
    fn pages_with(
        &mut self,
        map: Map,
        call: u64,
        file: u64,
        bytes: &Range<u64>,
    ) -> Result<u64, Error> {
        let pages = self.pages_of(bytes);
        let found = self.regions.find(map, file, pages)?;
        let mine = found.into_iter().filter(|piece| piece.mark.call == call);
        let mine: Vec<Piece> = mine.map(|piece| self.whole_pages(piece)).collect();
        let bytes: u64 = joined(&mine).map(|(start, end)| end - start).sum();
        Ok(bytes / self.page_bytes)
    }

    /// Links bytes whose pages are no longer dirty: they were taken before the call returned.
    fn written_and_taken(&mut self, call: u64, file: u64, bytes: Range<u64>) -> Result<(), Error> {
        let pages = self.pages_of(&bytes);
        let mut taken = Vec::new();
        for layer in 0..self.regions.layers() {
            taken.extend(self.regions.find(Map::Taken(layer), file, pages.clone())?);
        }
        let whole: Vec<Piece> = taken.iter().map(|piece| self.whole_pages(*piece)).collect();
        let mut mine: Vec<Piece> = whole
            .iter()
            .filter(|piece| piece.mark.call == call)
            .copied()
            .collect();
        mine.extend(self.made_dirty(call, file));
        for (start, end) in joined(&whole) {
            for (start, end) in gaps(&(start..end), mine.iter()) {
                for page in (start..end).step_by(self.page_bytes as usize) {
                    let end = (page + self.page_bytes).min(bytes.end);
                    self.join_taken(call, file, page.max(bytes.start)..end)?;
                }
            }
        }
        for (start, end) in gaps(&pages, whole.iter().chain(&mine)) {
            self.join_done(call, file, start.max(bytes.start)..end.min(bytes.end))?;
        }
        Ok(())
    }

    /// The pieces that the call made dirty, so it has a part in these versions.
    fn made_dirty(&self, call: u64, file: u64) -> Vec<Piece> {
        let dirtied = self.calls.get(call).map_or(&[][..], |call| &call.dirtied);
        let of_file = dirtied.iter().filter(|(of, _)| *of == file);
        let pieces = of_file.map(|(_, range)| Piece {
            start: range.start,
            end: range.end,
            mark: Mark::default(),
        });
        pieces.collect()
    }

    /// Gives the call its part in a version that was taken before it returned.
    fn join_taken(&mut self, call: u64, file: u64, bytes: Range<u64>) -> Result<(), Error> {
        let pages = self.pages_of(&bytes);
        let taken = self.regions.find(Map::Taken(0), file, pages.clone())?;
        match taken.iter().map(|piece| piece.mark.request).max() {
            Some(request) if request != 0 => self.joined_request(call, file, bytes, request),
            _ => self.paint(Map::Taken(0), call, file, bytes),
        }
    }

    /// Gives the call its part in a version without events. It was written before the call
    /// returned, or was dirty before the recording began.
    fn join_done(&mut self, call: u64, file: u64, bytes: Range<u64>) -> Result<(), Error> {
        let pages = self.pages_of(&bytes);
        let begin_ns = self
            .calls
            .get(call)
            .map_or(self.last_ns, |call| call.begin_ns);
        for page in (pages.start..pages.end).step_by(self.page_bytes as usize) {
            let mine = page.max(bytes.start)..(page + self.page_bytes).min(bytes.end);
            let index = page / self.page_bytes;
            match self.recent.written_since(file, index, begin_ns) {
                Some(request) => self.joined_request(call, file, mine, request)?,
                None => self.paint_untold(call, file, mine)?,
            }
        }
        Ok(())
    }

    /// Gives the call bytes of pages that are dirty now, and whose event has not come.
    fn paint_untold(&mut self, call: u64, file: u64, bytes: Range<u64>) -> Result<(), Error> {
        let map = Map::Live(0);
        self.paint(map, call, file, bytes.clone())?;
        for piece in self.regions.cut(map, file, bytes)? {
            let mark = Mark {
                taken_ns: UNTOLD,
                ..piece.mark
            };
            self.regions.insert(map, file, Piece { mark, ..piece })?;
        }
        Ok(())
    }

    /// Gives the call its part in one page version that this request carries.
    fn joined_request(
        &mut self,
        call: u64,
        file: u64,
        bytes: Range<u64>,
        request: u64,
    ) -> Result<(), Error> {
        let task = self.task_of(call);
        let Some(it) = self.calls.get_mut(call) else {
            return Ok(());
        };
        it.dirtied_pages += 1;
        let mark = Mark {
            call,
            task,
            time_ns: it.begin_ns,
            request,
            ..Mark::default()
        };
        let (start, end) = (bytes.start, bytes.end);
        self.written_by(file, &[Piece { start, end, mark }], request)
    }

    /// Notes that a mapped page became writable: it may change until it is written.
    pub(super) fn stored(&mut self, call: u64, file: u64, range: Range<u64>) -> Result<(), Error> {
        let pages = self.pages_of(&range);
        let (mut live, mut taken) = (Vec::new(), Vec::new());
        for layer in 0..self.regions.layers() {
            live.extend(self.regions.find(Map::Live(layer), file, pages.clone())?);
            taken.extend(self.regions.find(Map::Taken(layer), file, pages.clone())?);
        }
        if live
            .iter()
            .chain(&taken)
            .any(|piece| piece.mark.call == call)
        {
            return Ok(());
        }
        if live.is_empty() {
            return match taken.is_empty() {
                true => Ok(()),
                false => self.join_taken(call, file, pages),
            };
        }
        for layer in 1..MOST_LAYERS {
            let map = Map::Live(layer);
            if !self.regions.find(map, file, pages.clone())?.is_empty() {
                continue;
            }
            let mut time_ns = self.last_ns;
            if let Some(call) = self.calls.get_mut(call) {
                call.dirtied_pages += (pages.end - pages.start) / self.page_bytes;
                time_ns = call.begin_ns;
            }
            let mark = Mark {
                call,
                task: self.task_of(call),
                time_ns,
                ..Mark::default()
            };
            let (start, end) = (pages.start, pages.end);
            return self.regions.insert(map, file, Piece { start, end, mark });
        }
        Ok(())
    }

    pub(super) fn truncated(&mut self, truncated: &Truncated, at: u64) -> Result<(), Error> {
        let file = self.files.id(truncated.file, &mut self.store)?;
        let range = truncated.from_bytes..truncated.to_bytes;
        let fate = Fate {
            kind: if truncated.removed {
                "removed"
            } else {
                "truncated"
            },
            request: None,
            end_ns: at,
        };
        let still_dirty = self.left_dirty(file, range.start)?;
        for layer in 0..self.regions.layers() {
            let live = self.regions.cut(Map::Live(layer), file, range.clone())?;
            self.resolve(Map::Live(layer), file, &live, fate, false)?;
            let map = Map::Taken(layer);
            let (waiting, carried): (Vec<Piece>, Vec<Piece>) = self
                .regions
                .cut(map, file, range.clone())?
                .into_iter()
                .partition(|piece| piece.mark.request == 0);
            for piece in carried {
                self.regions.insert(map, file, piece)?;
            }
            self.resolve(map, file, &waiting, fate, false)?;
        }
        self.regions.cut(Map::Brought, file, range)?;
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
        Ok(left.then(|| Piece {
            start: page.start,
            end: page.end,
            mark: Mark::default(),
        }))
    }

    /// Links the calls with a part in these pages to the request that was issued.
    pub(super) fn pages_issued(
        &mut self,
        file: u64,
        metadata: bool,
        range: Range<u64>,
        request: u64,
    ) -> Result<(), Error> {
        if metadata {
            self.take_buffers(file, &range)?;
        }
        let mut known = Vec::new();
        for layer in 0..self.regions.layers() {
            let map = Map::Taken(layer);
            let pieces = self.regions.cut(map, file, range.clone())?;
            let fresh: Vec<Piece> = pieces
                .iter()
                .filter(|piece| piece.mark.request == 0)
                .copied()
                .collect();
            let again: Vec<Piece> = pieces
                .iter()
                .filter(|piece| piece.mark.request != 0 && piece.mark.request != request)
                .copied()
                .collect();
            self.written_by(file, &fresh, request)?;
            self.also_in(file, &again, request)?;
            for piece in pieces {
                let mark = Mark {
                    request,
                    ..piece.mark
                };
                self.regions.insert(map, file, Piece { mark, ..piece })?;
                known.push(self.whole_pages(piece));
            }
        }
        let mark = Mark {
            request,
            taken_ns: self.last_ns,
            ..Mark::default()
        };
        for (start, end) in gaps(&range, known.iter()) {
            self.regions
                .insert(Map::Taken(0), file, Piece { start, end, mark })?;
        }
        Ok(())
    }

    /// Takes metadata buffers: they are also written one by one, without a change of the page's
    /// state.
    fn take_buffers(&mut self, file: u64, range: &Range<u64>) -> Result<(), Error> {
        let mut taken = Vec::new();
        for layer in 0..self.regions.layers() {
            taken.extend(self.regions.find(Map::Taken(layer), file, range.clone())?);
        }
        let taken: Vec<Piece> = taken
            .into_iter()
            .map(|piece| self.whole_pages(piece))
            .collect();
        for (start, end) in gaps(range, taken.iter()) {
            self.take(file, start..end, self.last_ns)?;
        }
        Ok(())
    }

    /// Links pieces to a second request, for a page that is in another one already.
    fn also_in(&mut self, file: u64, pieces: &[Piece], request: u64) -> Result<(), Error> {
        for piece in pieces.iter().filter(|piece| piece.mark.call != 0) {
            self.link(tables::Link {
                syscall_id: piece.mark.call,
                kind: "write",
                request_id: Some(request),
                file_id: Some(file),
                page_index: Some(piece.start / self.page_bytes),
                begin_ns: piece.mark.time_ns,
                end_ns: self.last_ns,
                ..tables::Link::default()
            })?;
        }
        Ok(())
    }

    /// Ends the pieces of a request that is done or was given back. Returns the number of pages
    /// without a known dirtier.
    pub(super) fn pages_written(
        &mut self,
        file: u64,
        range: Range<u64>,
        request: u64,
    ) -> Result<u64, Error> {
        let mut orphans = 0;
        for layer in 0..self.regions.layers() {
            let map = Map::Taken(layer);
            for piece in self.regions.cut(map, file, range.clone())? {
                if piece.mark.request != request {
                    self.regions.insert(map, file, piece)?;
                } else if piece.mark.call == 0 {
                    orphans += (piece.end - piece.start) / self.page_bytes;
                }
            }
        }
        Ok(orphans)
    }

    fn written_by(&mut self, file: u64, pieces: &[Piece], request: u64) -> Result<(), Error> {
        let fate = Fate {
            kind: "write",
            request: Some(request),
            end_ns: self.last_ns,
        };
        self.block.dirtied_by(request, pieces);
        self.resolve(Map::Taken(0), file, pieces, fate, true)
    }

    /// Writes the links of pieces that are no longer in `map`. Unless the pieces are `whole` pages,
    /// calls that still have bytes in a page keep their part in it.
    fn resolve(
        &mut self,
        map: Map,
        file: u64,
        pieces: &[Piece],
        fate: Fate,
        whole: bool,
    ) -> Result<(), Error> {
        let mut by_call: BTreeMap<u64, Vec<Piece>> = BTreeMap::new();
        for piece in pieces.iter().filter(|piece| piece.mark.call != 0) {
            by_call.entry(piece.mark.call).or_default().push(*piece);
        }
        for (call, pieces) in by_call {
            let pages: Vec<Piece> = pieces
                .iter()
                .map(|piece| self.whole_pages(*piece))
                .collect();
            for (start, end) in joined(&pages) {
                let kept = match whole {
                    true => Vec::new(),
                    false => self.still_there(map, call, file, start..end)?,
                };
                for (start, end) in gaps(&(start..end), kept.iter()) {
                    let inside = |piece: &&Piece| piece.start < end && piece.end > start;
                    let mine = pieces.iter().filter(inside);
                    let bytes = mine
                        .clone()
                        .map(|it| it.end.min(end) - it.start.max(start))
                        .sum();
                    let begin_ns = mine.map(|piece| piece.mark.time_ns).min().unwrap_or(0);
                    self.link(tables::Link {
                        syscall_id: call,
                        kind: fate.kind,
                        request_id: fate.request,
                        file_id: Some(file),
                        page_index: Some(start / self.page_bytes),
                        pages: (end - start) / self.page_bytes,
                        bytes,
                        begin_ns,
                        end_ns: fate.end_ns,
                        ..tables::Link::default()
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Those of the pages in which the call still has bytes.
    fn still_there(
        &mut self,
        map: Map,
        call: u64,
        file: u64,
        pages: Range<u64>,
    ) -> Result<Vec<Piece>, Error> {
        let found = self.regions.find(map, file, pages)?;
        let mine = found.into_iter().filter(|piece| piece.mark.call == call);
        Ok(mine.map(|piece| self.whole_pages(piece)).collect())
    }

    /// Writes the links of all versions at the end of the recording.
    pub(super) fn end_versions(&mut self, end_ns: u64) -> Result<(), Error> {
        for layer in 0..self.regions.layers() {
            for map in [Map::Live(layer), Map::Taken(layer)] {
                for file in self.regions.files(map) {
                    let mut pieces = self.regions.cut(map, file, 0..u64::MAX)?;
                    pieces.retain(|piece| piece.mark.request == 0);
                    let lost = |piece: &Piece| {
                        let taken_ns = piece.mark.taken_ns;
                        taken_ns != 0 && taken_ns < end_ns.saturating_sub(TAKEN_LONG_AGO_NS)
                    };
                    let (lost, pending): (Vec<Piece>, Vec<Piece>) =
                        pieces.into_iter().partition(lost);
                    for (kind, pieces) in [("unlinked", lost), ("pending", pending)] {
                        let fate = Fate {
                            kind,
                            request: None,
                            end_ns,
                        };
                        self.resolve(map, file, &pieces, fate, true)?;
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn writeback(&mut self, event: &Event, writeback: &Writeback) -> Result<(), Error> {
        let task_id = self.tasks.of(event.thread, &mut self.store)?.id;
        let file_id = self.files.id(writeback.file, &mut self.store)?;
        self.store.add(&tables::Writeback {
            task_id,
            file_id,
            begin_ns: writeback.begin_ns,
            end_ns: event.time_ns,
            pages: writeback.pages,
            sync: writeback.sync,
        })
    }

    /// Whether the call waits for writeback as a whole because it syncs or truncates the file.
    /// Other calls wait because they change a page.
    pub(crate) fn is_syncing(kind: Option<CallKind>) -> bool {
        kind.is_some_and(calls::syncs)
    }
}

/// The parts of `range` that no piece covers.
fn gaps<'a>(range: &Range<u64>, pieces: impl Iterator<Item = &'a Piece>) -> Vec<(u64, u64)> {
    let mut covered: Vec<(u64, u64)> = pieces.map(|piece| (piece.start, piece.end)).collect();
    covered.sort_unstable();
    let mut gaps = Vec::new();
    let mut start = range.start;
    for (from, to) in covered {
        if from > start {
            gaps.push((start, from.min(range.end)));
        }
        start = start.max(to);
    }
    if start < range.end {
        gaps.push((start, range.end));
    }
    gaps.retain(|(start, end)| start < end);
    gaps
}

/// The parts that at least one piece covers, joined where they adjoin.
fn joined(pieces: &[Piece]) -> impl Iterator<Item = (u64, u64)> + use<> {
    let mut all: Vec<(u64, u64)> = pieces
        .iter()
        .map(|piece| (piece.start, piece.end))
        .collect();
    all.sort_unstable();
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for (start, end) in all {
        match joined.last_mut() {
            Some((_, last)) if *last >= start => *last = (*last).max(end),
            _ => joined.push((start, end)),
        }
    }
    joined.into_iter()
}
