//! A Debian release's programs, made to run on a host that is another release, with
//! libraries of their own.
//!
//! A kernel's headers bring programs (`objtool`, `modpost`) that want the C library of
//! their release, and flags that only its compiler knows. A QEMU emulates disks that older ones
//! do not have.

use crate::cache::Cache;
use crate::debian::{self, Apt, Release};
use crate::{Error, elf, tool};
use module::kmod::Tree;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use sys::arch::Arch;

/// Suffix of the program that a wrapper starts.
const PROGRAM: &str = ".program";

/// The dynamic loader of all releases.
const LOADER: &str = sys::arch::NATIVE.loader;

/// Library directories of packages, before and since Debian 13.
const LIBRARIES: [&str; 2] = ["lib", "usr/lib"];

/// A directory of programs with the compiler `name`, such as `gcc-14`, of what is for `arch`, and
/// its binutils; None where the host's own are the same.
pub fn compiler(
    cache: &Cache,
    release: Release,
    name: &str,
    arch: Arch,
) -> Result<Option<PathBuf>, Error> {
    if debian::host_is(release) {
        return Ok(None);
    }
    let package = match arch == sys::arch::NATIVE {
        true => name.to_owned(),
        false => format!("{name}-{}", arch.gnu.replace('_', "-")),
    };
    let place = format!("{package}-{}", release.codename);
    let root = unpacked(cache, &place, release, &package, |root| {
        name_compiler(root, &arch.cross_prefix(), name)
    })?;
    Ok(Some(root.join("usr/bin")))
}

/// The QEMU of `release` that emulates `arch`, as the directory that it is unpacked into.
pub fn qemu(cache: &Cache, release: Release, arch: Arch) -> Result<PathBuf, Error> {
    let package = arch.machine.package;
    let place = format!("{package}-{}", release.suite);
    unpacked(cache, &place, release, package, |_| Ok(()))
}

/// `package` of `release` and all it needs, with programs that run here; `finish` adds to a new one.
fn unpacked(
    cache: &Cache,
    place: &str,
    release: Release,
    package: &str,
    finish: impl FnOnce(&Path) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    let place = format!("tools{}/{place}", sys::arch::NATIVE.suffix);
    cache.directory(&place, |root| {
        let apt = Apt::of(cache, release, sys::arch::NATIVE)?;
        apt.unpack(&apt.with_all(package)?, root)?;
        wrap(root, root)?;
        finish(root)
    })
}

/// Results name the compiler, and other packages call it, without the version.
fn name_compiler(root: &Path, prefix: &str, name: &str) -> Result<(), Error> {
    let link = root.join(format!("usr/bin/{prefix}gcc"));
    symlink(format!("{prefix}{name}"), &link).map_err(Error::file(&link))
}

/// The version of the compiler for modules of `tree`, in the same words wherever it is from.
pub fn compiler_version(tree: &Tree) -> Result<String, Error> {
    let name = format!("{}gcc", tree.arch.cross_prefix());
    let program = match &tree.tools {
        Some(tools) => tools.join(&name),
        None => PathBuf::from(&name),
    };
    let text = tool::output(
        Command::new(program).arg("--version"),
        tree.arch.compiler_package(),
    )?;
    let first = text.lines().next().unwrap_or_default().trim();
    let version = first.split_once(' ').map_or(first, |(_, rest)| rest);
    Ok(format!("gcc {version}"))
}

/// Puts a script into the place of each program below `dir`, that starts it with the loader
/// and the libraries in `root`.
pub fn wrap(root: &Path, dir: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(dir).map_err(Error::file(dir))? {
        let entry = entry.map_err(Error::file(dir))?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(Error::file(dir))?);
        if kind.is_dir() {
            wrap(root, &path)?;
        } else if kind.is_file() && is_program(&path)? {
            wrap_program(root, &path)?;
        }
    }
    Ok(())
}

/// Libraries may ask for a loader, too, but are not executable or have their name in it.
fn is_program(path: &Path) -> Result<bool, Error> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mode = fs::metadata(path)
        .map_err(Error::file(path))?
        .permissions()
        .mode();
    if mode & 0o111 == 0 || name.contains(".so") {
        return Ok(false);
    }
    let content = fs::read(path).map_err(Error::file(path))?;
    Ok(elf::interpreter(&content).is_some())
}

/// Programs look for their parts beside themselves, so the wrapped one is told the script's
/// name, with links followed.
fn wrap_program(root: &Path, path: &Path) -> Result<(), Error> {
    let inside = path.strip_prefix(root).unwrap_or(path).display();
    let places = LIBRARIES.map(|dir| format!("{dir}/{}", sys::arch::NATIVE.gnu));
    let libraries = places.clone().map(|dir| format!("$root/{dir}")).join(":");
    let loader = places
        .iter()
        .map(|dir| format!("{dir}/{LOADER}"))
        .find(|loader| root.join(loader).is_file())
        .ok_or_else(|| Error::Package {
            package: "libc6".to_owned(),
            reason: format!("{LOADER} is not in it"),
        })?;
    let script = format!(
        "#!/bin/sh\n\
         here=$(readlink -f \"$0\")\n\
         root=${{here%/{inside}}}\n\
         exec \"$root/{loader}\" --library-path \"{libraries}\" --argv0 \"$here\" \"$here{PROGRAM}\" \"$@\"\n"
    );
    let mut program = path.as_os_str().to_owned();
    program.push(PROGRAM);
    fs::rename(path, &program).map_err(Error::file(path))?;
    fs::write(path, script).map_err(Error::file(path))?;
    fs::set_permissions(path, Permissions::from_mode(0o755)).map_err(Error::file(path))
}
