//! Building the module for a kernel.

use crate::kmod::{Source, Tree, Wanted};
use crate::sched::Error;
use std::fs;
use std::path::{Path, PathBuf};
use sys::PathError;

/// The header that the module's sources include.
pub const HEADER: &str = "frontrow_abi.h";

// `FILES`: the names and contents of the module's sources.
include!(concat!(env!("OUT_DIR"), "/iosched.rs"));

/// The module's sources, which this program carries so that it can build them anywhere.
pub fn source() -> Source {
    let source = Source {
        name: "frontrow_iosched".to_owned(),
        ..Source::default()
    };
    FILES.iter().fold(source, |source, (name, content)| {
        source.with(name, *content)
    })
}

/// The text of `frontrow_abi.h` for the kernel whose BTF is in the file `btf`, and whose
/// headers, if they are there, say what it exports.
///
/// # Errors
/// [`Error::File`], or [`Error::Abi`] for a kernel that is not supported.
pub fn header(btf: &Path, headers: Option<&Path>) -> Result<String, Error> {
    let kernel = fs::read(btf).map_err(PathError::of("access", btf))?;
    // Without this file no module can be built, and kbuild says so.
    let symvers = headers.and_then(|dir| fs::read_to_string(dir.join("Module.symvers")).ok());
    let exports = symvers.as_deref().map(crate::abi::Exports::parse);
    crate::abi::generate(&kernel, exports.as_ref()).map_err(|source| Error::Abi {
        path: btf.to_owned(),
        source,
    })
}

/// Checks that a file of types that the user gave is of the running kernel, if it is for that one.
///
/// # Errors
/// [`Error::File`], or [`Error::Abi`] if it is of another.
pub fn check(root: &Path, wanted: &Wanted) -> Result<(), Error> {
    let Some(btf) = &wanted.btf else {
        return Ok(());
    };
    let read = |path: &Path| fs::read(path).map_err(PathError::of("access", path));
    let running = root.join("proc/sys/kernel/osrelease");
    let running = fs::read_to_string(&running).map_err(PathError::of("access", &running))?;
    if wanted.release(root)? != running.trim() {
        return Ok(());
    }
    let symbols = read(&root.join("proc/kallsyms"))?;
    let symbols = String::from_utf8_lossy(&symbols);
    crate::abi::check_running(&read(btf)?, &symbols).map_err(|source| Error::Abi {
        path: btf.clone(),
        source,
    })
}

/// Builds the module from `source` for the kernel of `tree` in the directory `out`, and gives
/// the path of the `.ko`.
///
/// # Errors
/// As [`header`] and [`crate::kmod::build`].
pub fn build(tree: &Tree, source: Source, out: &Path) -> Result<PathBuf, Error> {
    let source = source.with(HEADER, header(&tree.btf, Some(&tree.headers))?);
    Ok(crate::kmod::build(tree, &source, out)?)
}
