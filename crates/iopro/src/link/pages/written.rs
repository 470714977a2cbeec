//! The bytes that calls give to page versions: by writes that returned, and by stores to mapped
//! pages.

use super::super::context::Context;
use super::super::regions::{Map, Mark, Piece, UNREPORTED};
use super::{End, Pages, gaps, joined};
use crate::store::Error;
use std::ops::Range;

/// Most processes whose stores to one page version are told apart.
const MOST_LAYERS: u8 = 9;

/// The part of `pages` in `bytes`.
fn within(pages: &Range<u64>, bytes: &Range<u64>) -> Range<u64> {
    pages.start.max(bytes.start)..pages.end.min(bytes.end)
}

impl Pages {
    /// What `call` does to the pages of `file`.
    pub fn change<'a>(&'a mut self, context: &'a mut Context, call: u64, file: u64) -> Change<'a> {
        Change {
            pages: self,
            context,
            call,
            file,
        }
    }

    /// The pages from the begin of `pages`, one by one.
    fn each_page(&self, pages: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
        let page_bytes = self.page_bytes;
        let starts = pages.clone().step_by(page_bytes as usize);
        starts.map(move |start| start..start + page_bytes)
    }
}

/// A call that changes pages of a file.
pub struct Change<'a> {
    pages: &'a mut Pages,
    context: &'a mut Context,
    call: u64,
    file: u64,
}

impl Change<'_> {
    /// Gives these bytes to the call, which writes and returned.
    pub fn written(&mut self, range: Range<u64>) -> Result<(), Error> {
        if range.is_empty() {
            return Ok(());
        }
        let pages = self.pages.pages_of(&range);
        self.leave_all_but(&pages)?;
        self.trim(&range)?;
        let covered = self.pages.regions.find_all(Map::Live, self.file, &pages)?;
        let covered = self.pages.all_whole(covered);
        for live in joined(&covered) {
            self.paint(Map::Live(0), within(&live, &range))?;
        }
        for gap in gaps(&pages, &covered) {
            self.written_and_taken(within(&gap, &range))?;
        }
        Ok(())
    }

    /// Gives up the pages that became dirty only because they are of one folio with those that the
    /// call changed: they stay dirty, and no request comes for them alone.
    fn leave_all_but(&mut self, pages: &Range<u64>) -> Result<(), Error> {
        let changed = [Piece::new(pages, Mark::default())];
        for folio in self.made_dirty() {
            for others in gaps(&folio.bytes(), &changed) {
                for map in [Map::Live(0), Map::Taken(0)] {
                    self.leave(map, others.clone())?;
                }
            }
        }
        Ok(())
    }

    fn leave(&mut self, map: Map, bytes: Range<u64>) -> Result<(), Error> {
        let mut mine = self.pages.regions.find(map, self.file, bytes)?;
        mine.retain(|piece| piece.mark.call == self.call && piece.mark.request == 0);
        for piece in &mine {
            self.pages.regions.cut(map, self.file, piece.bytes())?;
            let of_nobody = Mark {
                taken_ns: piece.mark.taken_ns,
                ..Mark::default()
            };
            self.insert(map, Piece::new(&piece.bytes(), of_nobody))?;
        }
        let left = joined(&self.pages.all_whole(mine)).into_iter();
        let left_bytes: u64 = left.map(|it| it.end - it.start).sum();
        if let Some(call) = self.context.calls.get_mut(self.call) {
            call.row.dirtied_pages -= left_bytes / self.pages.page_bytes;
        }
        Ok(())
    }

    /// Restricts the call's part in the first and last page to its own bytes.
    fn trim(&mut self, range: &Range<u64>) -> Result<(), Error> {
        let pages = self.pages.pages_of(range);
        for map in [Map::Live(0), Map::Taken(0)] {
            for edge in [pages.start..range.start, range.end..pages.end] {
                let mut mine = self.pages.regions.find(map, self.file, edge)?;
                mine.retain(|piece| piece.mark.call == self.call && piece.mark.request == 0);
                for piece in &mine {
                    self.pages.regions.cut(map, self.file, piece.bytes())?;
                }
                // The bytes of the range itself are still there, unless another call replaced them
                // meanwhile.
                self.overwritten(map, &mine)?;
            }
        }
        Ok(())
    }

    /// Gives these bytes to the call; calls that had them lose them.
    fn paint(&mut self, map: Map, bytes: Range<u64>) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let before = self.count_pages_with(map, &bytes)?;
        let old = self.pages.regions.cut(map, self.file, bytes.clone())?;
        let (mine, others): (Vec<Piece>, Vec<Piece>) = old
            .iter()
            .copied()
            .partition(|it| it.mark.call == self.call);
        let since_ns = mine.iter().map(|piece| piece.mark.time_ns).min();
        let call = self.context.calls.get(self.call);
        let begin_ns = call.map_or(0, |call| call.begin_ns);
        let taken_ns = old.iter().map(|piece| piece.mark.taken_ns).max();
        let mark = Mark {
            call: self.call,
            task: self.context.calls.task_of(self.call),
            time_ns: since_ns.unwrap_or(begin_ns),
            request: 0,
            taken_ns: taken_ns.unwrap_or(0),
        };
        self.insert(map, Piece::new(&bytes, mark))?;
        self.overwritten(map, &others)?;
        let after = self.count_pages_with(map, &bytes)?;
        if let Some(call) = self.context.calls.get_mut(self.call) {
            call.row.dirtied_pages += after - before;
        }
        Ok(())
    }

    /// Number of these pages in which the call has a part.
    fn count_pages_with(&mut self, map: Map, bytes: &Range<u64>) -> Result<u64, Error> {
        let pages = joined(&self.pages.pages_with(map, self.call, self.file, bytes)?);
        let bytes: u64 = pages.iter().map(|it| it.end - it.start).sum();
        Ok(bytes / self.pages.page_bytes)
    }

    /// Links bytes whose pages are no longer dirty: they were taken before the call returned.
    fn written_and_taken(&mut self, bytes: Range<u64>) -> Result<(), Error> {
        let pages = self.pages.pages_of(&bytes);
        let taken = self.open_in(&pages)?;
        let taken = self.pages.all_whole(taken);
        let mine = taken.iter().filter(|piece| piece.mark.call == self.call);
        let mut mine: Vec<Piece> = mine.copied().collect();
        mine.extend(self.made_dirty());
        for pages in joined(&taken) {
            for gap in gaps(&pages, &mine) {
                for page in self.pages.each_page(&gap) {
                    self.join_taken(within(&page, &bytes))?;
                }
            }
        }
        for gap in gaps(&pages, taken.iter().chain(&mine)) {
            self.join_done(within(&gap, &bytes))?;
        }
        Ok(())
    }

    /// Gives the call its part in a version that was taken before it returned.
    fn join_taken(&mut self, bytes: Range<u64>) -> Result<(), Error> {
        let pages = self.pages.pages_of(&bytes);
        let mut taken = self.pages.regions.find(Map::Taken(0), self.file, pages)?;
        taken.retain(|piece| self.pages.is_open(piece));
        match taken.iter().map(|piece| piece.mark.request).max() {
            Some(request) if request != 0 => self.join_request(bytes, request),
            _ => self.paint(Map::Taken(0), bytes),
        }
    }

    /// Gives the call its part in a version without events. It was written before the call
    /// returned, or was dirty before the recording began.
    fn join_done(&mut self, bytes: Range<u64>) -> Result<(), Error> {
        let begin_ns = self.context.calls.get(self.call).map(|call| call.begin_ns);
        let begin_ns = begin_ns.unwrap_or(self.context.now_ns);
        for page in self.pages.each_page(&self.pages.pages_of(&bytes)) {
            let index = page.start / self.pages.page_bytes;
            let mine = within(&page, &bytes);
            let recent = &self.context.recent;
            match recent.written_since(self.file, index, begin_ns) {
                Some(request) => self.join_request(mine, request)?,
                None => self.paint_unreported(mine)?,
            }
        }
        Ok(())
    }

    /// Gives the call bytes of pages that are dirty now, and whose event has not come.
    fn paint_unreported(&mut self, bytes: Range<u64>) -> Result<(), Error> {
        let map = Map::Live(0);
        self.paint(map, bytes.clone())?;
        for piece in self.pages.regions.cut(map, self.file, bytes)? {
            self.insert(map, piece.taken(UNREPORTED))?;
        }
        Ok(())
    }

    /// Gives the call its part in one page version that this request carries.
    fn join_request(&mut self, bytes: Range<u64>, request: u64) -> Result<(), Error> {
        let Some(it) = self.context.calls.get_mut(self.call) else {
            return Ok(());
        };
        it.row.dirtied_pages += 1;
        let mark = Mark {
            call: self.call,
            task: it.task,
            time_ns: it.begin_ns,
            request,
            ..Mark::default()
        };
        let piece = Piece::new(&bytes, mark);
        self.pages
            .written_by(self.context, self.file, &[piece], request)
    }

    /// Notes that a mapped page became writable: it may change until it is written.
    pub fn stored(&mut self, range: Range<u64>) -> Result<(), Error> {
        let pages = self.pages.pages_of(&range);
        let live = self.pages.regions.find_all(Map::Live, self.file, &pages)?;
        let taken = self.open_in(&pages)?;
        let mut all = live.iter().chain(&taken);
        if all.any(|piece| piece.mark.call == self.call) {
            return Ok(());
        }
        match (live.is_empty(), taken.is_empty()) {
            (true, true) => Ok(()),
            (true, false) => self.join_taken(pages),
            (false, _) => self.add_store(pages),
        }
    }

    /// Adds the call's stores to dirty pages in the first layer that has none there.
    fn add_store(&mut self, pages: Range<u64>) -> Result<(), Error> {
        for layer in 1..MOST_LAYERS {
            let map = Map::Live(layer);
            let there = self.pages.regions.find(map, self.file, pages.clone())?;
            if !there.is_empty() {
                continue;
            }
            let mut mark = Mark {
                call: self.call,
                task: self.context.calls.task_of(self.call),
                time_ns: self.context.now_ns,
                ..Mark::default()
            };
            if let Some(call) = self.context.calls.get_mut(self.call) {
                call.row.dirtied_pages += (pages.end - pages.start) / self.pages.page_bytes;
                mark.time_ns = call.begin_ns;
            }
            return self.insert(map, Piece::new(&pages, mark));
        }
        Ok(())
    }

    /// The pieces in these pages of versions that are still to be written or being written.
    fn open_in(&mut self, pages: &Range<u64>) -> Result<Vec<Piece>, Error> {
        let mut taken = self.pages.regions.find_all(Map::Taken, self.file, pages)?;
        taken.retain(|piece| self.pages.is_open(piece));
        Ok(taken)
    }

    /// The pieces that the call made dirty, so it has a part in these versions.
    fn made_dirty(&self) -> Vec<Piece> {
        let call = self.context.calls.get(self.call);
        let dirtied = call.map_or(&[][..], |call| &call.dirtied);
        let of_file = dirtied.iter().filter(|(of, _)| *of == self.file);
        let pieces = of_file.map(|(_, range)| Piece::new(range, Mark::default()));
        pieces.collect()
    }

    fn insert(&mut self, map: Map, piece: Piece) -> Result<(), Error> {
        self.pages.regions.insert(map, self.file, piece)
    }

    /// Writes the links of pieces whose bytes later calls replaced.
    fn overwritten(&mut self, map: Map, pieces: &[Piece]) -> Result<(), Error> {
        let end = (End::Overwritten, self.context.now_ns);
        self.pages
            .resolve(self.context, map, self.file, pieces, end)
    }
}
