//! Processes that answer for FUSE file systems.

use super::Mounted;
use crate::observe::Party;
use crate::task::numbers;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Node by which a server talks to the kernel.
const NODE: &str = "/dev/fuse";

/// A process with the node open.
struct Server {
    party: Party,
    /// Minor numbers of its file systems, if the kernel says (since 6.14).
    minors: Vec<String>,
}

/// Names the server of each FUSE mount: by the kernel's word, by the name that is in the file system's
/// type, or as there is only one of each.
pub(super) fn find(root: &Path, mounts: &mut [Mounted]) {
    let is_fuse = |it: &Mounted| it.filesystem.starts_with("fuse");
    let of_fuse = mounts.iter().filter(|it| is_fuse(it)).count();
    if of_fuse == 0 {
        return;
    }
    let servers = servers(root);
    for mount in mounts.iter_mut().filter(|it| is_fuse(it)) {
        let kind = mount.filesystem.split_once('.').map(|it| it.1);
        let minor = mount.number.split_once(':').map_or("", |it| it.1);
        let said = servers
            .values()
            .find(|it| it.minors.iter().any(|it| it == minor));
        let named = || {
            servers
                .values()
                .find(|it| Some(it.party.name.as_str()) == kind)
        };
        let only = || servers.values().next().filter(|_| servers.len() == 1);
        let server = said.or_else(named).or_else(only);
        mount.server = server.map(|it| it.party.clone());
    }
}

fn servers(root: &Path) -> BTreeMap<u32, Server> {
    let processes = numbers(&root.join("proc")).into_iter();
    let found = processes.filter_map(|process| {
        let at = root.join(format!("proc/{process}"));
        let mut minors = Vec::new();
        let mut is_server = false;
        for entry in fs::read_dir(at.join("fd")).ok()?.flatten() {
            if fs::read_link(entry.path()).is_ok_and(|it| it == Path::new(NODE)) {
                is_server = true;
                let text = fs::read_to_string(at.join("fdinfo").join(entry.file_name()));
                minors.extend(connection(&text.unwrap_or_default()));
            }
        }
        let name = fs::read_to_string(at.join("comm")).ok()?;
        let party = Party {
            process,
            name: name.trim_end().to_owned(),
            kernel: false,
        };
        is_server.then_some((process, Server { party, minors }))
    });
    found.collect()
}

/// Minor number in the line of `fuse_connection:`.
fn connection(text: &str) -> Option<String> {
    let line = text
        .lines()
        .find_map(|it| it.strip_prefix("fuse_connection:"));
    line.map(|it| it.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_found_by_its_open_node_and_its_name() {
        let root = tempfile::tempdir().unwrap();
        for (process, name) in [(7, "sshfs"), (8, "mergerfs"), (9, "cat")] {
            let at = root.path().join(format!("proc/{process}"));
            fs::create_dir_all(at.join("fd")).unwrap();
            fs::write(at.join("comm"), format!("{name}\n")).unwrap();
            let node = if name == "cat" { "/dev/null" } else { NODE };
            std::os::unix::fs::symlink(node, at.join("fd/3")).unwrap();
        }
        let mount = |kind: &str| Mounted {
            filesystem: kind.to_owned(),
            number: "0:42".to_owned(),
            ..Mounted::default()
        };
        let mut mounts = [mount("fuse.mergerfs"), mount("ext4"), mount("fuse.other")];
        find(root.path(), &mut mounts);
        let served = |it: &Mounted| it.server.as_ref().map(|it| it.process);
        assert_eq!(mounts.each_ref().map(served), [Some(8), None, None]);
        assert_eq!(connection("pos:\t0\nfuse_connection:\t42\n").unwrap(), "42");
    }
}
