//! Messages of a guest, line by line, from the file of its second serial port.

use record::{Message, Row};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a guest's messages as they come.
pub struct Messages {
    file: File,
    unfinished: Vec<u8>,
    rows: Vec<Row>,
    ending: Option<Ending>,
}

enum Ending {
    Done { rows: usize },
    Failed { reason: String },
}

impl Messages {
    /// The messages in the file `path`, which is there but may be empty.
    pub fn open(path: &Path) -> io::Result<Messages> {
        Ok(Messages {
            file: File::open(path)?,
            unfinished: Vec::new(),
            rows: Vec::new(),
            ending: None,
        })
    }

    /// Takes in what was written since; `progress` hears of each run that began.
    /// The error is a sentence about a line that makes no sense.
    pub fn read(&mut self, progress: &mut dyn FnMut(usize, usize, &str)) -> Result<(), String> {
        self.file
            .read_to_end(&mut self.unfinished)
            .map_err(|error| format!("its messages cannot be read: {error}"))?;
        while let Some(end) = self.unfinished.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unfinished.drain(..=end).collect();
            self.take(&line[..end], progress)?;
        }
        Ok(())
    }

    fn take(
        &mut self,
        line: &[u8],
        progress: &mut dyn FnMut(usize, usize, &str),
    ) -> Result<(), String> {
        if self.ending.is_some() {
            return Err("it said something after its last message".to_owned());
        }
        let message = serde_json::from_slice(line)
            .map_err(|error| format!("its message '{}' is damaged: {error}", shown(line)))?;
        match message {
            Message::Progress { index, count, text } => progress(index, count, &text),
            Message::Row(row) => self.rows.push(row),
            Message::Failed { reason } => self.ending = Some(Ending::Failed { reason }),
            Message::Done { rows } => self.ending = Some(Ending::Done { rows }),
        }
        Ok(())
    }

    /// The rows, if the guest said that it sent these and no more; else a
    /// sentence about what is wrong. Call it when the guest has ended.
    pub fn finish(self) -> Result<Vec<Row>, String> {
        match self.ending {
            Some(Ending::Failed { reason }) => Err(reason),
            _ if !self.unfinished.is_empty() => Err(format!(
                "its message '{}' is cut short",
                shown(&self.unfinished)
            )),
            Some(Ending::Done { rows }) if rows == self.rows.len() => Ok(self.rows),
            Some(Ending::Done { rows }) => Err(format!(
                "it sent {rows} figures and {} arrived",
                self.rows.len()
            )),
            None => Err("it ended before its runs were done".to_owned()),
        }
    }
}

fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.chars()
        .filter(|it| !it.is_control())
        .take(80)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Result<Vec<Row>, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("messages");
        std::fs::write(&path, text).unwrap();
        let mut messages = Messages::open(&path).unwrap();
        messages.read(&mut |_, _, _| ())?;
        messages.finish()
    }

    const ROW: &str = r#"{"message":"row","workload":"m1","load":"idle","policy":"none","metric":"total_ms","unit":"ms","seed":1,"value":1.5}"#;

    #[test]
    fn all_rows_arrive() {
        let rows = said(&format!(
            "{ROW}\n{ROW}\n{{\"message\":\"done\",\"rows\":2}}\n"
        ))
        .unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].value, 1.5);
    }

    #[test]
    fn a_lost_line_is_seen() {
        let error = said(&format!("{ROW}\n{{\"message\":\"done\",\"rows\":2}}\n")).unwrap_err();
        assert_eq!(error, "it sent 2 figures and 1 arrived");
    }

    #[test]
    fn a_guest_that_just_ends_has_no_result() {
        assert!(
            said(&format!("{ROW}\n"))
                .unwrap_err()
                .contains("before its runs were done")
        );
        assert!(said("").unwrap_err().contains("before its runs were done"));
    }

    #[test]
    fn a_damaged_line_is_shown() {
        assert!(
            said("{\"message\":\"ro\u{7}w\n")
                .unwrap_err()
                .contains("{\"message\":\"row")
        );
        assert!(
            said("{\"message\":\"done\",")
                .unwrap_err()
                .contains("cut short")
        );
    }

    #[test]
    fn the_guests_own_reason_is_the_reason() {
        let text = "{\"message\":\"failed\",\"reason\":\"mke2fs failed\"}\n";
        assert_eq!(said(text).unwrap_err(), "mke2fs failed");
    }
}
