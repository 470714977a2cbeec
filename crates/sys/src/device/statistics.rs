//! I/O counters of a disk since it was added.

/// Counters of `/sys/block/DISK/stat` (`Documentation/block/stat.rst` of the kernel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Number of completed read requests; merged ones count as one.
    pub reads: u64,
    /// Bytes that were read.
    pub read_bytes: u64,
    /// Sum of the read requests' times, in milliseconds.
    pub read_ms: u64,
    /// Number of completed write requests.
    pub writes: u64,
    /// Bytes that were written.
    pub written_bytes: u64,
    /// Sum of the write requests' times, in milliseconds.
    pub write_ms: u64,
    /// Number of requests in flight now.
    pub in_flight: u64,
    /// Time during which any request was in flight, in milliseconds.
    pub busy_ms: u64,
    /// Number of completed discards and flushes.
    pub others: u64,
    /// Sum of the discards' times, in milliseconds.
    pub discard_ms: u64,
    /// Sum of the flushes' times, in milliseconds.
    pub flush_ms: u64,
}

impl Statistics {
    /// Parses the text of a `stat` file; None if it is not one.
    pub fn parse(text: &str) -> Option<Self> {
        // The kernel's sector, whatever the device's own sectors are.
        const SECTOR_BYTES: u64 = 512;
        let numbers = text.split_whitespace().map(str::parse);
        let numbers: Vec<u64> = numbers.collect::<Result<_, _>>().ok()?;
        let [
            reads,
            _,
            read,
            read_ms,
            writes,
            _,
            written,
            write_ms,
            in_flight,
            busy_ms,
            _,
            discards,
            _,
            _,
            discard_ms,
            flushes,
            flush_ms,
            ..,
        ] = numbers[..]
        else {
            return None;
        };
        Some(Statistics {
            reads,
            read_bytes: read * SECTOR_BYTES,
            read_ms,
            writes,
            written_bytes: written * SECTOR_BYTES,
            write_ms,
            in_flight,
            busy_ms,
            others: discards + flushes,
            discard_ms,
            flush_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_at_its_place_and_less_is_none() {
        let told = Statistics::parse("1 0 16 3 4 0 40 5 0 7 8 0 0 0 6 2 1\n").unwrap();
        let wanted = Statistics {
            reads: 1,
            read_bytes: 8192,
            read_ms: 3,
            writes: 4,
            written_bytes: 20480,
            write_ms: 5,
            in_flight: 0,
            busy_ms: 7,
            others: 2,
            discard_ms: 6,
            flush_ms: 1,
        };
        assert_eq!(told, wanted);
        assert_eq!(Statistics::parse("1 0 16"), None);
    }
}
