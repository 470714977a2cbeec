//! Programs of Debian 12's for the guest, with the libraries they need, from
//! packages and not from the host, so that every host makes the same image.

use crate::cache::Cache;
use crate::cpio::Archive;
use crate::debian::{Apt, BOOKWORM};
use crate::{Error, elf};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use sys::arch::Arch;

/// Program and the package it comes from.
const PROGRAMS: [(&str, &str); 23] = [
    ("mke2fs", "e2fsprogs"),
    ("e2fsck", "e2fsprogs"),
    ("e2image", "e2fsprogs"),
    ("dumpe2fs", "e2fsprogs"),
    ("debugfs", "e2fsprogs"),
    ("e4defrag", "e2fsprogs"),
    ("mkfs.xfs", "xfsprogs"),
    ("mkfs.btrfs", "btrfs-progs"),
    ("mkfs.f2fs", "f2fs-tools"),
    ("mksquashfs", "squashfs-tools"),
    ("bwrap", "bubblewrap"),
    ("busybox", "busybox-static"),
    ("fio", "fio"),
    ("dmsetup", "dmsetup"),
    ("blktrace", "blktrace"),
    ("blkparse", "blktrace"),
    ("strace", "strace"),
    ("perf", "linux-perf"),
    ("python3.11", "python3.11"),
    ("setfattr", "attr"),
    ("setpriv", "util-linux"),
    ("sqlite3", "sqlite3"),
    ("java", "openjdk-17-jre-headless"),
];

/// Directories that a program needs besides its libraries.
const TREES: [(&str, &str); 3] = [
    ("python3.11", "usr/lib/python3.11"),
    ("java", "usr/lib/jvm/java-17-openjdk-{arch}/lib"),
    ("java", "usr/lib/jvm/java-17-openjdk-{arch}/conf"),
];

/// Libraries that a program needs without naming them: files in its tree do, or the C library when
/// a thread ends.
const UNNAMED_LIBRARIES: [(&str, &[&str]); 2] = [
    ("java", &["libstdc++.so.6"]),
    ("mksquashfs", &["libgcc_s.so.1"]),
];

/// Program directories of packages.
const PLACES: [&str; 5] = [
    "bin",
    "sbin",
    "usr/bin",
    "usr/sbin",
    "usr/lib/jvm/java-17-openjdk-{arch}/bin",
];

/// Puts `programs` for `arch` and their libraries into `archive`; gives the packages with
/// their versions.
pub fn add(
    cache: &Cache,
    archive: &mut Archive,
    arch: Arch,
    programs: &[&str],
) -> Result<Vec<String>, Error> {
    let mut versions = Vec::new();
    for program in programs {
        let package = package_of(program)?;
        let root = unpacked(cache, arch, package)?;
        let list = root.join("packages");
        let list = fs::read_to_string(&list).map_err(Error::file(&list))?;
        let own = list
            .lines()
            .find(|line| line.split(' ').next() == Some(package));
        versions.extend(own.map(str::to_owned));
        add_program(archive, arch, program, &root)?;
        for (_, tree) in TREES.iter().filter(|(name, _)| name == program) {
            add_tree(archive, &root, Path::new(&arch.in_name(tree)))?;
        }
    }
    versions.sort();
    versions.dedup();
    Ok(versions)
}

fn package_of(program: &str) -> Result<&'static str, Error> {
    let known = PROGRAMS.iter().find(|(name, _)| *name == program);
    known.map(|(_, package)| *package).ok_or_else(|| {
        let names: Vec<_> = PROGRAMS.iter().map(|(name, _)| *name).collect();
        Error::Usage(format!(
            "the lab has no program '{program}': it can give guests {}",
            names.join(", ")
        ))
    })
}

fn unpacked(cache: &Cache, arch: Arch, package: &str) -> Result<PathBuf, Error> {
    cache.directory(&format!("tools{}/{package}", arch.suffix), |dir| {
        let apt = Apt::of(cache, BOOKWORM, arch)?;
        let versions = apt.unpack(&apt.with_libraries(package)?, dir)?;
        let list = dir.join("packages");
        fs::write(&list, versions.join("\n") + "\n").map_err(Error::file(&list))
    })
}

fn add_program(archive: &mut Archive, arch: Arch, program: &str, root: &Path) -> Result<(), Error> {
    let path = PLACES
        .iter()
        .map(|dir| root.join(arch.in_name(dir)).join(program))
        .find(|path| path.is_file())
        .ok_or_else(|| incomplete(root, program))?;
    let content = fs::read(&path).map_err(Error::file(&path))?;
    let mut libraries = BTreeMap::new();
    index(root, root, &mut libraries)?;
    let mut missing = elf::needed(&content);
    for (_, names) in UNNAMED_LIBRARIES
        .iter()
        .filter(|(name, _)| *name == program)
    {
        missing.extend(names.iter().map(|&name| name.to_owned()));
    }
    if let Some(loader) = elf::interpreter(&content) {
        let loader = loader.trim_start_matches('/').to_owned();
        let name = loader.rsplit('/').next().unwrap_or(&loader).to_owned();
        archive.program(&loader, library(&libraries, root, &name)?);
    }
    archive.program(&format!("bin/{program}"), content);
    let directory = arch.libraries.trim_start_matches('/');
    let mut added = Vec::new();
    while let Some(name) = missing.pop() {
        if added.contains(&name) {
            continue;
        }
        let content = library(&libraries, root, &name)?;
        missing.extend(elf::needed(&content));
        archive.program(&format!("{directory}/{name}"), content);
        added.push(name);
    }
    Ok(())
}

/// All files below `tree`, which is a directory in `root`, in an order of their own. Where a
/// package has a link to a file that it configures, the file itself is there.
fn add_tree(archive: &mut Archive, root: &Path, tree: &Path) -> Result<(), Error> {
    let dir = root.join(tree);
    let mut names = Vec::new();
    for entry in fs::read_dir(&dir).map_err(Error::file(&dir))? {
        names.push(entry.map_err(Error::file(&dir))?.file_name());
    }
    names.sort();
    for name in names {
        let (place, path) = (tree.join(&name), dir.join(&name));
        let kind = fs::symlink_metadata(&path).map_err(Error::file(&path))?;
        let path = match kind.is_symlink() {
            true => target(root, &path)?,
            false => path,
        };
        if kind.is_dir() {
            add_tree(archive, root, &place)?;
        } else if path.is_file() {
            let content = fs::read(&path).map_err(Error::file(&path))?;
            archive.data(&place.to_string_lossy(), content);
        }
    }
    Ok(())
}

/// Target of a link within the unpacked packages; an absolute target would lead out of them.
fn target(root: &Path, link: &Path) -> Result<PathBuf, Error> {
    let target = fs::read_link(link).map_err(Error::file(link))?;
    Ok(match target.strip_prefix("/") {
        Ok(inside) => root.join(inside),
        Err(_) => link.parent().unwrap_or(root).join(&target),
    })
}

fn library(known: &BTreeMap<String, PathBuf>, root: &Path, name: &str) -> Result<Vec<u8>, Error> {
    let path = known.get(name).ok_or_else(|| incomplete(root, name))?;
    fs::read(path).map_err(Error::file(path))
}

fn incomplete(root: &Path, name: &str) -> Error {
    Error::Package {
        package: root
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        reason: format!(
            "{name} is not in it or in the packages it depends on; delete {}",
            root.display()
        ),
    }
}

/// Shared libraries by file name, of those below `dir` in the unpacked packages at `root`. Absolute
/// links lead to what is in the packages: the host's own loader may be of another version.
fn index(root: &Path, dir: &Path, found: &mut BTreeMap<String, PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(dir).map_err(Error::file(dir))? {
        let entry = entry.map_err(Error::file(dir))?;
        let kind = entry.file_type().map_err(Error::file(entry.path()))?;
        if kind.is_dir() {
            index(root, &entry.path(), found)?;
            continue;
        }
        let path = match kind.is_symlink() {
            true => target(root, &entry.path())?,
            false => entry.path(),
        };
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.contains(".so") && path.is_file() {
            found.insert(name, path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_packages_absolute_link_leads_to_its_own_file_and_not_to_the_hosts() {
        let root = tempfile::tempdir().unwrap();
        for dir in ["lib", "lib64"] {
            fs::create_dir(root.path().join(dir)).unwrap();
        }
        fs::write(root.path().join("lib/loader.so.2"), "the package's").unwrap();
        let host = tempfile::NamedTempFile::with_suffix(".so.2").unwrap();
        symlink("/lib/loader.so.2", root.path().join("lib64/loader.so.1")).unwrap();
        symlink(host.path(), root.path().join("lib64/host.so.1")).unwrap();
        let mut found = BTreeMap::new();
        index(root.path(), root.path(), &mut found).unwrap();
        let own = library(&found, root.path(), "loader.so.1").unwrap();
        assert_eq!(own, b"the package's");
        assert!(library(&found, root.path(), "host.so.1").is_err());
    }
}
