//! Pages that were read: the calls that fetched them, and those that used them.

use super::super::calls::{Call, reads};
use super::super::context::Context;
use super::super::recent::Run;
use super::super::regions::{Map, Mark, Piece};
use super::Pages;
use crate::event::CallKind;
use crate::store::Error;
use crate::tables;
use std::ops::Range;

impl Pages {
    /// Links an issued request that reads these pages. Whether its call needs them or fetches them
    /// in advance is known when the call returns.
    pub fn read_issued(
        &mut self,
        context: &mut Context,
        run: Run,
        row: tables::Link,
    ) -> Result<(), Error> {
        if !run.metadata {
            self.note_fetched(run, &row)?;
        }
        if row.syscall_id == 0 {
            return Ok(());
        }
        if run.metadata {
            return link_as(context, row, "metadata-read");
        }
        let call = context.calls.get_mut(row.syscall_id);
        if let Some(call) = call.filter(|call| !call.over) {
            call.reads.push(row);
            return Ok(());
        }
        // The call did not wait for the request.
        link_as(context, row, "readahead")
    }

    /// Notes which call and which request fetch these pages.
    fn note_fetched(&mut self, run: Run, row: &tables::Link) -> Result<(), Error> {
        let range = self.bytes_of(run.index, run.pages);
        self.regions.cut(Map::Fetched, run.file, range.clone())?;
        let mark = Mark {
            call: row.syscall_id,
            time_ns: row.begin_ns,
            request: row.request_id.unwrap_or(0),
            ..Mark::default()
        };
        let piece = Piece::new(&range, mark);
        self.regions.insert(Map::Fetched, run.file, piece)
    }

    /// Links the reads of a call that returned; `used` are the bytes that it used of a file's
    /// pages.
    pub fn read_ends(
        &mut self,
        context: &mut Context,
        id: u64,
        used: Option<(u64, Range<u64>)>,
    ) -> Result<(), Error> {
        let Some(call) = context.calls.get_mut(id) else {
            return Ok(());
        };
        let (fetched, begin_ns) = (std::mem::take(&mut call.reads), call.begin_ns);
        let of_call = call.file.map(|(_, file)| file);
        let of_all = kind_of_all(call);
        let pages = used.map(|(file, range)| (file, self.page_range(&range)));
        for mut row in fetched {
            match (&pages, of_all) {
                _ if !row.kind.is_empty() => {
                    row.file_id = of_call;
                    context.rows.link(row)?;
                }
                (_, Some(kind)) => link_as(context, row, kind)?,
                (Some((file, pages)), None) if row.file_id == Some(*file) => {
                    self.link_parts(context, row, pages)?;
                }
                _ => link_as(context, row, "readahead")?,
            }
        }
        match pages {
            Some((file, pages)) => self.use_pages(context, id, file, pages, begin_ns),
            None => Ok(()),
        }
    }

    fn page_range(&self, bytes: &Range<u64>) -> Range<u64> {
        match bytes.is_empty() {
            true => 0..0,
            false => bytes.start / self.page_bytes..bytes.end.div_ceil(self.page_bytes),
        }
    }

    /// Splits a row: the pages inside of `used` were fetched for the call, the others only by it.
    fn link_parts(
        &self,
        context: &mut Context,
        row: tables::Link,
        used: &Range<u64>,
    ) -> Result<(), Error> {
        let start = row.page_index.unwrap_or(0);
        let end = start + row.pages;
        let (first, last) = (used.start.clamp(start, end), used.end.clamp(start, end));
        let parts = [
            (start, first, "readahead"),
            (first, last.max(first), "read"),
            (last.max(first), end, "readahead"),
        ];
        for (from, to, kind) in parts {
            if to > from {
                context.rows.link(tables::Link {
                    kind,
                    page_index: Some(from),
                    pages: to - from,
                    bytes: (to - from) * self.page_bytes,
                    ..row.clone()
                })?;
            }
        }
        Ok(())
    }

    /// Links a call to the requests by which others fetched pages that it used, and counts where
    /// its pages came from.
    fn use_pages(
        &mut self,
        context: &mut Context,
        call: u64,
        file: u64,
        pages: Range<u64>,
        begin_ns: u64,
    ) -> Result<(), Error> {
        let bytes = self.bytes_of(pages.start, pages.end - pages.start);
        let (mut missed, mut readahead) = (0, 0);
        for piece in self.regions.cut(Map::Fetched, file, bytes)? {
            let count = (piece.end - piece.start) / self.page_bytes;
            if piece.mark.call == call {
                missed += count;
                continue;
            }
            readahead += count;
            let request = piece.mark.request;
            let shared =
                self.is_under_way(request) || context.recent.was_done_since(request, begin_ns);
            context.rows.link(tables::Link {
                syscall_id: call,
                kind: match shared {
                    true => "shared-read",
                    false => "readahead-hit",
                },
                request_id: Some(request),
                file_id: Some(file),
                page_index: Some(piece.start / self.page_bytes),
                pages: count,
                bytes: piece.end - piece.start,
                begin_ns,
                end_ns: context.now_ns,
                ..tables::Link::default()
            })?;
        }
        if let Some(call) = context.calls.get_mut(call) {
            call.row.missed_pages = missed;
            call.row.readahead_pages = readahead;
            call.row.cached_pages = (pages.end - pages.start).saturating_sub(missed + readahead);
        }
        Ok(())
    }
}

/// The kind of link between a call and all that it fetched. None where it depends on the pages that
/// the call used.
fn kind_of_all(call: &Call) -> Option<&'static str> {
    match call.kind {
        Some(CallKind::Readahead | CallKind::Fadvise64) => Some("readahead"),
        Some(kind) if reads(kind) => None,
        // A call that is not a read needs all that it fetched: a write of a part of a page, a
        // truncation.
        _ if call.ring.is_none() => Some("read"),
        _ => None,
    }
}

fn link_as(context: &mut Context, row: tables::Link, kind: &'static str) -> Result<(), Error> {
    context.rows.link(tables::Link { kind, ..row })
}
