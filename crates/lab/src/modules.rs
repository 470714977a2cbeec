//! The kernel's own modules: finding, unpacking, and what has to be loaded
//! before what.

use crate::Error;
use crate::elf;
use crate::kernel::Kernel;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A module's name as the kernel has it: the file's name without endings, with
/// `_` for `-`.
pub fn name_of(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.split(".ko").next().unwrap_or(file);
    stem.replace('-', "_")
}

/// All modules of a kernel that are files.
pub struct Modules<'a> {
    kernel: &'a Kernel,
    paths: BTreeMap<String, PathBuf>,
}

impl<'a> Modules<'a> {
    /// Looks through the kernel's module directory.
    pub fn of(kernel: &'a Kernel) -> Result<Modules<'a>, Error> {
        let mut paths = BTreeMap::new();
        collect(&kernel.modules.join("kernel"), &mut paths)?;
        Ok(Modules { kernel, paths })
    }

    /// Whether the kernel has it, as a file or built in.
    pub fn has(&self, name: &str) -> Result<bool, Error> {
        let name = name.replace('-', "_");
        Ok(self.paths.contains_key(&name) || self.kernel.has_built_in(&name)?)
    }

    /// `name` and all it depends on, in loading order, as name and content;
    /// nothing for what is built in.
    pub fn with_dependencies(&self, name: &str) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let mut ordered = Vec::new();
        self.add(&name.replace('-', "_"), &mut ordered)?;
        Ok(ordered)
    }

    /// What a module of others depends on, likewise.
    pub fn needed_by(&self, module: &[u8]) -> Result<Vec<(String, Vec<u8>)>, Error> {
        let mut ordered = Vec::new();
        for needed in dependencies(module) {
            self.add(&needed, &mut ordered)?;
        }
        Ok(ordered)
    }

    /// The kernel that they are of.
    pub fn kernel(&self) -> &Kernel {
        self.kernel
    }

    fn add(&self, name: &str, ordered: &mut Vec<(String, Vec<u8>)>) -> Result<(), Error> {
        if ordered.iter().any(|(known, _)| known == name) || self.kernel.has_built_in(name)? {
            return Ok(());
        }
        let path = self.paths.get(name).ok_or_else(|| {
            Error::Kernel(format!(
                "kernel {} has no module {name}: use a kernel that has it",
                self.kernel.release()
            ))
        })?;
        let content = read(path)?;
        for needed in dependencies(&content) {
            self.add(&needed, ordered)?;
        }
        for wished in soft_dependencies(&content) {
            // A checksum's name stands for all that compute it; the portable one is always there.
            let portable = format!("{}_generic", wished.trim_start_matches("crypto_"));
            let names = [portable, wished];
            if let Some(name) = names.iter().find(|it| self.paths.contains_key(*it)) {
                self.add(name, ordered)?;
            }
        }
        ordered.push((name.to_owned(), content));
        Ok(())
    }
}

fn collect(dir: &Path, paths: &mut BTreeMap<String, PathBuf>) -> Result<(), Error> {
    for entry in fs::read_dir(dir).map_err(Error::file(dir))? {
        let path = entry.map_err(Error::file(dir))?.path();
        if path.is_dir() {
            collect(&path, paths)?;
            continue;
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        if file.ends_with(".ko") || file.ends_with(".ko.xz") {
            paths.insert(name_of(&file), path);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let packed = fs::read(path).map_err(Error::file(path))?;
    if path.extension().is_none_or(|it| it != "xz") {
        return Ok(packed);
    }
    let mut content = Vec::new();
    liblzma::read::XzDecoder::new_multi_decoder(packed.as_slice())
        .read_to_end(&mut content)
        .map_err(Error::file(path))?;
    Ok(content)
}

/// Modules that a module depends on, as by `modinfo -F depends`; packages have no `modules.dep`.
fn dependencies(module: &[u8]) -> Vec<String> {
    let entries = information(module, "depends=");
    let names = entries.iter().flat_map(|it| it.split(','));
    let names = names.filter(|name| !name.is_empty());
    names.map(|name| name.replace('-', "_")).collect()
}

/// What is to be loaded before it if it is there, as by `modinfo -F softdep`: a module asks for it by
/// an alias, and a guest has nobody to answer.
fn soft_dependencies(module: &[u8]) -> Vec<String> {
    let entries = information(module, "softdep=pre: ");
    let before = entries
        .iter()
        .map(|it| it.split(" post:").next().unwrap_or(it));
    let names = before.flat_map(str::split_whitespace);
    names.map(|name| name.replace('-', "_")).collect()
}

/// What a module says of itself after `key`, of each time that it does.
pub(crate) fn information(module: &[u8], key: &str) -> Vec<String> {
    let section = elf::section(module, ".modinfo").unwrap_or_default();
    let entries = section.split(|byte| *byte == 0);
    let values = entries.filter_map(|entry| entry.strip_prefix(key.as_bytes()));
    let text = values.map(|value| String::from_utf8_lossy(value).into_owned());
    text.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_kernels() {
        assert_eq!(name_of("kernel/block/kyber-iosched.ko.xz"), "kyber_iosched");
        assert_eq!(name_of("kernel/block/mq-deadline.ko"), "mq_deadline");
        assert_eq!(name_of("bfq"), "bfq");
    }
}
