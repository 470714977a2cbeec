//! Kernels that read a page ahead for an RWF_NOWAIT read.

use std::fs;

/// First kernel that does so. Earlier ones turn `RWF_NOWAIT` into `IOCB_NOIO`
/// (`kiocb_set_rw_flags`).
const SINCE: (u32, u32) = (6, 12);

/// Flags of a read that brings pages into memory and need not return their data.
pub(super) fn flags() -> i32 {
    // An unknown version is treated as an old one.
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    match version(&release) >= SINCE {
        true => libc::RWF_NOWAIT,
        false => 0,
    }
}

fn version(release: &str) -> (u32, u32) {
    let mut numbers = release
        .split(|letter: char| !letter.is_ascii_digit())
        .map(|number| number.parse().unwrap_or_default());
    let mut next = || numbers.next().unwrap_or_default();
    (next(), next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_begins_with_its_version() {
        for (release, expected) in [
            ("6.1.0-56-cloud-amd64\n", (6, 1)),
            ("6.12.117+deb12-cloud-amd64", (6, 12)),
            ("7.0-rc1", (7, 0)),
            ("", (0, 0)),
        ] {
            assert_eq!(version(release), expected);
        }
        assert!(version("6.1.0") < SINCE && version("6.12.1") >= SINCE && version("7.0") > SINCE);
    }
}
