//! A kernel as module builds see it.

use crate::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// A kernel to build modules against.
#[derive(Clone, Debug)]
pub struct Tree {
    /// As `uname -r` prints it.
    pub release: String,
    /// The directory that `make -C` is given.
    pub headers: PathBuf,
    /// A file that is or holds the kernel's BTF type information: raw BTF, an ELF
    /// file or a bootable image (`abi::generate` reads all three).
    pub btf: PathBuf,
}

impl Tree {
    /// The kernel `release` of the file system at `root`: headers as
    /// `lib/modules/RELEASE/build` names them, BTF from the running kernel if it
    /// is this one, else from the headers, else from the image in `boot`.
    pub fn installed(root: &Path, release: &str) -> Result<Tree, Error> {
        let headers = root.join("lib/modules").join(release).join("build");
        if !headers.join("Makefile").is_file() {
            return Err(Error::NoHeaders {
                release: release.to_owned(),
                path: headers,
            });
        }
        let found = btf_of(root, release, &headers).ok_or_else(|| Error::NoBtf {
            release: release.to_owned(),
        })?;
        Ok(Tree {
            release: release.to_owned(),
            headers,
            btf: found,
        })
    }

    /// The running kernel.
    pub fn running() -> Result<Tree, Error> {
        let path = "/proc/sys/kernel/osrelease";
        let release = fs::read_to_string(path).map_err(Error::file(path))?;
        Tree::installed(Path::new("/"), release.trim())
    }
}

fn btf_of(root: &Path, release: &str, headers: &Path) -> Option<PathBuf> {
    let running = Path::new("/sys/kernel/btf/vmlinux");
    let is_running = root == Path::new("/")
        && fs::read_to_string("/proc/sys/kernel/osrelease").is_ok_and(|it| it.trim() == release);
    if is_running && running.is_file() {
        return Some(running.to_owned());
    }
    let elf = headers.join("vmlinux");
    if elf.is_file() {
        return Some(elf);
    }
    let image = root.join(format!("boot/vmlinuz-{release}"));
    image.is_file().then_some(image)
}
