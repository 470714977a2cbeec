//! A newcomer's first command in a Debian that has nothing yet, as a user with sudo. `make stress` runs
//! this, as root or with sudo: each release takes a gigabyte from the network and builds all.

use std::process::Command;

use crate::new_debian::Debian;

const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// What a minimal system lacks that `git clone` and `make` came with, and the user.
const BEFORE: &str = "apt-get -qq update
    apt-get -qq -y --no-install-recommends install make ca-certificates sudo
    useradd --create-home newcomer
    echo 'newcomer ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/newcomer
    chown -R newcomer /src";

/// In the end the demo compares its figures with README's.
const DEMO: &str = "su newcomer -c 'make -C /src demo' | tee /tmp/demo
    grep '^frontrow: faster than every stock scheduler in' /tmp/demo
    grep '^Beside the figures in README: ' /tmp/demo";

fn shows_itself_on(release: &str) {
    let debian = Debian::new(release);
    let scratch = tempfile::tempdir().unwrap();
    let checkout = scratch.path().join("checkout");
    let mut clone = Command::new("git");
    clone.args(["clone", "--quiet", "--depth=1"]);
    clone.arg(format!("file://{CHECKOUT}")).arg(&checkout);
    assert!(clone.status().unwrap().success());
    debian.copy_in(&checkout, "src");
    debian.run(&format!("{BEFORE}\n{DEMO}"));
}

#[test]
#[ignore = "a gigabyte from the network, and everything built: make stress-machines"]
fn a_new_debian_12_builds_and_shows_it() {
    shows_itself_on("bookworm");
}

#[test]
#[ignore = "a gigabyte from the network, and everything built: make stress-machines"]
fn a_new_debian_13_builds_and_shows_it() {
    shows_itself_on("trixie");
}
