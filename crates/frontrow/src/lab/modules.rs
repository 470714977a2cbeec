//! Arguments that name modules of other schedulers.

use crate::exit::{Exit, Failure};
use record::Policy;
use std::path::PathBuf;

#[derive(clap::Args)]
pub struct Modules {
    /// Module of another scheduler, which --policy names as the module registers it: a .ko file, or
    /// a directory of sources that is built for the kernel
    #[arg(long = "module", value_name = "PATH")]
    paths: Vec<PathBuf>,
}

impl Modules {
    /// The policy with this name, whose scheduler may be in one of the modules.
    pub fn policy(&self, name: &str) -> Result<Policy, Failure> {
        Policy::with_modules(name, &self.paths).map_err(|error| Failure::new(Exit::Usage, error))
    }

    /// Refuses modules of which no policy has the scheduler.
    pub fn refuse_unused(&self, policies: &[Policy]) -> Result<(), Failure> {
        let is_used = policies.iter().any(|it| !it.modules().is_empty());
        if self.paths.is_empty() || is_used {
            return Ok(());
        }
        Err(Failure::new(
            Exit::Usage,
            "no policy is a scheduler of --module: name it with --policy as the module registers it, \
             and differently from the kernel's own",
        ))
    }
}
