//! Reader of fio's I/O log (`write_iolog`; HOWTO, "Trace file format"). Version 2 has `FILE ACTION
//! [OFFSET BYTES]` and `FILE wait MICROSECONDS`. Version 3 has the time in µs before each of these.

use super::{Lines, Requests, of_bytes};
use crate::Kind;

const VERSION_2: &str = "fio version 2 iolog";
const VERSION_3: &str = "fio version 3 iolog";

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// Version 2, with waits between the actions.
    Two,
    /// Version 3, with a time before each action.
    Three,
}

/// Version of the log that begins with this line; None if it is not a log of fio.
pub fn version(line: &str) -> Option<Version> {
    match line {
        VERSION_2 => Some(Version::Two),
        VERSION_3 => Some(Version::Three),
        _ => None,
    }
}

#[derive(Default)]
pub struct Reader {
    version: Option<Version>,
    file: Option<String>,
    waited_us: u64,
}

impl Lines for Reader {
    fn take(&mut self, line: &str, requests: &mut Requests) -> Result<(), String> {
        let Some(version) = self.version else {
            self.version = version(line);
            return match self.version {
                Some(_) => Ok(()),
                None => Err(format!(
                    "the first line is neither '{VERSION_2}' nor '{VERSION_3}'"
                )),
            };
        };
        let mut fields = line.split_ascii_whitespace();
        let stamp_us = match version {
            Version::Two => None,
            Version::Three => Some(number(fields.next())?),
        };
        let file = fields.next().ok_or("it names no file")?;
        let action = fields.next().ok_or("it has no action")?;
        self.check_file(file)?;
        let kind = match action {
            "read" => Kind::Read,
            "write" => Kind::Write,
            "trim" => Kind::Discard,
            "sync" | "datasync" => Kind::Flush,
            "add" | "open" | "close" => return Ok(()),
            "wait" if version == Version::Two => {
                let wait_us = number(fields.next())?;
                let waited_us = self.waited_us.checked_add(wait_us);
                self.waited_us = waited_us.ok_or("it waits for ever")?;
                return Ok(());
            }
            other => return Err(format!("'{other}' is no action that is known")),
        };
        let time_us = stamp_us.unwrap_or(self.waited_us);
        let time_ns = time_us.checked_mul(1000).ok_or("its time is too large")?;
        let (offset, size) = match kind {
            Kind::Flush => (0, 0),
            _ => (number(fields.next())?, number(fields.next())?),
        };
        requests.play(of_bytes(time_ns, kind, offset, size, 0)?);
        Ok(())
    }
}

impl Reader {
    fn check_file(&mut self, file: &str) -> Result<(), String> {
        match &self.file {
            Some(first) if first != file => Err(format!(
                "it names the file {file}, and the log began with {first}: log one file at a time"
            )),
            Some(_) => Ok(()),
            None => {
                self.file = Some(file.to_owned());
                Ok(())
            }
        }
    }
}

fn number(field: Option<&str>) -> Result<u64, String> {
    let field = field.ok_or("it ends too early")?;
    field.parse().map_err(|_| format!("'{field}' is no number"))
}
