//! FastTrack in a guest: the workload in front, the load behind, each in a cgroup of its own.

use super::{Outcome, write};
use foreground::{Cgroup, Grounds, Parts};
use record::policy::FastTrack;
use std::fs;
use std::path::{Path, PathBuf};

const HIERARCHY: &str = "/sys/fs/cgroup";

/// The grounds while they are held. The guest's own process is in front.
pub struct Held {
    front: PathBuf,
    behind: PathBuf,
}

impl Held {
    /// `None` for a policy without any of FastTrack's parts in the guest: there the kernel
    /// is as it boots.
    pub fn of_policy(policy: &str) -> Outcome<Option<Self>> {
        let Some(parts) = FastTrack::of(policy) else {
            return Ok(None);
        };
        let parts = Parts {
            allocator: parts.allocator,
            reclaimer: parts.reclaimer,
            dispatcher: parts.dispatcher,
        };
        match parts.allocator || parts.reclaimer || parts.dispatcher {
            true => Self::hold(parts).map(Some),
            false => Ok(None),
        }
    }

    fn hold(parts: Parts) -> Outcome<Self> {
        let in_hierarchy = |name: &str| Path::new(HIERARCHY).join(name);
        write(
            &format!("{HIERARCHY}/cgroup.subtree_control"),
            "+memory +io",
        )?;
        let held = Held {
            front: in_hierarchy("front"),
            behind: in_hierarchy("behind"),
        };
        for path in [&held.front, &held.behind] {
            fs::create_dir(path)
                .map_err(|error| format!("it cannot make {}: {error}", path.display()))?;
        }
        move_self(&held.front)?;
        let grounds = Grounds {
            front: vec![cgroup(&held.front)?],
            behind: vec![cgroup(&held.behind)?],
        };
        foreground::hold(Path::new("/"), &grounds, parts).map_err(|error| error.to_string())?;
        Ok(held)
    }

    /// Where the load belongs.
    pub fn behind(&self) -> &Path {
        &self.behind
    }

    /// Leaves the guest as it was. The load is gone by now.
    pub fn release(self) -> Outcome<()> {
        foreground::release(Path::new("/")).map_err(|error| error.to_string())?;
        move_self(Path::new(HIERARCHY))?;
        for path in [&self.front, &self.behind] {
            fs::remove_dir(path)
                .map_err(|error| format!("it cannot remove {}: {error}", path.display()))?;
        }
        Ok(())
    }
}

fn move_self(cgroup: &Path) -> Outcome<()> {
    write(&cgroup.join("cgroup.procs").to_string_lossy(), "0")
}

fn cgroup(path: &Path) -> Outcome<Cgroup> {
    Cgroup::resolve(Path::new("/"), &path.to_string_lossy()).map_err(|error| error.to_string())
}
