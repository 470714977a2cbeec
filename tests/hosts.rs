//! A newcomer's first commands in a Debian that has nothing yet. `make stress` runs this, as
//! root or with sudo: each release takes half a gigabyte from the network and builds all.

use std::process::Command;

mod new_debian;

use new_debian::Debian;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What a minimal system lacks that `git clone` and `make` came with.
const BEFORE: &str =
    "apt-get -qq update && apt-get -qq -y --no-install-recommends install make ca-certificates";

const COMMANDS: &str = "make -C /src setup && make -C /src build && \
     /src/target/x86_64-unknown-linux-gnu/release/frontrow-lab list";

fn builds_on(release: &str) {
    let debian = Debian::new(release);
    let scratch = tempfile::tempdir().unwrap();
    let checkout = scratch.path().join("checkout");
    let mut clone = Command::new("git");
    clone.args(["clone", "--quiet", "--depth=1"]);
    clone.arg(format!("file://{CHECKOUT}")).arg(&checkout);
    assert!(clone.status().unwrap().success());
    debian.copy_in(&checkout, "src");
    debian.run(&format!("{BEFORE} && {COMMANDS}"));
}

#[test]
fn a_new_debian_12_builds_it() {
    builds_on("bookworm");
}

#[test]
fn a_new_debian_13_builds_it() {
    builds_on("trixie");
}
