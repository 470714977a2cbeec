//! `--fleet`: results of one machine as partitions of tables that many machines share.

use crate::atomic_file::{AtomicFile, unwritable};
use crate::exit::{Exit, Failure};
use ::doctor::fleet::{Origin, Rows};
use ::iopro::export::parquet;
use ::iopro::tables::Table;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use sys::output::Directory;

/// Where a fleet's tables get this machine's rows.
#[derive(clap::Args)]
pub struct Fleet {
    /// Also write the result as Parquet below this directory, as TABLE/host=NAME/day=DATE/TIME.parquet
    #[arg(long, value_name = "DIR")]
    fleet: Option<PathBuf>,
    /// With --fleet: leave out the names of apps and files
    #[arg(long = "anonymous", requires = "fleet")]
    is_anonymous: bool,
}

impl Fleet {
    /// Begins the files of these tables, for the machine whose files are below `root`; None without
    /// --fleet. They appear when they are written.
    pub fn begin<const N: usize>(
        &self,
        root: &Path,
        tables: [&'static Table; N],
    ) -> Result<Option<Partitions<N>>, Failure> {
        let Some(directory) = &self.fleet else {
            return Ok(None);
        };
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let at_s = since.unwrap_or_default().as_secs();
        let host = told(root, "hostname")?;
        make(directory)?;
        let mut files = Vec::new();
        for table in tables {
            let mut place = directory.clone();
            for part in [
                table.name.to_owned(),
                format!("host={}", in_path(&host)),
                format!("day={}", day(at_s)),
            ] {
                place.push(part);
                make(&place)?;
            }
            // Two runs may begin in one second.
            let name = format!("{at_s}-{}.parquet", std::process::id());
            files.push((table, AtomicFile::create_private(&place.join(name))?));
        }
        Ok(Some(Partitions {
            origin: Origin {
                at_s,
                kernel: told(root, "osrelease")?,
                is_anonymous: self.is_anonymous,
            },
            files: files
                .try_into()
                .map_err(|_| Failure::new(Exit::Internal, "each table of a fleet has a file"))?,
        }))
    }
}

/// Files that are being made, one for each of N tables.
pub struct Partitions<const N: usize> {
    /// The run that the rows come from.
    pub origin: Origin,
    files: [(&'static Table, AtomicFile); N],
}

impl<const N: usize> Partitions<N> {
    /// Writes the rows of each table. A table without rows gets no file.
    pub fn write(self, rows: [Rows; N]) -> Result<(), Failure> {
        for ((table, file), rows) in self.files.into_iter().zip(rows) {
            if rows.is_empty() {
                continue;
            }
            let mut bytes = Vec::new();
            parquet::write_table(&mut bytes, table, rows.into_iter())
                .map_err(|error| Failure::new(Exit::Internal, error))?;
            file.write(bytes)?;
        }
        Ok(())
    }
}

fn make(directory: &Path) -> Result<(), Failure> {
    Directory::make(directory)
        .map(drop)
        .map_err(unwritable(directory))
}

/// The value of a file in /proc/sys/kernel.
fn told(root: &Path, name: &str) -> Result<String, Failure> {
    let path = root.join("proc/sys/kernel").join(name);
    sys::knobs::read(&path).map_err(|error| Failure::new(Exit::Internal, error))
}

/// A value in the name of a partition: other bytes than of host names are escaped as in URLs.
fn in_path(value: &str) -> String {
    let mut name = String::new();
    for byte in value.bytes() {
        match byte {
            b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => name.push(byte.into()),
            // A String takes all that is written.
            _ => write!(name, "%{byte:02X}").unwrap_or_default(),
        }
    }
    name
}

/// The day in UTC, such as `2026-11-30`, of a time in seconds since 1970: civil_from_days of
/// <https://howardhinnant.github.io/date_algorithms.html>, for days from 1970 on.
fn day(at_s: u64) -> String {
    let days = at_s / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (at_s, expected) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (1_709_251_200, "2024-03-01"),
            (1_795_996_800, "2026-11-30"),
            (4_102_444_799, "2099-12-31"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(day(at_s), expected);
        }
    }

    #[test]
    fn a_host_of_any_name_is_one_directory() {
        assert_eq!(in_path("web-1.example"), "web-1.example");
        assert_eq!(in_path("a/b=ü"), "a%2Fb%3D%C3%BC");
    }
}
