//! Pages that were read: the calls that fetched them, and those that used them.

use super::Linker;
use super::calls::reads;
use super::recent::Run;
use super::regions::{Map, Mark, Piece};
use crate::store::Error;
use crate::tables;
use std::ops::Range;

impl Linker {
    /// Links an issued request that reads these pages. Whether its call needs them or fetches them
    /// in advance is known when the call returns.
    pub(super) fn read_issued(&mut self, run: Run, row: tables::Link) -> Result<(), Error> {
        let range = self.bytes_of(run.index, run.pages);
        if !run.metadata {
            self.regions.cut(Map::Brought, run.file, range.clone())?;
            let mark = Mark {
                call: row.syscall_id,
                time_ns: row.begin_ns,
                request: row.request_id.unwrap_or(0),
                ..Mark::default()
            };
            let (start, end) = (range.start, range.end);
            self.regions
                .insert(Map::Brought, run.file, Piece { start, end, mark })?;
        }
        if row.syscall_id == 0 {
            return Ok(());
        }
        if run.metadata {
            return self.link(tables::Link {
                kind: "metadata-read",
                ..row
            });
        }
        let call = self.calls.get_mut(row.syscall_id).filter(|call| !call.over);
        if let Some(call) = call {
            call.reads.push(row);
            return Ok(());
        }
        // The call did not wait for the request.
        self.link(tables::Link {
            kind: "readahead",
            ..row
        })
    }

    /// Links a call, or keeps the row until the call returns if its file is known only then.
    pub(super) fn link_when_known(&mut self, row: tables::Link) -> Result<(), Error> {
        let call = self.calls.get_mut(row.syscall_id);
        match call.filter(|call| row.file_id.is_none() && !call.over && !call.kernel) {
            Some(call) => {
                call.reads.push(row);
                Ok(())
            }
            None => self.link(row),
        }
    }

    /// Links the reads of a call that returned; `used` are the bytes that it used of a file's
    /// pages.
    pub(super) fn read_ends(
        &mut self,
        call: u64,
        used: Option<(u64, Range<u64>)>,
    ) -> Result<(), Error> {
        let Some(it) = self.calls.get_mut(call) else {
            return Ok(());
        };
        let (fetched, begin_ns) = (std::mem::take(&mut it.reads), it.begin_ns);
        // A call that is not a read needs all that it fetched: a write of a part of a page, a
        // truncation.
        let needs_all = it.kind.is_none_or(|kind| !reads(kind)) && it.ring.is_none();
        let ahead = it.kind.is_some_and(|kind| {
            use crate::event::CallKind::{Fadvise64, Readahead};
            matches!(kind, Readahead | Fadvise64)
        });
        let of_call = it.file.map(|(_, file)| file);
        let pages = used.map(|(file, range)| (file, self.page_range(&range)));
        for row in fetched {
            match &pages {
                _ if !row.kind.is_empty() => self.link(tables::Link {
                    file_id: of_call,
                    ..row
                })?,
                _ if ahead => self.link_read(row, "readahead")?,
                _ if needs_all => self.link_read(row, "read")?,
                Some((file, pages)) if row.file_id == Some(*file) => {
                    self.link_parts(row, pages.clone())?;
                }
                _ => self.link_read(row, "readahead")?,
            }
        }
        match pages {
            Some((file, pages)) => self.use_pages(call, file, pages, begin_ns),
            None => Ok(()),
        }
    }

    fn page_range(&self, bytes: &Range<u64>) -> Range<u64> {
        match bytes.is_empty() {
            true => 0..0,
            false => bytes.start / self.page_bytes..bytes.end.div_ceil(self.page_bytes),
        }
    }

    fn link_read(&mut self, row: tables::Link, kind: &'static str) -> Result<(), Error> {
        self.link(tables::Link { kind, ..row })
    }

    /// Splits a row: the pages inside of `used` were fetched for the call, the others only by it.
    fn link_parts(&mut self, row: tables::Link, used: Range<u64>) -> Result<(), Error> {
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
                self.link(tables::Link {
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

    /// Counts where the pages that a call used came from.
    fn use_pages(
        &mut self,
        call: u64,
        file: u64,
        pages: Range<u64>,
        begin_ns: u64,
    ) -> Result<(), Error> {
        let bytes = self.bytes_of(pages.start, pages.end - pages.start);
        let brought = self.regions.cut(Map::Brought, file, bytes)?;
        let (mut missed, mut readahead) = (0, 0);
        for piece in brought {
            let count = (piece.end - piece.start) / self.page_bytes;
            if piece.mark.call == call {
                missed += count;
                continue;
            }
            readahead += count;
            let request = piece.mark.request;
            let shared =
                self.is_under_way(request) || self.recent.was_done_since(request, begin_ns);
            self.link(tables::Link {
                syscall_id: call,
                kind: if shared {
                    "shared-read"
                } else {
                    "readahead-hit"
                },
                request_id: Some(request),
                file_id: Some(file),
                page_index: Some(piece.start / self.page_bytes),
                pages: count,
                bytes: piece.end - piece.start,
                begin_ns,
                end_ns: self.last_ns,
                ..tables::Link::default()
            })?;
        }
        if let Some(call) = self.calls.get_mut(call) {
            call.pages.missed = missed;
            call.pages.readahead = readahead;
            call.pages.cached = (pages.end - pages.start).saturating_sub(missed + readahead);
        }
        Ok(())
    }
}
