//! dm-crypt, and where it writes what it has encrypted.

use crate::device::{Device, Error};
use crate::programs;
use std::path::Path;

/// Option of a dm-crypt table (`Documentation/admin-guide/device-mapper/dm-crypt.rst`).
const INLINE_WRITES: &str = "no_write_workqueue";

/// A dm-crypt device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encryption {
    /// Name that cryptsetup knows it by.
    pub name: String,
    /// Whether one thread submits all that is written (`dmcrypt_write`), so that a write that a task
    /// waits for is submitted after everybody's. None if its table cannot be read.
    pub has_write_thread: Option<bool>,
}

impl Device {
    /// dm-crypt's part of this device; None for any other.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn encryption(&self) -> Result<Option<Encryption>, Error> {
        let name = self.text_if_any("dm/name")?;
        let (Some("CRYPT"), Some(name)) = (self.mapper()?.as_deref(), name) else {
            return Ok(None);
        };
        Ok(Some(Encryption {
            has_write_thread: table(&name).map(|it| has_write_thread(&it)),
            name,
        }))
    }

    /// The dm-crypt devices of which a part is on this disk, directly or with others between.
    ///
    /// # Errors
    /// [`Error::Read`].
    pub fn encrypted_above(&self, root: &Path) -> Result<Vec<Encryption>, Error> {
        let is_here = |name: &String| Device::resolve(root, name).is_ok_and(|it| it == *self);
        let mut found = Vec::new();
        for device in Device::all(root)? {
            if device.below()?.iter().any(is_here) {
                found.extend(device.encryption()?);
            }
        }
        Ok(found)
    }
}

/// The device's table without its key; None if there is no dmsetup, or for a user that is not root.
fn table(name: &str) -> Option<String> {
    let output = programs::output_of("dmsetup", &["table", name]).ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}

fn has_write_thread(table: &str) -> bool {
    !table.split_whitespace().any(|it| it == INLINE_WRITES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_option_tells_who_submits_writes() {
        let table = "0 976740352 crypt aes-xts-plain64 :64:logon:cryptsetup:key 0 259:3 32768";
        assert!(has_write_thread(table));
        assert!(has_write_thread(&format!("{table} 1 no_read_workqueue")));
        let inline = format!("{table} 2 allow_discards no_write_workqueue");
        assert!(!has_write_thread(&inline));
    }
}
