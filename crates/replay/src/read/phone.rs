//! Reader of the set MobileBlockIOTraces (acsl-technion). A header is followed by lines
//! `NAME-TID,DEVICE,R|W,SECTOR,SECTORS,SECONDS`. The name of a thread may contain commas.

use super::{Lines, Requests, Threads, decimal, of_sectors, seconds};
use crate::Kind;

/// The header as the set spells it, and with the correct spelling.
const HEADERS: [&str; 2] = [
    "proces,device,rw_flag,sector,size,timestamp",
    "process,device,rw_flag,sector,size,timestamp",
];

const FIELDS: usize = 6;

pub fn is_header(line: &str) -> bool {
    HEADERS.contains(&line)
}

#[derive(Default)]
pub struct Reader {
    threads: Threads,
}

impl Lines for Reader {
    fn take(&mut self, line: &str, requests: &mut Requests) -> Result<(), String> {
        if is_header(line) {
            return Ok(());
        }
        let fields: Vec<&str> = line.rsplitn(FIELDS, ',').collect();
        let [time, sectors, sector, direction, _device, thread] = fields.as_slice() else {
            return Err(format!("it has {} of {FIELDS} fields", fields.len()));
        };
        let kind = match *direction {
            "R" => Kind::Read,
            "W" => Kind::Write,
            "D" => Kind::Discard,
            other => return Err(format!("'{other}' is neither R, W nor D")),
        };
        let time_ns = seconds(time).ok_or_else(|| format!("'{time}' is no time in seconds"))?;
        let number = |text: &str| decimal(text).ok_or_else(|| format!("'{text}' is no number"));
        // The thread's number follows the last hyphen.
        let name = thread.rsplit_once('-').map_or(*thread, |(name, _)| name);
        let lane = self.threads.number(thread, name);
        let operation = of_sectors(time_ns, kind, number(sector)?, number(sectors)?, lane)?;
        requests.play(operation);
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        self.threads.names()
    }
}
