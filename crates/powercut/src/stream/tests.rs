use super::*;
use proptest::prelude::*;

/// Encodes a stream as `kernel/simflash/stream.c` does.
#[derive(Clone, Default)]
pub(crate) struct Writer(Vec<u8>);

/// A device of 16 MB with two dies. The numbers are in the order of `ftl/parameters.h`.
pub(crate) const CONFIG: [u64; 47] = [
    4096, 20, 2, 1, 32, 4, 32, 4, 0, 128, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 1024, 0, 0, 4, 1,
    0, 90_000, 0, 1_120_000, 0, 3_000_000, 0, 0, 0, 0, 0, 20_000, 20_000, 290_000, 340_000,
    100_000, 300_000, 50_000, 10_000,
];

/// Index of `power_loss` in [`CONFIG`].
const POWER_LOSS: usize = 27;

impl Writer {
    pub(crate) fn new(config: [u64; 47]) -> Self {
        let mut writer = Writer(MAGIC.to_vec());
        writer.u32(VERSION);
        writer.u32(config.len() as u32);
        for number in config {
            writer.u64(number);
        }
        writer
    }

    fn u32(&mut self, number: u32) {
        self.0.extend(number.to_le_bytes());
    }

    fn u64(&mut self, number: u64) {
        self.0.extend(number.to_le_bytes());
    }

    fn head(&mut self, kind: u8, flags: u8, extent: (u32, u32), now_ns: u64) {
        self.head_of((kind, flags, 0), extent, now_ns);
    }

    fn head_of(
        &mut self,
        (kind, flags, stream): (u8, u8, u8),
        (lba, count): (u32, u32),
        now_ns: u64,
    ) {
        self.0.extend([kind, flags, stream, 0]);
        self.u32(lba);
        self.u32(count);
        self.u64(now_ns);
    }

    fn page(&mut self, page: &Page) {
        match page {
            Page::Word(word) => {
                self.0.push(0);
                self.u64(*word);
            }
            Page::Bytes(bytes) => {
                self.0.push(1);
                let parts = || bytes.chunks_exact(PART_BYTES).enumerate();
                let used = |part: &[u8]| part.iter().any(|it| *it != 0);
                self.u64(parts().map(|(at, part)| u64::from(used(part)) << at).sum());
                for (_, part) in parts().filter(|(_, part)| used(part)) {
                    self.0.extend(part);
                }
            }
        }
    }

    /// Encodes a record; `pages` are the contents that its numbers stand for.
    pub(crate) fn record(&mut self, record: &Record, pages: &[Page]) {
        let now_ns = record.now_ns;
        match &record.what {
            What::Read(lba, count) => self.head(kind::READ, 0, (*lba, *count), now_ns),
            What::Write {
                lba,
                pages: numbers,
                stream,
                fua,
            } => {
                let at = (*lba, numbers.len() as u32);
                self.head_of((kind::WRITE, u8::from(*fua), *stream), at, now_ns);
                for number in numbers {
                    self.page(&pages[*number as usize]);
                }
            }
            What::Flush => self.head(kind::FLUSH, 0, (0, 0), now_ns),
            What::Discard(lba, count) => self.head(kind::DISCARD, 0, (*lba, *count), now_ns),
            What::Control(op, ranges) => {
                self.head(*op as u8, 0, (0, ranges.len() as u32), now_ns);
                for range in ranges {
                    for number in [range.src, range.dst, range.pages] {
                        self.u32(number);
                    }
                }
            }
            What::Mark(bytes) => {
                self.head(kind::MARK, 0, (0, bytes.len() as u32), now_ns);
                self.0.extend(bytes);
            }
        }
    }

    pub(crate) fn end(
        mut self,
        flags: u8,
        now_ns: u64,
        counters: [u64; OPERATION_COUNTERS],
    ) -> Vec<u8> {
        self.head(kind::END, flags, (0, OPERATION_COUNTERS as u32), now_ns);
        for counter in counters {
            self.u64(counter);
        }
        sealed(self.0)
    }
}

fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let crc = crc32fast::hash(&bytes);
    bytes.extend(crc.to_le_bytes());
    bytes
}

fn page() -> impl Strategy<Value = Page> {
    let word = any::<u64>().prop_map(Page::Word);
    let sparse = prop::collection::vec((0..PAGE_BYTES, 1..=255_u8), 1..8);
    let bytes = sparse.prop_map(|set| {
        let mut bytes = Box::new([0; PAGE_BYTES]);
        for (at, byte) in set {
            bytes[at] = byte;
        }
        Page::Bytes(bytes)
    });
    prop_oneof![word, bytes]
}

/// Any record; numbers of pages are indices of the test's own contents, from 1 on.
fn what(pages: usize) -> impl Strategy<Value = What> {
    let range = (0..4096_u32, 0..4096_u32, 1..64_u32);
    let range = range.prop_map(|(src, dst, pages)| Range { src, dst, pages });
    prop_oneof![
        (0..4000_u32, 1..96_u32).prop_map(|(lba, count)| What::Read(lba, count)),
        (0..4000_u32, 1..4096_u32)
            .prop_map(|(lba, count)| What::Discard(lba, count.min(4096 - lba))),
        (
            0..4000_u32,
            prop::collection::vec(1..=pages as u32, 1..96),
            any::<u8>(),
            any::<bool>()
        )
            .prop_map(|(lba, pages, stream, fua)| What::Write {
                lba,
                pages,
                stream,
                fua
            }),
        Just(What::Flush),
        prop::collection::vec(range, 0..8).prop_map(|ranges| What::Control(6, ranges)),
        (7..=10_u32).prop_map(|op| What::Control(op, Vec::new())),
        prop::collection::vec(any::<u8>(), 0..64).prop_map(What::Mark),
    ]
}

/// Any contents, and a recording with them.
fn recorded() -> impl Strategy<Value = (Vec<Page>, Vec<Record>)> {
    let pages = prop::collection::hash_set(page(), 1..12);
    pages.prop_flat_map(|pages| {
        let pages: Vec<Page> = std::iter::once(Page::Word(0)).chain(pages).collect();
        let records = prop::collection::vec((0..1_000_000_u64, what(pages.len() - 1)), 0..24);
        (Just(pages), records).prop_map(|(pages, records)| {
            let mut now_ns = 0;
            let records = records.into_iter().map(|(pause_ns, what)| {
                now_ns += pause_ns;
                Record { now_ns, what }
            });
            (pages, records.collect())
        })
    })
}

fn written(pages: &[Page], records: &[Record]) -> Vec<u8> {
    let mut writer = Writer::new(CONFIG);
    for record in records {
        writer.record(record, pages);
    }
    let end_ns = records.last().map_or(0, |it| it.now_ns);
    writer.end(0, end_ns, [7; OPERATION_COUNTERS])
}

/// The records with the contents instead of their numbers.
fn resolved(pages: &[Page], records: &[Record]) -> Vec<(u64, What, Vec<Page>)> {
    let resolve = |record: &Record| {
        let mut what = record.what.clone();
        let mut held = Vec::new();
        if let What::Write { pages: numbers, .. } = &mut what {
            held = numbers
                .iter()
                .map(|it| pages[*it as usize].clone())
                .collect();
            numbers.clear();
        }
        (record.now_ns, what, held)
    };
    records.iter().map(resolve).collect()
}

proptest! {
    #[test]
    fn what_was_written_is_read((pages, records) in recorded()) {
        let stream = Stream::read(&written(&pages, &records)).unwrap();
        prop_assert_eq!(resolved(&stream.pages, &stream.records), resolved(&pages, &records));
        prop_assert_eq!(stream.counters, [7; OPERATION_COUNTERS]);
        // No content is there twice.
        let distinct: std::collections::HashSet<&Page> = stream.pages.iter().collect();
        prop_assert_eq!(distinct.len(), stream.pages.len());
    }

    #[test]
    fn what_was_cut_or_changed_is_refused((pages, records) in recorded(), at: usize, bit in 0..8_u32) {
        let mut bytes = written(&pages, &records);
        let at = at % bytes.len();
        prop_assert!(Stream::read(&bytes[..at]).is_err());
        bytes[at] ^= 1_u8 << bit;
        prop_assert!(Stream::read(&bytes).is_err());
    }

    #[test]
    fn no_bytes_make_it_panic((pages, records) in recorded(), changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8)) {
        let mut bytes = written(&pages, &records);
        bytes.truncate(bytes.len() - 4);
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        // Damaged bytes with a correct checksum are a valid stream, or an error.
        if let Ok(stream) = Stream::read(&sealed(bytes)) {
            let capacity = stream.config.capacity_pages();
            for record in &stream.records {
                if let What::Write { lba, pages, .. } = &record.what {
                    prop_assert!(lba + pages.len() as u32 <= capacity);
                    prop_assert!(pages.iter().all(|it| (*it as usize) < stream.pages.len()));
                }
            }
        }
    }
}

#[test]
fn each_reason_is_told() {
    let whole = written(&[], &[]);
    assert_eq!(Stream::read(b"FRPARCEL").unwrap_err(), Error::NoStream);
    let mut newer = whole.clone();
    newer[8] = 9;
    assert_eq!(Stream::read(&newer).unwrap_err(), Error::Version(9));
    let full = Writer::new(CONFIG).end(1, 0, [0; OPERATION_COUNTERS]);
    assert_eq!(Stream::read(&full).unwrap_err(), Error::Full);
    let mut forgets = CONFIG;
    forgets[POWER_LOSS] = 0;
    let forgets = Writer::new(forgets).end(0, 0, [0; OPERATION_COUNTERS]);
    assert!(matches!(Stream::read(&forgets), Err(Error::Unknown(_))));
}
