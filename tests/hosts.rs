//! A newcomer's first commands in a Debian that has nothing yet. `make stress` runs this, as
//! root or with sudo: each release takes half a gigabyte from the network and builds all.

use std::path::Path;
use std::process::{Command, Stdio};

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What a minimal system lacks that `git clone` and `make` came with.
const BEFORE: &str = "mount -t proc proc /proc && apt-get -qq update && \
     DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install make ca-certificates";

const COMMANDS: &str = "make -C /src setup && make -C /src build && \
     /src/target/x86_64-unknown-linux-gnu/release/frontrow lab list";

fn as_root(program: &str) -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.arg(program);
    command
}

fn succeeds(command: &mut Command) {
    let status = command.stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?}: {status}");
}

/// The mirror that this machine's apt takes Debian from.
fn mirror() -> String {
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", "$(LABEL) $(REPO_URI)"])
        .args(["Created-By: Packages", "Origin: Debian"])
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let mirror = lines.lines().find_map(|it| it.strip_prefix("Debian "));
    mirror.expect("apt has no archive of Debian's").to_owned()
}

fn builds_on(release: &str) {
    let scratch = tempfile::tempdir_in("/var/tmp").unwrap();
    let root = scratch.path().join("root");
    let mut make_root = as_root("debootstrap");
    succeeds(
        make_root
            .arg("--variant=minbase")
            .arg(release)
            .arg(&root)
            .arg(mirror()),
    );
    let checkout = scratch.path().join("checkout.tar");
    let mut archive = Command::new("git");
    archive
        .args(["archive", "--prefix=src/", "HEAD", "-o"])
        .arg(&checkout);
    succeeds(archive.current_dir(CHECKOUT));
    succeeds(
        as_root("tar")
            .arg("-xf")
            .arg(&checkout)
            .arg("-C")
            .arg(&root),
    );
    // The network as this machine has it, and whom it trusts there.
    for path in ["/etc/resolv.conf", "/usr/local/share/ca-certificates"] {
        if Path::new(path).exists() {
            let into = root.join(&path[1..]);
            succeeds(as_root("cp").args(["-rLT", path]).arg(into));
        }
    }
    let script = format!("{BEFORE} && {COMMANDS}");
    let mut build = as_root("unshare");
    build.args(["--mount", "chroot"]).arg(&root);
    build.args([
        "/usr/bin/env",
        "-i",
        "HOME=/root",
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    ]);
    let outcome = build
        .args(["sh", "-c", &script])
        .stdin(Stdio::null())
        .status();
    // It is root's.
    succeeds(as_root("rm").arg("-rf").arg(&root));
    assert!(outcome.unwrap().success(), "it does not build on {release}");
}

#[test]
fn a_new_debian_12_builds_it() {
    builds_on("bookworm");
}

#[test]
fn a_new_debian_13_builds_it() {
    builds_on("trixie");
}
