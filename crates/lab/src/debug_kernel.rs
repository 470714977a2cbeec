//! Kernels for their checks: small, built from Debian's kernel sources. `debug` has
//! every check that finds a module's mistakes (`kernel/debug.config`), but the search for data
//! races, which does not go with them and is `kcsan`'s (`kernel/kcsan.config`).

use crate::debian::Apt;
use crate::{Error, tool};
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

const SOURCE_PACKAGE: &str = "linux-source-6.12";

const DEBUG_CONFIG: &str = include_str!("../../../kernel/debug.config");
const KCSAN_CONFIG: &str = include_str!("../../../kernel/kcsan.config");

/// Suffix of the releases of all debug kernels (CONFIG_LOCALVERSION).
const RELEASE_MARK: &str = "-frontrow-";

/// And of the one that looks for data races.
const KCSAN_MARK: &str = "-frontrow-kcsan";

/// A kernel that is built for its checks.
pub struct Flavour {
    /// On the command line.
    pub name: &'static str,
    /// Configurations on top of `make tinyconfig`; later ones override earlier ones.
    configs: &'static [&'static str],
    /// Variables of `make` for the kernel, but not for external modules.
    variables: &'static [&'static str],
}

/// All of them.
pub const FLAVOURS: [Flavour; 2] = [
    Flavour {
        name: "debug",
        configs: &[DEBUG_CONFIG],
        variables: &[],
    },
    Flavour {
        name: "kcsan",
        configs: &[DEBUG_CONFIG, KCSAN_CONFIG],
        // The kernel itself is full of races, some of them meant.
        variables: &["KCSAN_SANITIZE=n"],
    },
];

/// Whether a kernel of this release checks each access to memory and each lock.
pub fn is_slow(release: &str) -> bool {
    release.contains(RELEASE_MARK)
}

/// Whether a kernel of this release looks for data races.
pub fn looks_for_races(release: &str) -> bool {
    release.ends_with(KCSAN_MARK)
}

/// Files of the built sources to keep, by directory.
const KEPT: [(&str, &[&str]); 3] = [
    (
        "",
        &[
            ".config",
            "Makefile",
            "Module.symvers",
            "arch",
            "include",
            "scripts",
            "tools",
            "vmlinux",
        ],
    ),
    ("arch", &["x86"]),
    ("tools", &["objtool"]),
];

/// Packages for building a kernel, besides those for modules.
const TOOLS: [(&str, &str); 4] = [
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("pahole", "dwarves"),
];

impl Flavour {
    /// Hash of the configuration.
    pub fn version(&self) -> String {
        let mut digest = Sha256::new();
        for part in self.configs.iter().chain(self.variables) {
            digest.update(part);
        }
        let digest = digest.finalize();
        digest[..4]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// Builds it into `root`, laid out as an unpacked kernel is. That takes about a
    /// quarter of an hour on two cores and 3 GB, of which most is removed again.
    pub fn build(&self, apt: &Apt, root: &Path) -> Result<(), Error> {
        for (name, package) in TOOLS {
            tool::version(name, package)?;
        }
        let source = source(apt, root)?;
        let make = |arguments: &[&str]| make(&source, &[self.variables, arguments].concat());
        make(&["tinyconfig"])?;
        // One after another: of two in one run, make merges either first.
        for (index, config) in self.configs.iter().enumerate() {
            let name = format!("frontrow-{index}.config");
            let path = source.join("kernel/configs").join(&name);
            fs::write(&path, config).map_err(Error::file(&path))?;
            make(&[&name])?;
        }
        let jobs = thread::available_parallelism().map_or(1, Into::into);
        make(&[&format!("-j{jobs}"), "bzImage", "modules"])?;
        make(&[
            "modules_install",
            "INSTALL_MOD_STRIP=1",
            &format!("INSTALL_MOD_PATH={}", root.display()),
        ])?;
        install(root, &source)?;
        keep_headers(&source)
    }
}

/// The sources, unpacked where the headers of an unpacked kernel are looked for.
fn source(apt: &Apt, root: &Path) -> Result<PathBuf, Error> {
    apt.unpack(&[SOURCE_PACKAGE.to_owned()], root)?;
    let packed = root
        .join("usr/src")
        .join(format!("{SOURCE_PACKAGE}.tar.xz"));
    let source = root.join("source");
    fs::create_dir(&source).map_err(Error::file(&source))?;
    tool::output(
        Command::new("tar")
            .args(["--strip-components=1", "-xf"])
            .arg(&packed)
            .arg("-C")
            .arg(&source),
        "tar",
    )?;
    let unpacked = root.join("usr");
    fs::remove_dir_all(&unpacked).map_err(Error::file(&unpacked))?;
    Ok(source)
}

fn make(source: &Path, arguments: &[&str]) -> Result<(), Error> {
    tool::output(
        Command::new("make")
            .arg("-s")
            .arg("-C")
            .arg(source)
            .args(arguments)
            .env_remove("MAKEFLAGS")
            .env_remove("MAKELEVEL")
            .env("KBUILD_BUILD_TIMESTAMP", "1970-01-01")
            .env("KBUILD_BUILD_USER", "frontrow")
            .env("KBUILD_BUILD_HOST", "frontrow"),
        "make",
    )
    .map(drop)
}

/// The image beside the modules, and the way from these to the headers.
fn install(root: &Path, source: &Path) -> Result<(), Error> {
    let release = source.join("include/config/kernel.release");
    let release = fs::read_to_string(&release).map_err(Error::file(&release))?;
    let release = release.trim();
    let boot = root.join("boot");
    fs::create_dir_all(&boot).map_err(Error::file(&boot))?;
    let image = source.join("arch/x86/boot/bzImage");
    fs::copy(&image, boot.join(format!("vmlinuz-{release}"))).map_err(Error::file(&image))?;
    let link = root.join("lib/modules").join(release).join("build");
    // The installation made one, to a place that is not to last.
    fs::remove_file(&link).map_err(Error::file(&link))?;
    symlink("../../../source", &link).map_err(Error::file(&link))
}

/// All but what modules are built with goes, which is nine tenths.
fn keep_headers(source: &Path) -> Result<(), Error> {
    tool::output(
        Command::new("strip")
            .arg("--strip-debug")
            .arg(source.join("vmlinux")),
        "binutils",
    )?;
    for (dir, names) in KEPT {
        keep_only(&source.join(dir), names)?;
    }
    Ok(())
}

fn keep_only(dir: &Path, names: &[&str]) -> Result<(), Error> {
    for entry in fs::read_dir(dir).map_err(Error::file(dir))? {
        let entry = entry.map_err(Error::file(dir))?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(Error::file(dir))?);
        if names.iter().any(|name| *name == entry.file_name()) {
            continue;
        }
        match kind.is_dir() {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        }
        .map_err(Error::file(&path))?;
    }
    Ok(())
}
