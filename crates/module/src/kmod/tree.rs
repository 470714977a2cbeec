//! A kernel as module builds see it.

use crate::kmod::Error;
use std::fs;
use std::path::{Path, PathBuf};
use sys::arch::Arch;

/// A kernel to build modules against.
#[derive(Clone, Debug)]
pub struct Tree {
    /// As `uname -r` prints it.
    pub release: String,
    /// The directory that `make -C` is given.
    pub headers: PathBuf,
    /// A file that is or holds the kernel's BTF type information: raw BTF, an ELF
    /// file or a bootable image (`crate::abi::generate` reads all three).
    pub btf: PathBuf,
    /// A directory of programs to build with, before those on the PATH; none to build with
    /// the host's alone.
    pub tools: Option<PathBuf>,
    /// Architecture, from the kernel's configuration.
    pub arch: Arch,
}

/// Known parts of a kernel; the rest is searched for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// As `uname -r` prints it; else that of the headers, else that of the running kernel.
    pub release: Option<String>,
    /// Directory of the headers [default: `lib/modules/RELEASE/build`].
    pub headers: Option<PathBuf>,
    /// File with BTF [default: that of the running kernel if it is this one, then of the headers,
    /// then the image in `boot`].
    pub btf: Option<PathBuf>,
}

impl Wanted {
    /// The kernel's release, in the file system at `root`.
    pub fn release(&self, root: &Path) -> Result<String, Error> {
        if let Some(release) = &self.release {
            return Ok(release.clone());
        }
        let path = match &self.headers {
            Some(headers) => headers.join("include/generated/utsrelease.h"),
            None => root.join("proc/sys/kernel/osrelease"),
        };
        let text = fs::read_to_string(&path).map_err(Error::file(&path))?;
        // The header has it in quotes: #define UTS_RELEASE "6.1.0-18-amd64"
        let release = text.split('"').nth(1).unwrap_or(&text);
        Ok(release.trim().to_owned())
    }

    /// A file that is or holds the kernel's BTF; its headers need not be there.
    pub fn btf(&self, root: &Path) -> Result<PathBuf, Error> {
        if let Some(btf) = &self.btf {
            return Ok(btf.clone());
        }
        let release = self.release(root)?;
        let headers = self.headers_of(root, &release);
        btf_of(root, &release, &headers).ok_or(Error::NoBtf { release })
    }

    /// Directory of its headers; None for a bare BTF file.
    pub fn headers(&self, root: &Path) -> Option<PathBuf> {
        if self.btf.is_some() && self.headers.is_none() && self.release.is_none() {
            return None;
        }
        let release = self.release(root).ok()?;
        Some(self.headers_of(root, &release))
    }

    fn headers_of(&self, root: &Path, release: &str) -> PathBuf {
        match &self.headers {
            Some(headers) => headers.clone(),
            None => root.join("lib/modules").join(release).join("build"),
        }
    }
}

impl Tree {
    /// The kernel that `wanted` describes, in the file system at `root`.
    pub fn find(root: &Path, wanted: &Wanted) -> Result<Tree, Error> {
        let release = wanted.release(root)?;
        let headers = wanted.headers_of(root, &release);
        if !headers.join("Makefile").is_file() {
            return Err(Error::NoHeaders {
                release,
                path: headers,
            });
        }
        let btf = wanted.btf(root)?;
        Ok(Tree {
            arch: arch_of(&headers),
            release,
            headers,
            btf,
            tools: None,
        })
    }
}

/// This program's where the headers do not tell.
fn arch_of(headers: &Path) -> Arch {
    let config = fs::read_to_string(headers.join("include/config/auto.conf")).unwrap_or_default();
    let is_for = |arch: &Arch| config.lines().any(|line| line == arch.config);
    sys::arch::ALL
        .into_iter()
        .find(is_for)
        .unwrap_or(sys::arch::NATIVE)
}

fn btf_of(root: &Path, release: &str, headers: &Path) -> Option<PathBuf> {
    let running = root.join("proc/sys/kernel/osrelease");
    let is_running = fs::read_to_string(running).is_ok_and(|it| it.trim() == release);
    let places = [
        is_running.then(|| root.join("sys/kernel/btf/vmlinux")),
        Some(headers.join("vmlinux")),
        Some(root.join(format!("boot/vmlinuz-{release}"))),
    ];
    places.into_iter().flatten().find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn system() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("proc/sys/kernel/osrelease", "6.1.0-1\n"),
            ("sys/kernel/btf/vmlinux", ""),
            ("boot/vmlinuz-6.1.0-1", ""),
            ("boot/vmlinuz-6.12.0-2", ""),
            ("lib/modules/6.1.0-1/build/Makefile", ""),
            ("headers/Makefile", ""),
            (
                "headers/include/generated/utsrelease.h",
                "#define UTS_RELEASE \"6.12.0-2\"\n",
            ),
        ] {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    #[test]
    fn the_running_kernel_is_found_unless_another_is_wanted() {
        let root = system();
        let tree = Tree::find(root.path(), &Wanted::default()).unwrap();
        assert_eq!(tree.release, "6.1.0-1");
        assert_eq!(tree.headers, root.path().join("lib/modules/6.1.0-1/build"));
        assert_eq!(tree.btf, root.path().join("sys/kernel/btf/vmlinux"));

        let headers = Some(root.path().join("headers"));
        let wanted = Wanted {
            headers,
            ..Wanted::default()
        };
        let tree = Tree::find(root.path(), &wanted).unwrap();
        assert_eq!(tree.release, "6.12.0-2");
        assert_eq!(tree.btf, root.path().join("boot/vmlinuz-6.12.0-2"));
    }

    #[test]
    fn the_btf_of_the_headers_goes_before_that_of_the_image() {
        let root = system();
        fs::write(root.path().join("headers/vmlinux"), "").unwrap();
        let wanted = Wanted {
            headers: Some(root.path().join("headers")),
            ..Wanted::default()
        };
        assert_eq!(
            wanted.btf(root.path()).unwrap(),
            root.path().join("headers/vmlinux")
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let root = system();
        let wanted = |release: &str| Wanted {
            release: Some(release.to_owned()),
            ..Wanted::default()
        };
        let error = Tree::find(root.path(), &wanted("6.12.0-2")).unwrap_err();
        assert!(matches!(error, Error::NoHeaders { .. }), "{error}");
        let error = wanted("5.10").btf(root.path()).unwrap_err();
        assert!(error.to_string().contains("5.10 has no BTF"), "{error}");
    }
}
