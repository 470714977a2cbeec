//! A Debian that has nothing yet, in a directory. Takes root or sudo, and the network.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The directory; it is removed with this.
pub struct Debian {
    scratch: tempfile::TempDir,
}

pub fn as_root(program: &str) -> Command {
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

/// The mirror that this machine's apt takes an archive of Debian's from.
fn mirror(label: &str) -> String {
    let output = Command::new("apt-get")
        .args(["indextargets", "--format", "$(LABEL)|$(REPO_URI)"])
        .args(["Created-By: Packages", "Origin: Debian"])
        .output()
        .unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let mut archives = lines.lines().filter_map(|it| it.split_once('|'));
    let of_label = archives.find(|(each, _)| *each == label);
    let (_, mirror) = of_label.unwrap_or_else(|| panic!("apt has no archive {label}"));
    mirror.to_owned()
}

impl Debian {
    /// With the network as this machine has it, and whom it trusts there.
    pub fn new(release: &str) -> Self {
        let debian = Debian {
            scratch: tempfile::tempdir_in("/var/tmp").unwrap(),
        };
        let mut make_root = as_root("debootstrap");
        make_root.args(["--variant=minbase", release]);
        let main = mirror("Debian");
        succeeds(make_root.arg(debian.root()).arg(&main));
        debian.take_updates(release, &main);
        for path in ["/etc/resolv.conf", "/usr/local/share/ca-certificates"] {
            if Path::new(path).exists() {
                debian.copy_in(Path::new(path), &path[1..]);
            }
        }
        debian
    }

    /// The archives that Debian's installer names.
    fn take_updates(&self, release: &str, main: &str) {
        let security = mirror("Debian-Security");
        let sources = format!(
            "deb {main} {release} main\ndeb {main} {release}-updates main\n\
             deb {security} {release}-security main\n"
        );
        let written = self.scratch.path().join("sources.list");
        std::fs::write(&written, sources).unwrap();
        self.copy_in(&written, "etc/apt/sources.list");
    }

    pub fn root(&self) -> PathBuf {
        self.scratch.path().join("root")
    }

    /// A file or directory of this machine, to a path below the root.
    pub fn copy_in(&self, from: &Path, to: &str) {
        let into = self.root().join(to);
        succeeds(as_root("cp").arg("-rLT").arg(from).arg(into));
    }

    /// The other way; it is this user's then.
    #[allow(dead_code, reason = "not each test takes something out")]
    pub fn copy_out(&self, from: &str, to: &Path) {
        let owner = rustix::process::geteuid().as_raw().to_string();
        let mut install = as_root("install");
        install.args(["-m", "644", "-o", &owner]);
        succeeds(install.arg(self.root().join(from)).arg(to));
    }

    /// All of it as a disk with an ext4 file system, of six gigabytes.
    #[allow(dead_code, reason = "not each test boots it")]
    pub fn image(&self, to: &Path) {
        let mut make = as_root("mke2fs");
        make.args(["-q", "-t", "ext4", "-d"]).arg(self.root());
        succeeds(make.arg(to).arg("6G"));
        let owner = rustix::process::geteuid().as_raw().to_string();
        succeeds(as_root("chown").arg(owner).arg(to));
    }

    /// Runs a script as root there, with no more of this machine's environment than the kernel.
    pub fn run(&self, script: &str) {
        let mut inside = as_root("unshare");
        inside.args(["--mount", "chroot"]).arg(self.root());
        inside.args(["/usr/bin/env", "-i", "HOME=/root"]);
        inside.args([
            "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
            "DEBIAN_FRONTEND=noninteractive",
        ]);
        let script = format!("mount -t proc proc /proc && {script}");
        succeeds(inside.args(["sh", "-ec", &script]));
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        // It is root's, so the directory itself cannot remove it.
        let status = as_root("rm").arg("-rf").arg(self.root()).status();
        if !status.is_ok_and(|it| it.success()) {
            eprintln!("{} is still there", self.root().display());
        }
    }
}
