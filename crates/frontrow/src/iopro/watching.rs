//! Once the programs are in the kernel, the file is open and the command runs, `record` gives up rights.

use crate::exit::Failure;
use iopro::capture::{What, kept};
use sys::confine::{Confinement, Programs};

/// Confines the process at the recording's first progress.
pub struct Watching {
    needs: Option<Confinement>,
    failed: Option<Failure>,
}

impl Watching {
    /// For a recording of `what`.
    pub fn of(what: &What) -> Watching {
        let needs = Confinement::of_watcher()
            .with_programs(Programs::Loaded)
            .keeping(kept(what));
        let needs = match what {
            What::Command(_) => needs.with_signals(),
            What::System(_) | What::Process(_) | What::Cgroup(_) => needs,
        };
        Watching {
            needs: Some(needs),
            failed: None,
        }
    }

    /// To be called at each progress. Returns whether to go on.
    pub fn go_on(&mut self) -> bool {
        if let Some(needs) = self.needs.take()
            && let Err(error) = needs.begin()
        {
            self.failed = Some(error.into());
        }
        self.failed.is_none()
    }

    /// Why the recording was not to go on.
    pub fn end(self) -> Result<(), Failure> {
        self.failed.map_or(Ok(()), Err)
    }
}
