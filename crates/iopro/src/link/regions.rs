//! Maps of a file's byte ranges to marks, for any number of files and ranges.
//!
//! The pieces of a map do not overlap. Maps are cut into regions; only those used lately are in
//! memory, and the others are in a temporary database. Each dirty page costs an entry until it is
//! written. The number of dirty pages grows with the machine's memory, which is why entries go to
//! disk.

use crate::store::Error;
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Bytes of a file that one region covers.
const REGION_BYTES: u64 = 16 << 20;
/// Approximate memory of one piece, with its share of the tree.
const PIECE_BYTES: usize = 96;
/// Approximate memory of an empty region: the smallest node of a tree has room for eleven pieces.
const EMPTY_REGION_BYTES: usize = 800;
/// With more regions on disk than this, those of fetched and unused pages are forgotten. Calls that
/// use these pages later find them cached.
const COLD_FETCHED_AT_MOST: usize = 1 << 18;
/// Size of an encoded piece: seven numbers of eight bytes.
const ENCODED_BYTES: usize = 56;

/// The maps that each file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Map {
    /// Pages that are dirty and not taken for writeback. Number 0 is for writes, where a later one
    /// replaces an earlier one. Higher numbers are for stores to mapped pages, where all stay.
    Live(u8),
    /// Pages that were taken for writeback, until their request is complete.
    Taken(u8),
    /// Pages that were read from the device and not used yet.
    Fetched,
}

/// A range of bytes of a file with its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
    /// The mark of all these bytes.
    pub mark: Mark,
}

impl Piece {
    /// A piece of these bytes.
    pub fn new(bytes: &Range<u64>, mark: Mark) -> Piece {
        Piece {
            start: bytes.start,
            end: bytes.end,
            mark,
        }
    }

    /// Bytes of the file, as offsets.
    pub fn bytes(&self) -> Range<u64> {
        self.start..self.end
    }

    /// The same piece, taken for writeback at `taken_ns`; see [`Mark::taken_ns`].
    pub fn taken(mut self, taken_ns: u64) -> Piece {
        self.mark.taken_ns = taken_ns;
        self
    }

    /// The same piece, carried by this request.
    pub fn carried_by(mut self, request: u64) -> Piece {
        self.mark.request = request;
        self
    }
}

/// Value of [`Mark::taken_ns`] for pieces that must have been taken.
pub const ASSUMED: u64 = u64::MAX;
/// Value of [`Mark::taken_ns`] for pieces whose dirtying was not told yet.
pub const UNREPORTED: u64 = 1;

/// The call and the request of a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// `syscall_id` of the call that dirtied or fetched it; 0 for an unknown one.
    pub call: u64,
    /// `task_id` of that call's task.
    pub task: u64,
    /// When the call did so; for pieces of no call, when they were taken.
    pub time_ns: u64,
    /// `request_id` of the request that carries it; 0 for none yet.
    pub request: u64,
    /// When it was taken for writeback, in nanoseconds.
    ///
    /// 0 is not yet. [`ASSUMED`] is for pieces that became dirty anew, so they must have been
    /// taken, although the event has not come. [`UNREPORTED`] is for pieces that are dirty because a
    /// call wrote them, although the event has not come.
    pub taken_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    map: Map,
    file: u64,
    region: u64,
}

#[derive(Debug, Default)]
struct Region {
    /// From the start of a piece to its end and its mark.
    pieces: BTreeMap<u64, (u64, Mark)>,
    used: u64,
}

impl Region {
    fn bytes(&self) -> usize {
        EMPTY_REGION_BYTES + self.pieces.len() * PIECE_BYTES
    }

    /// The pieces that overlap `range`, not cut to it.
    fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = Piece> + use<'_> {
        let before = self.pieces.range(..range.start).next_back();
        let first = before.filter(|(_, (end, _))| *end > range.start);
        first
            .into_iter()
            .chain(self.pieces.range(range.start..range.end.max(range.start)))
            .map(|(start, (end, mark))| Piece::new(&(*start..*end), *mark))
    }
}

/// The maps of all files.
#[derive(Debug)]
pub struct Regions {
    hot: BTreeMap<Key, Region>,
    hot_bytes: usize,
    budget_bytes: usize,
    cold: BTreeSet<Key>,
    database: Option<Connection>,
    clock: u64,
    layers: u8,
}

impl Regions {
    /// Empty maps that take at most about `budget_bytes` of memory.
    pub fn new(budget_bytes: usize) -> Regions {
        Regions {
            hot: BTreeMap::new(),
            hot_bytes: 0,
            budget_bytes,
            cold: BTreeSet::new(),
            database: None,
            clock: 0,
            layers: 1,
        }
    }

    /// Number of layers of `Live` and `Taken` that were ever used.
    pub fn layers(&self) -> u8 {
        self.layers
    }

    /// Adds a piece where the map has none.
    pub fn insert(&mut self, map: Map, file: u64, piece: Piece) -> Result<(), Error> {
        if let Map::Live(layer) | Map::Taken(layer) = map {
            self.layers = self.layers.max(layer + 1);
        }
        let mut start = piece.start;
        while start < piece.end {
            let region = start / REGION_BYTES;
            let end = piece.end.min((region + 1).saturating_mul(REGION_BYTES));
            let at = self.load(Key { map, file, region }, true)?;
            let Some(at) = at else { break };
            let before = at.bytes();
            add(at, start, end, piece.mark);
            let after = at.bytes();
            self.hot_bytes = self.hot_bytes + after - before;
            start = end;
        }
        self.spill()
    }

    /// Removes the pieces in `range` and returns them in order. Parts outside of `range` stay.
    pub fn cut(&mut self, map: Map, file: u64, range: Range<u64>) -> Result<Vec<Piece>, Error> {
        let mut taken = Vec::new();
        for key in self.keys(map, file, &range) {
            let Some(region) = self.load(key, false)? else {
                continue;
            };
            let before = region.bytes();
            let overlapping: Vec<Piece> = region.overlapping(&range).collect();
            for piece in overlapping {
                region.pieces.remove(&piece.start);
                if piece.start < range.start {
                    add(region, piece.start, range.start, piece.mark);
                }
                if piece.end > range.end {
                    add(region, range.end, piece.end, piece.mark);
                }
                push(&mut taken, piece, &range);
            }
            let (after, empty) = (region.bytes(), region.pieces.is_empty());
            self.hot_bytes = self.hot_bytes + after - before;
            if empty {
                self.hot.remove(&key);
                self.hot_bytes -= EMPTY_REGION_BYTES;
            }
        }
        self.spill()?;
        Ok(taken)
    }

    /// The pieces in `range`, in order, cut to it.
    pub fn find(&mut self, map: Map, file: u64, range: Range<u64>) -> Result<Vec<Piece>, Error> {
        let mut found = Vec::new();
        for key in self.keys(map, file, &range) {
            if let Some(region) = self.load(key, false)? {
                for piece in region.overlapping(&range) {
                    push(&mut found, piece, &range);
                }
            }
        }
        self.spill()?;
        Ok(found)
    }

    /// The pieces in `range` of all layers of `map`, cut to it.
    pub fn find_all(
        &mut self,
        map: fn(u8) -> Map,
        file: u64,
        range: &Range<u64>,
    ) -> Result<Vec<Piece>, Error> {
        let mut found = Vec::new();
        for layer in 0..self.layers {
            found.extend(self.find(map(layer), file, range.clone())?);
        }
        Ok(found)
    }

    /// The files with a piece in this map.
    pub fn files(&self, map: Map) -> BTreeSet<u64> {
        let hot = self.hot.keys().filter(|key| key.map == map);
        let cold = self.cold.iter().filter(|key| key.map == map);
        hot.chain(cold).map(|key| key.file).collect()
    }

    fn keys(&self, map: Map, file: u64, range: &Range<u64>) -> Vec<Key> {
        if range.is_empty() {
            return Vec::new();
        }
        let key = |at: u64| Key {
            map,
            file,
            region: at / REGION_BYTES,
        };
        let (first, last) = (key(range.start), key(range.end - 1));
        let mut keys: Vec<Key> = self.hot.range(first..=last).map(|(key, _)| *key).collect();
        if !self.cold.is_empty() {
            keys.extend(self.cold.range(first..=last));
            keys.sort_unstable();
        }
        keys
    }

    /// Loads a region from memory or disk; if there is none, adds it when `create` is set.
    fn load(&mut self, key: Key, create: bool) -> Result<Option<&mut Region>, Error> {
        self.clock += 1;
        if self.cold.contains(&key) {
            let region = self.fetch(key)?;
            self.hot_bytes += region.bytes();
            self.hot.insert(key, region);
        } else if create && !self.hot.contains_key(&key) {
            self.hot_bytes += EMPTY_REGION_BYTES;
            self.hot.insert(key, Region::default());
        }
        let Some(region) = self.hot.get_mut(&key) else {
            return Ok(None);
        };
        region.used = self.clock;
        Ok(Some(region))
    }

    fn fetch(&mut self, key: Key) -> Result<Region, Error> {
        self.cold.remove(&key);
        let mut region = Region::default();
        let Some(database) = &self.database else {
            return Ok(region);
        };
        let (map, layer) = number(key.map);
        let place = params![map, layer, key.file as i64, key.region as i64];
        let bytes: Option<Vec<u8>> = database
            .prepare_cached("SELECT pieces FROM regions WHERE map = ? AND layer = ? AND file = ? AND region = ?")?
            .query_row(place, |row| row.get(0))
            .optional()?;
        database
            .prepare_cached(
                "DELETE FROM regions WHERE map = ? AND layer = ? AND file = ? AND region = ?",
            )?
            .execute(place)?;
        for piece in bytes.unwrap_or_default().chunks_exact(ENCODED_BYTES) {
            let (numbers, _) = piece.as_chunks();
            let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
            let mut next = || numbers.next().unwrap_or_default();
            let (start, end) = (next(), next());
            let mark = Mark {
                call: next(),
                task: next(),
                time_ns: next(),
                request: next(),
                taken_ns: next(),
            };
            region.pieces.insert(start, (end, mark));
        }
        Ok(region)
    }

    /// Moves the least recently used regions to disk, until an eighth of the budget is free.
    fn spill(&mut self) -> Result<(), Error> {
        if self.hot_bytes <= self.budget_bytes {
            return Ok(());
        }
        let mut oldest: Vec<(u64, Key)> = self
            .hot
            .iter()
            .map(|(key, region)| (region.used, *key))
            .collect();
        oldest.sort_unstable();
        let database = match self.database.take() {
            Some(database) => database,
            None => cold_database()?,
        };
        database.execute_batch("BEGIN")?;
        // The caller still works with the region that was used last.
        oldest.pop();
        for (_, key) in oldest {
            if self.hot_bytes <= self.budget_bytes / 8 * 7 {
                break;
            }
            let Some(region) = self.hot.remove(&key) else {
                continue;
            };
            self.hot_bytes -= region.bytes();
            if key.map == Map::Fetched && self.cold.len() >= COLD_FETCHED_AT_MOST {
                continue;
            }
            let (map, layer) = number(key.map);
            database
                .prepare_cached("INSERT OR REPLACE INTO regions VALUES (?, ?, ?, ?, ?)")?
                .execute(params![
                    map,
                    layer,
                    key.file as i64,
                    key.region as i64,
                    encode(&region)
                ])?;
            self.cold.insert(key);
        }
        database.execute_batch("COMMIT")?;
        self.database = Some(database);
        Ok(())
    }
}

fn encode(region: &Region) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(region.pieces.len() * ENCODED_BYTES);
    for (start, (end, mark)) in &region.pieces {
        let of_call = [mark.call, mark.task, mark.time_ns];
        let numbers = [*start, *end].into_iter().chain(of_call);
        for number in numbers.chain([mark.request, mark.taken_ns]) {
            bytes.extend(number.to_le_bytes());
        }
    }
    bytes
}

fn number(map: Map) -> (u8, u8) {
    match map {
        Map::Live(layer) => (0, layer),
        Map::Taken(layer) => (1, layer),
        Map::Fetched => (2, 0),
    }
}

fn cold_database() -> Result<Connection, Error> {
    let database = Connection::open("")?;
    database.execute_batch(
        "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -4096;
         CREATE TABLE regions (map INTEGER, layer INTEGER, file INTEGER, region INTEGER,
             pieces BLOB, PRIMARY KEY (map, layer, file, region)) WITHOUT ROWID",
    )?;
    Ok(database)
}

/// Adds to a region; extends the piece before if it adjoins and has the same mark.
fn add(region: &mut Region, start: u64, end: u64, mark: Mark) {
    let before = region.pieces.range_mut(..start).next_back();
    if let Some((_, (before_end, before_mark))) = before
        && *before_end == start
        && *before_mark == mark
    {
        *before_end = end;
        return;
    }
    region.pieces.insert(start, (end, mark));
}

/// Appends the part of `piece` in `range`; extends the last piece if it adjoins.
fn push(pieces: &mut Vec<Piece>, piece: Piece, range: &Range<u64>) {
    let inside = piece.start.max(range.start)..piece.end.min(range.end);
    let piece = Piece::new(&inside, piece.mark);
    match pieces.last_mut() {
        Some(last) if last.end == piece.start && last.mark == piece.mark => last.end = piece.end,
        _ => pieces.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(start: u64, end: u64, call: u64) -> Piece {
        let mark = Mark {
            call,
            ..Mark::default()
        };
        Piece { start, end, mark }
    }

    #[test]
    fn cutting_leaves_what_sticks_out() {
        let mut regions = Regions::new(1 << 20);
        let map = Map::Live(0);
        regions.insert(map, 7, piece(100, 900, 1)).unwrap();
        assert_eq!(regions.cut(map, 7, 300..400).unwrap(), [piece(300, 400, 1)]);
        assert_eq!(
            regions.find(map, 7, 0..u64::MAX).unwrap(),
            [piece(100, 300, 1), piece(400, 900, 1)]
        );
        assert!(regions.find(map, 8, 0..u64::MAX).unwrap().is_empty());
    }

    #[test]
    fn a_piece_over_many_regions_is_one_to_whoever_asks() {
        let mut regions = Regions::new(1 << 20);
        let long = piece(5, 3 * REGION_BYTES + 5, 9);
        regions.insert(Map::Fetched, 1, long).unwrap();
        assert_eq!(regions.cut(Map::Fetched, 1, 0..u64::MAX).unwrap(), [long]);
        assert_eq!(regions.hot_bytes, 0);
    }

    #[test]
    fn what_does_not_fit_into_memory_is_found_again() {
        let mut spilling = Regions::new(60_000);
        let mut roomy = Regions::new(usize::MAX);
        let mut seed = 1u64;
        let mut random = move |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for call in 1..4000 {
            let (file, start) = (random(40), random(200) * 1_000_000);
            let range = start..start + 1 + random(3_000_000);
            for regions in [&mut spilling, &mut roomy] {
                let old = regions.cut(Map::Live(0), file, range.clone()).unwrap();
                assert!(
                    old.iter()
                        .all(|old| old.start >= range.start && old.end <= range.end)
                );
                let new = piece(range.start, range.end, call);
                regions.insert(Map::Live(0), file, new).unwrap();
            }
        }
        assert!(!spilling.cold.is_empty());
        assert!(spilling.hot_bytes <= 60_000 + PIECE_BYTES * 64);
        for file in 0..40 {
            let all = 0..u64::MAX;
            let expected = roomy.find(Map::Live(0), file, all.clone()).unwrap();
            assert_eq!(spilling.cut(Map::Live(0), file, all).unwrap(), expected);
        }
        assert_eq!(spilling.hot_bytes, 0);
    }
}
