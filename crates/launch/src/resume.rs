//! Loading for an app that runs and gets the focus again: the pages of its profile that were evicted
//! while it was in the background.
//!
//! The paper names this use and leaves it for future work (paper "003", section III). The app waits for
//! no part and goes on meanwhile, so all missing pages are one plan. Its files are open, so their
//! metadata are in memory.

use crate::image::Images;
use crate::latency::Latency;
use crate::load::Error;
use crate::prepare::{prepare, send_all};
use crate::profile::Profile;
use crate::unpack::Unpackers;
use crate::working_set::WorkingSet;

/// Pages of a profile, and what was read of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Pages of the files that are as recorded.
    pub valid_pages: u64,
    /// Pages of these that were not in memory.
    pub missing_pages: u64,
    /// Bytes of padding that were read with them.
    pub padding_bytes: u64,
    /// Loading stopped because memory got short.
    pub stopped: bool,
}

/// Loads the missing pages and waits until they are in memory. `latency` gives a device's table by its
/// name.
///
/// # Errors
/// [`Error`]; the app reads itself what was not loaded.
pub fn resume(
    profile: &Profile,
    latency: impl Fn(&str) -> Option<Latency>,
) -> Result<Resumed, Error> {
    let files = Images::of(profile).steps(profile).concat();
    let set = WorkingSet::open_and_begin(&files);
    let mut resumed = Resumed {
        valid_pages: set.valid_pages(),
        missing_pages: set.begun_pages + set.missing_pages(),
        ..Resumed::default()
    };
    let places = set.places();
    let plans = prepare(places.devices, latency);
    let sent = send_all(&set, &plans)?;
    if !places.packed.is_empty() {
        let unpackers = Unpackers::start();
        unpackers.read(places.packed);
        unpackers.finish();
    }
    for reads in sent {
        let outcome = reads.finish()?;
        resumed.padding_bytes += outcome.padding_bytes;
        resumed.stopped |= outcome.stopped;
    }
    Ok(resumed)
}
