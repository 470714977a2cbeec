//! The kernels that guests boot.

use crate::cache::Cache;
use crate::{Error, debian, debug_kernel};
use kmod::{Tree, Wanted};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Name on the command line and the Debian 12 package that depends on the
/// newest kernel of the series.
const DEBIAN_KERNELS: [(&str, &str); 2] = [
    ("6.12", "linux-image-6.12-cloud-amd64"),
    ("6.1", "linux-image-cloud-amd64"),
];

/// Name on the command line of the kernel that is built for its checks.
const DEBUG: &str = "debug";

/// Written beside an unpacked kernel: its packages with their versions.
const PACKAGES_FILE: &str = "packages";

/// A kernel to boot, with its modules and its headers.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The bootable image.
    pub image: PathBuf,
    /// The directory of the modules, `lib/modules/RELEASE`.
    pub modules: PathBuf,
    /// Release, headers and type information.
    pub tree: Tree,
    /// What identifies the kernel in a result: the packages with their
    /// versions, or just the release when it did not come from packages.
    pub identity: String,
}

impl Kernel {
    /// `6.12`, `6.1`, `debug`, or a path: an unpacked tree with `boot/vmlinuz-RELEASE`,
    /// `lib/modules/RELEASE` and the headers at `lib/modules/RELEASE/build`, or
    /// the image in such a tree.
    pub fn find(cache: &Cache, name: &str) -> Result<Kernel, Error> {
        if let Some((name, package)) = DEBIAN_KERNELS.iter().find(|(it, _)| *it == name) {
            let root = cache.directory(&format!("kernels/{name}"), |dir| unpack(package, dir))?;
            return Kernel::of_tree(&root);
        }
        if name == DEBUG {
            let name = format!("{DEBUG}-{}", debug_kernel::version());
            let root = cache.directory(&format!("kernels/{name}"), debug_kernel::build)?;
            cache.keep_latest("kernels", &format!("{DEBUG}-"), 1)?;
            return Kernel::of_tree(&root);
        }
        let path = Path::new(name);
        if path.is_dir() {
            return Kernel::of_tree(path);
        }
        if path.is_file() {
            return Kernel::of_image(path);
        }
        Err(Error::Usage(format!(
            "there is no kernel '{name}': give 6.12, 6.1, debug, or the path of an unpacked kernel or of a vmlinuz"
        )))
    }

    fn of_tree(root: &Path) -> Result<Kernel, Error> {
        let boot = root.join("boot");
        // A tree that cannot be read has no kernel in it either.
        let entries = fs::read_dir(&boot).into_iter().flatten();
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
        let images: Vec<_> = names
            .filter(|name| name.to_string_lossy().starts_with("vmlinuz-"))
            .map(|name| boot.join(name))
            .collect();
        match images.as_slice() {
            [image] => Kernel::of_image(image),
            [] => Err(Error::Kernel(format!(
                "{} has no boot/vmlinuz-RELEASE: give a tree with one kernel in it",
                root.display()
            ))),
            _ => Err(Error::Kernel(format!(
                "{} has several kernels: give the path of one boot/vmlinuz-RELEASE",
                root.display()
            ))),
        }
    }

    fn of_image(image: &Path) -> Result<Kernel, Error> {
        let image = fs::canonicalize(image).map_err(Error::file(image))?;
        let release = image
            .file_name()
            .and_then(|name| name.to_str()?.strip_prefix("vmlinuz-"))
            .ok_or_else(|| {
                Error::Kernel(format!(
                    "{} is not called vmlinuz-RELEASE, so its modules cannot be found: rename it",
                    image.display()
                ))
            })?
            .to_owned();
        let root = image
            .parent()
            .and_then(Path::parent)
            .unwrap_or(Path::new("/"));
        let modules = root.join("lib/modules").join(&release);
        if !modules.join("kernel").is_dir() {
            return Err(Error::Kernel(format!(
                "the modules of {} are not at {}: unpack them there",
                image.display(),
                modules.display()
            )));
        }
        let packages = fs::read_to_string(root.join(PACKAGES_FILE)).unwrap_or_default();
        let identity = packages
            .lines()
            .find(|line| line.starts_with("linux-image"));
        let wanted = Wanted {
            release: Some(release.clone()),
            ..Wanted::default()
        };
        Ok(Kernel {
            tree: Tree::find(root, &wanted)?,
            identity: identity.unwrap_or(&release).to_owned(),
            image,
            modules,
        })
    }

    /// The release, as `uname -r` prints it.
    pub fn release(&self) -> &str {
        &self.tree.release
    }

    /// Whether the kernel has the module `name` built in.
    pub fn has_built_in(&self, name: &str) -> Result<bool, Error> {
        let path = self.modules.join("modules.builtin");
        let list = fs::read_to_string(&path).map_err(Error::file(&path))?;
        Ok(list
            .lines()
            .any(|line| crate::modules::name_of(line) == name))
    }
}

/// The image, its headers and what those need, of the kernel that `metapackage`
/// stands for.
fn unpack(metapackage: &str, root: &Path) -> Result<(), Error> {
    let image = one_of(
        debian::dependencies(metapackage)?,
        metapackage,
        "linux-image-",
    )?;
    let release = image["linux-image-".len()..].to_owned();
    let headers = format!("linux-headers-{release}");
    let needed = debian::dependencies(&headers)?;
    let common = one_of(needed.clone(), &headers, "linux-headers-")?;
    let kbuild = one_of(needed, &headers, "linux-kbuild-")?;
    let versions = debian::unpack(&[image, headers, common, kbuild], root)?;
    make_relocatable(root, &release)?;
    let path = root.join(PACKAGES_FILE);
    fs::write(&path, versions.join("\n") + "\n").map_err(Error::file(&path))
}

fn one_of(names: Vec<String>, package: &str, prefix: &str) -> Result<String, Error> {
    names
        .into_iter()
        .find(|name| name.starts_with(prefix))
        .ok_or_else(|| Error::Package {
            package: package.to_owned(),
            reason: format!("it depends on no {prefix} package"),
        })
}

/// The header packages expect to be at `/usr/src`: a symlink and the makefile
/// that includes the common headers' one. Both are made relative.
fn make_relocatable(root: &Path, release: &str) -> Result<(), Error> {
    let modules = root.join("lib/modules").join(release);
    for name in ["build", "source"] {
        let link = modules.join(name);
        let target = fs::read_link(&link).map_err(Error::file(&link))?;
        let inside = target.strip_prefix("/").unwrap_or(&target);
        fs::remove_file(&link).map_err(Error::file(&link))?;
        symlink(Path::new("../../..").join(inside), &link).map_err(Error::file(&link))?;
    }
    let makefile = modules.join("build/Makefile");
    let text = fs::read_to_string(&makefile).map_err(Error::file(&makefile))?;
    fs::write(&makefile, relative_includes(&text)).map_err(Error::file(&makefile))
}

fn relative_includes(makefile: &str) -> String {
    makefile.replace(
        "include /usr/src/",
        "include $(dir $(lastword $(MAKEFILE_LIST)))../",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_headers_makefile_finds_its_neighbour_wherever_it_is() {
        assert_eq!(
            relative_includes("include /usr/src/linux-headers-6.1.0-56-common/Makefile\n"),
            "include $(dir $(lastword $(MAKEFILE_LIST)))../linux-headers-6.1.0-56-common/Makefile\n"
        );
    }

    #[test]
    fn what_is_no_kernel_is_refused_with_the_choices() {
        let cache = Cache::at("/nonexistent".into());
        let error = Kernel::find(&cache, "7.77").unwrap_err().to_string();
        assert!(error.contains("6.12, 6.1"), "{error}");
        let empty = tempfile::tempdir().unwrap();
        fs::create_dir(empty.path().join("boot")).unwrap();
        let error = Kernel::find(&cache, empty.path().to_str().unwrap()).unwrap_err();
        assert!(
            error.to_string().contains("boot/vmlinuz-RELEASE"),
            "{error}"
        );
    }
}
