//! What a disk has done since it is there.

/// Of `/sys/block/DISK/stat` (`Documentation/block/stat.rst` of the kernel).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Requests that read, merged ones as one.
    pub reads: u64,
    /// What they brought.
    pub read_bytes: u64,
    /// How long they took, all together.
    pub read_ms: u64,
    /// Requests that wrote.
    pub writes: u64,
    /// What they took away.
    pub written_bytes: u64,
    /// How long they took, all together.
    pub write_ms: u64,
    /// For how long there was any.
    pub busy_ms: u64,
}

impl Statistics {
    /// None if it is not such a file's text.
    pub fn parse(text: &str) -> Option<Self> {
        // 512 bytes, whatever the device's own sectors are.
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
            _,
            busy_ms,
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
            busy_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_at_its_place_and_less_is_none() {
        let told = Statistics::parse("1 0 16 3 4 0 40 5 0 7 8 0 0 0 0 2 1\n").unwrap();
        let wanted = Statistics {
            reads: 1,
            read_bytes: 8192,
            read_ms: 3,
            writes: 4,
            written_bytes: 20480,
            write_ms: 5,
            busy_ms: 7,
        };
        assert_eq!(told, wanted);
        assert_eq!(Statistics::parse("1 0 16"), None);
    }
}
