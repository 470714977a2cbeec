//! Packages that an app's files come in: none, a Flatpak's sandbox, a Snap's image, a container's
//! layer.

use crate::Error;
use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How an app's files come to its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Package {
    /// Files of the file system under test.
    Files,
    /// The same files, bound into the namespace that bubblewrap makes for a Flatpak.
    Flatpak,
    /// A squashfs image that is mounted through a loop device, as a Snap is. It names its packer.
    Snap(&'static str),
    /// The lower layer of an overlayfs, as in a container.
    Overlay,
}

/// The app's files in their package, until they are dropped.
pub(crate) struct Unpacked {
    /// Directory of the files.
    pub(crate) root: PathBuf,
    /// Words before the app's own command.
    pub(crate) wrapper: Vec<String>,
    mounted: Option<PathBuf>,
}

/// Directory to which all that the guest sees is bound for bubblewrap: it can move its root only
/// where the old one is a mount, which a RAM disk of the kernel's is not.
const OUTSIDE: &str = "/outside";

/// Place of the app in its namespace.
const INSIDE: &str = "/app";

impl Package {
    /// Debian's programs that a guest needs for it.
    pub(crate) fn programs(self) -> &'static [&'static str] {
        match self {
            Package::Files | Package::Overlay => &[],
            Package::Flatpak => &["busybox", "bwrap"],
            Package::Snap(_) => &["busybox", "mksquashfs"],
        }
    }

    /// Modules of the kernel that a guest needs for it.
    pub(crate) fn modules(self) -> &'static [&'static str] {
        match self {
            Package::Files | Package::Flatpak => &[],
            Package::Snap(_) => &["loop", "squashfs"],
            Package::Overlay => &["overlay"],
        }
    }

    /// Directory below `directory` for the files before they are packed.
    pub(crate) fn source(self, directory: &Path) -> PathBuf {
        match self {
            Package::Files | Package::Flatpak => directory.to_owned(),
            Package::Snap(_) | Package::Overlay => directory.join("files"),
        }
    }

    /// Packs the files in [`Package::source`], and makes them seen by apps.
    pub(crate) fn pack(self, directory: &Path) -> Result<Unpacked, Error> {
        let source = self.source(directory);
        let mounted = directory.join("app");
        match self {
            Package::Files => Ok(Unpacked {
                root: source,
                wrapper: Vec::new(),
                mounted: None,
            }),
            Package::Flatpak => sandbox(source),
            Package::Snap(packer) => {
                let image = directory.join("app.img");
                make_directory(&mounted)?;
                let words = [
                    "-comp",
                    packer,
                    "-no-progress",
                    "-quiet",
                    "-processors",
                    "1",
                ];
                let words = words.map(OsStr::new);
                let places = [source.as_os_str(), image.as_os_str()];
                run("/bin/mksquashfs", &[&places[..], &words[..]].concat())?;
                fs::remove_dir_all(&source).map_err(|it| Error::io("remove", &source, it))?;
                let words = ["mount", "-o", "loop,ro", "-t", "squashfs"].map(OsStr::new);
                let places = [image.as_os_str(), mounted.as_os_str()];
                run("/bin/busybox", &[&words[..], &places[..]].concat())?;
                Ok(Unpacked::at(mounted))
            }
            Package::Overlay => {
                let (upper, work) = (directory.join("upper"), directory.join("work"));
                for made in [&mounted, &upper, &work] {
                    make_directory(made)?;
                }
                let options = format!(
                    "lowerdir={},upperdir={},workdir={}",
                    source.display(),
                    upper.display(),
                    work.display()
                );
                mount(Path::new("overlay"), &mounted, "overlay", 0, &options)?;
                Ok(Unpacked::at(mounted))
            }
        }
    }
}

impl Unpacked {
    fn at(mounted: PathBuf) -> Unpacked {
        Unpacked {
            root: mounted.clone(),
            wrapper: Vec::new(),
            mounted: Some(mounted),
        }
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        // What stays mounted makes the guest fail, as the file system below cannot be unmounted.
        if let Some(path) = self.mounted.as_deref().and_then(|it| text(it).ok()) {
            // SAFETY: a path that ends in a zero byte.
            unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
        }
    }
}

fn sandbox(source: PathBuf) -> Result<Unpacked, Error> {
    let outside = Path::new(OUTSIDE);
    make_directory(outside)?;
    mount(
        Path::new("/"),
        outside,
        "",
        libc::MS_BIND | libc::MS_REC,
        "",
    )?;
    let source_text = source.display().to_string();
    let words = [
        "/bin/busybox",
        "chroot",
        OUTSIDE,
        "/bin/bwrap",
        "--dev-bind",
        "/",
        "/",
        "--ro-bind",
        &source_text,
        INSIDE,
        "--unshare-pid",
        "--unshare-ipc",
        "--chdir",
        &source_text,
        "--",
    ];
    Ok(Unpacked {
        wrapper: words.map(str::to_owned).to_vec(),
        root: PathBuf::from(INSIDE),
        mounted: Some(outside.to_owned()),
    })
}

fn make_directory(path: &Path) -> Result<(), Error> {
    fs::create_dir_all(path).map_err(|source| Error::io("make", path, source))
}

fn text(path: &Path) -> Result<CString, Error> {
    CString::new(path.as_os_str().as_bytes()).map_err(|error| Error::io("name", path, error.into()))
}

fn mount(
    source: &Path,
    place: &Path,
    kind: &str,
    flags: libc::c_ulong,
    options: &str,
) -> Result<(), Error> {
    let (from, to) = (text(source)?, text(place)?);
    let (kind, options) = (text(Path::new(kind))?, text(Path::new(options))?);
    // SAFETY: texts that end in a zero byte, and live until the call returns.
    let status = unsafe {
        libc::mount(
            from.as_ptr(),
            to.as_ptr(),
            kind.as_ptr(),
            flags,
            options.as_ptr().cast(),
        )
    };
    match status {
        0 => Ok(()),
        _ => Err(Error::io("mount", place, std::io::Error::last_os_error())),
    }
}

fn run(program: &str, words: &[&OsStr]) -> Result<(), Error> {
    let path = Path::new(program);
    let done = Command::new(path)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::io("start", path, source))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(Error::Program {
            path: path.to_owned(),
            reason: String::from_utf8_lossy(done.stderr.trim_ascii()).into_owned(),
        }),
    }
}
