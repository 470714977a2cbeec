//! SQLite: the tables as they are.

use super::{Error, cannot_write};
use crate::store::Store;
use std::path::{Path, PathBuf};

/// A database beside the output, which gets its name when it is whole.
pub fn store(output: &Path) -> Result<Store, Error> {
    let partial = partial(output);
    match std::fs::remove_file(&partial) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(cannot_write(&partial)(error));
        }
        _ => {}
    }
    Ok(Store::create(&partial)?)
}

/// Gives the database its name.
pub fn write(store: Store, output: &Path) -> Result<(), Error> {
    store.close()?;
    std::fs::rename(partial(output), output).map_err(cannot_write(output))
}

fn partial(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}
