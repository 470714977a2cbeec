//! What is remembered of disks until the machine goes down, as JSON in `/run/frontrow`.

use crate::sched::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use sys::knobs::Home;
use sys::{PathError, durable};

/// The state called `name`; the default if there is none, or if it is of another version.
pub(crate) fn read<T: DeserializeOwned + Default>(root: &Path, name: &str) -> Result<T, Error> {
    let path = path(root, name);
    let text = durable::read(&path).map_err(PathError::of("access", &path))?;
    Ok(text
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default())
}

/// Lets `work` change the state called `name`, beside nobody else.
pub(crate) fn change<T, R>(
    root: &Path,
    name: &str,
    work: impl FnOnce(&mut T) -> Result<R, Error>,
) -> Result<R, Error>
where
    T: Serialize + DeserializeOwned + Default + PartialEq + Clone,
{
    let path = path(root, name);
    let failed = PathError::of("access", &path);
    Home::Tools.make(root).map_err(&failed)?;
    let _alone = durable::lock(&path.with_extension("lock")).map_err(&failed)?;
    let before: T = read(root, name)?;
    let mut state = before.clone();
    let done = work(&mut state)?;
    if state != before {
        let text = serde_json::to_vec(&state).map_err(|error| failed(error.into()))?;
        durable::write(&path, &text).map_err(&failed)?;
    }
    Ok(done)
}

/// Forgets the state called `name`.
pub(crate) fn forget(root: &Path, name: &str) -> Result<(), Error> {
    let path = path(root, name);
    Ok(durable::remove(&path).map_err(PathError::of("access", &path))?)
}

fn path(root: &Path, name: &str) -> PathBuf {
    Home::Tools.directory(root).join(format!("{name}.json"))
}
