//! The kernels that guests boot.

use crate::cache::{self, Cache};
use crate::debian::{Apt, BACKPORTS, BOOKWORM, Release, TRIXIE, UNSTABLE};
use crate::debug_kernel::FLAVOURS;
use crate::{Error, debian, toolchain};
use module::kmod::{Tree, Wanted};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use sys::arch::Arch;

/// Source of a Debian kernel.
struct Source {
    /// On the command line.
    name: &'static str,
    release: Release,
    package: Package,
}

/// Suffix of releases for virtual machines.
const USUAL: &str = "-cloud-{arch}";

/// How the package of a kernel is chosen.
enum Package {
    /// A package that depends on the newest of its kind.
    Newest(&'static str),
    /// The newest of a series, where no package says which that is: how the releases of the
    /// series begin and end.
    Series(&'static str, &'static str),
}

const fn newest(name: &'static str, release: Release, package: &'static str) -> Source {
    let package = Package::Newest(package);
    Source {
        name,
        release,
        package,
    }
}

const fn series(name: &'static str, release: Release, begins: &'static str) -> Source {
    let package = Package::Series(begins, USUAL);
    Source {
        name,
        release,
        package,
    }
}

const DEBIAN_KERNELS: [Source; 9] = [
    newest("6.12", BOOKWORM, "linux-image-6.12-cloud-{arch}"),
    newest("6.1", BOOKWORM, "linux-image-cloud-{arch}"),
    newest("6.12-deb13", TRIXIE, "linux-image-cloud-{arch}"),
    series("7.2", BACKPORTS, "7.2."),
    series("7.3", BACKPORTS, "7.3."),
    newest("newest", BACKPORTS, "linux-image-cloud-{arch}"),
    // Of the usual one, which is for virtual machines, more is built in: file systems as well.
    newest("desktop", TRIXIE, "linux-image-{arch}"),
    newest("rt", BACKPORTS, "linux-image-rt-{arch}"),
    newest("16k", BACKPORTS, "linux-image-{arch}-16k"),
];

/// Written beside an unpacked kernel: its packages with their versions.
const PACKAGES_FILE: &str = "packages";

/// Written beside an unpacked kernel: the package of the compiler that it wants.
const COMPILER_FILE: &str = "compiler";

/// A kernel to boot, with its modules and its headers.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The bootable image.
    pub image: PathBuf,
    /// The directory of the modules, `lib/modules/RELEASE`.
    pub modules: PathBuf,
    /// Release, headers and type information.
    pub tree: Tree,
    /// Identity in results: packages with versions, or the release for a kernel without packages.
    pub identity: String,
}

impl Kernel {
    /// A name such as `6.12`, `newest` or `debug`, or a path: an unpacked tree with `boot/vmlinuz-RELEASE`,
    /// `lib/modules/RELEASE` and the headers at `lib/modules/RELEASE/build`, or
    /// the image in such a tree. Without `arch`, named kernels are x86-64; a path keeps its own.
    pub fn find(cache: &Cache, name: &str, arch: Option<Arch>) -> Result<Kernel, Error> {
        let kernel = Kernel::named(cache, name, arch.unwrap_or(sys::arch::X86_64))?;
        refuse_but(kernel.tree.arch, arch.unwrap_or(kernel.tree.arch), name)?;
        Ok(kernel)
    }

    /// Names that [`Kernel::find`] takes.
    pub fn names() -> String {
        let of_debian = DEBIAN_KERNELS.iter().map(|it| it.name);
        let built = FLAVOURS.iter().map(|it| it.name);
        of_debian.chain(built).collect::<Vec<_>>().join(", ")
    }

    fn named(cache: &Cache, name: &str, arch: Arch) -> Result<Kernel, Error> {
        if let Some(source) = DEBIAN_KERNELS.iter().find(|it| it.name == name) {
            return Kernel::of_debian(cache, source, arch);
        }
        if let Some(flavour) = FLAVOURS.iter().find(|it| it.name == name) {
            refuse_but(sys::arch::X86_64, arch, name)?;
            let place = format!("kernels/{name}-{}", flavour.version());
            let build =
                |dir: &Path| flavour.build(&Apt::of(cache, BOOKWORM, sys::arch::X86_64)?, dir);
            let root = cache.directory(&place, build)?;
            cache.keep_latest("kernels", &format!("{name}-"), 1)?;
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
            "there is no kernel '{name}': give {}, or the path of an unpacked kernel or of a vmlinuz",
            Kernel::names()
        )))
    }

    fn of_debian(cache: &Cache, source: &Source, arch: Arch) -> Result<Kernel, Error> {
        let place = format!("kernels{}/{}", arch.suffix, source.name);
        let root = cache.directory(&place, |dir| unpack(cache, source, arch, dir))?;
        let mut kernel = Kernel::of_tree(&root)?;
        let compiler = root.join(COMPILER_FILE);
        // Trees that were unpacked before there was a choice have none.
        if let Ok(package) = fs::read_to_string(&compiler) {
            let name = package.trim();
            kernel.tree.tools = toolchain::compiler(cache, source.release, name, arch)?;
        }
        Ok(kernel)
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

fn refuse_but(is: Arch, wanted: Arch, name: &str) -> Result<(), Error> {
    match is == wanted {
        true => Ok(()),
        false => Err(Error::Usage(format!(
            "the kernel {name} is for {} and not for {}: omit --arch, or give another kernel",
            is.name, wanted.name
        ))),
    }
}

/// The bootable image of one of Debian's kernels, without its modules and headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// As `uname -r` prints it.
    pub release: String,
    /// Path of the file.
    pub path: PathBuf,
}

/// The first and the last kernel of each series that Debian's archive has, oldest series
/// first; many of them have no headers any more.
pub fn images(cache: &Cache) -> Result<Vec<Image>, Error> {
    let mut images = Vec::new();
    for release in [BOOKWORM, BACKPORTS, UNSTABLE] {
        let apt = Apt::of(cache, release, sys::arch::X86_64)?;
        for kernel in first_and_last(&apt.names("linux-image-")?) {
            images.push(image(cache, &apt, &kernel)?);
        }
    }
    images.sort_by_key(|image| numbers_in(&image.release));
    images.dedup();
    Ok(images)
}

/// First and last usual release among the packages' names.
fn first_and_last(packages: &[String]) -> Vec<String> {
    let mut series: BTreeMap<Vec<u64>, Vec<&str>> = BTreeMap::new();
    for package in packages {
        let release = package.strip_prefix("linux-image-").unwrap_or(package);
        // Packages that stand for the newest of a series have two.
        let usual = sys::arch::X86_64.in_name(USUAL);
        let numbers = numbers_in(release.strip_suffix(&usual).unwrap_or_default());
        if numbers.len() > 2 {
            series
                .entry(numbers[..2].to_vec())
                .or_default()
                .push(release);
        }
    }
    let mut kernels = Vec::new();
    for releases in series.values_mut() {
        releases.sort_by_key(|release| numbers_in(release));
        releases.dedup();
        kernels.extend(releases.first().map(|it| (*it).to_owned()));
        kernels.extend(
            releases
                .get(1..)
                .and_then(<[_]>::last)
                .map(|it| (*it).to_owned()),
        );
    }
    kernels
}

fn image(cache: &Cache, apt: &Apt, release: &str) -> Result<Image, Error> {
    let root = cache.directory(&format!("images/{release}"), |root| {
        // Its own package since 6.19.
        let package = format!("linux-binary-{release}");
        let package = match apt.names(&package)?.contains(&package) {
            true => package,
            false => format!("linux-image-{release}"),
        };
        apt.unpack(&[package], root)?;
        settle(root, release)?;
        for name in ["lib", "usr"] {
            cache::remove(&root.join(name))?;
        }
        Ok(())
    })?;
    Ok(Image {
        release: release.to_owned(),
        path: root.join("boot").join(format!("vmlinuz-{release}")),
    })
}

/// The image, its headers and what those need, of the kernel for `arch` that `source` stands for.
/// What the headers have programs for is done here, so these are this machine's.
fn unpack(cache: &Cache, source: &Source, arch: Arch, root: &Path) -> Result<(), Error> {
    let apt = Apt::of(cache, source.release, arch)?;
    let apt_of_host = Apt::of(cache, source.release, sys::arch::NATIVE)?;
    let release = release(&apt, source, arch)?;
    let image = format!("linux-image-{release}");
    let headers = format!("linux-headers-{release}");
    let needed = apt.dependencies(&headers)?;
    let compiler = needed.iter().find_map(|name| compiler_named_in(name));
    let compiler = compiler.ok_or_else(|| lacks(&headers, "gcc"))?;
    let common = one_of(&needed, &headers, "linux-headers-")?;
    let kbuild = one_of(&needed, &headers, "linux-kbuild-")?;
    // Since 7.2 the image's own package is empty.
    let parts = apt.dependencies(&image)?.into_iter();
    let parts = parts.filter(|name| name.starts_with("linux-") && name.ends_with(&release));
    let mut packages = vec![image, headers, common];
    packages.extend(parts);
    let programs = match debian::host_is(source.release) {
        true => vec![kbuild.clone()],
        false => apt_of_host.with_libraries(&kbuild)?,
    };
    let mut versions = apt.unpack(&packages, root)?;
    versions.extend(apt_of_host.unpack(&programs, root)?);
    versions.sort();
    settle(root, &release)?;
    make_relocatable(root, &release)?;
    if !debian::host_is(source.release) {
        toolchain::wrap(root, &root.join("usr/lib").join(&kbuild))?;
    }
    for (name, text) in [
        (PACKAGES_FILE, versions.join("\n")),
        (COMPILER_FILE, compiler),
    ] {
        let path = root.join(name);
        fs::write(&path, text + "\n").map_err(Error::file(&path))?;
    }
    Ok(())
}

/// Release of the kernel, as `uname -r` prints it.
fn release(apt: &Apt, source: &Source, arch: Arch) -> Result<String, Error> {
    match source.package {
        Package::Newest(package) => {
            let package = arch.in_name(package);
            let image = one_of(&apt.dependencies(&package)?, &package, "linux-image-")?;
            Ok(image["linux-image-".len()..].to_owned())
        }
        Package::Series(begins, ends) => {
            let ends = arch.in_name(ends);
            let names = apt.names(&format!("linux-headers-{begins}"))?;
            let releases = names.iter().filter(|name| name.ends_with(&ends));
            let newest = releases.max_by_key(|name| numbers_in(name));
            let newest = newest.ok_or_else(|| Error::Package {
                package: format!("linux-headers-{begins}*{ends}"),
                reason: format!("{} has none any more", source.release.suite),
            })?;
            Ok(newest["linux-headers-".len()..].to_owned())
        }
    }
}

/// Releases of one series in their order.
fn numbers_in(release: &str) -> Vec<u64> {
    let ends = |arch: &Arch| release.strip_suffix(arch.debian);
    let version = sys::arch::ALL.iter().find_map(ends).unwrap_or(release);
    let numbers = version.split(|letter: char| !letter.is_ascii_digit());
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// `gcc-14` of `gcc-14-for-host` or `linux-compiler-gcc-14-x86`.
fn compiler_named_in(package: &str) -> Option<String> {
    let (_, rest) = package.split_once("gcc-")?;
    let version: String = rest.chars().take_while(char::is_ascii_digit).collect();
    (!version.is_empty()).then(|| format!("gcc-{version}"))
}

fn one_of(names: &[String], package: &str, prefix: &str) -> Result<String, Error> {
    let found = names.iter().find(|name| name.starts_with(prefix));
    found.cloned().ok_or_else(|| lacks(package, prefix))
}

fn lacks(package: &str, wanted: &str) -> Error {
    Error::Package {
        package: package.to_owned(),
        reason: format!("it depends on no {wanted} package"),
    }
}

/// Packages since Debian 13 have everything below /usr, and since 7.2 the image beside its
/// modules; this puts them where they were.
fn settle(root: &Path, release: &str) -> Result<(), Error> {
    let lib = root.join("lib");
    if !lib.exists() {
        symlink("usr/lib", &lib).map_err(Error::file(&lib))?;
    }
    let image = lib.join("modules").join(release).join("vmlinuz");
    if image.is_file() {
        let boot = root.join("boot");
        fs::create_dir_all(&boot).map_err(Error::file(&boot))?;
        fs::rename(&image, boot.join(format!("vmlinuz-{release}"))).map_err(Error::file(&image))?;
    }
    Ok(())
}

/// The header packages expect to be at `/usr/src`: a symlink and the makefile
/// that includes the common headers' one. Both are made relative.
fn make_relocatable(root: &Path, release: &str) -> Result<(), Error> {
    let modules = root.join("lib/modules").join(release);
    for name in ["build", "source"] {
        let link = modules.join(name);
        let target = fs::read_link(&link).map_err(Error::file(&link))?;
        let Ok(inside) = target.strip_prefix("/") else {
            continue;
        };
        fs::remove_file(&link).map_err(Error::file(&link))?;
        symlink(Path::new("../../..").join(inside), &link).map_err(Error::file(&link))?;
    }
    let makefile = modules.join("build/Makefile");
    let text = fs::read_to_string(&makefile).map_err(Error::file(&makefile))?;
    fs::write(&makefile, relative_includes(&text)).map_err(Error::file(&makefile))
}

fn relative_includes(makefile: &str) -> String {
    makefile
        .replace(
            "include /usr/src/",
            "include $(dir $(lastword $(MAKEFILE_LIST)))../",
        )
        .replace(
            "KBUILD_OUTPUT=/usr/src/",
            "KBUILD_OUTPUT=$(abspath $(dir $(lastword $(MAKEFILE_LIST))))/../",
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
    fn a_kernel_that_is_built_for_one_architecture_is_not_built_for_another() {
        let cache = Cache::at("/nonexistent".into());
        let error = Kernel::find(&cache, "debug", Some(sys::arch::ARM64)).unwrap_err();
        assert!(error.to_string().contains("not for arm64"), "{error}");
    }

    #[test]
    fn releases_are_in_the_order_of_their_numbers() {
        assert!(numbers_in("7.2.12+deb13-cloud-amd64") > numbers_in("7.2.9+deb13-cloud-amd64"));
        assert!(numbers_in("6.12.115+deb13.1-amd64") > numbers_in("6.12.115+deb13-amd64"));
    }

    #[test]
    fn each_series_has_a_first_and_a_last_kernel() {
        let packages = [
            "linux-image-6.16.12+deb13-cloud-amd64",
            "linux-image-6.16.3+deb13-cloud-amd64",
            "linux-image-6.16.9+deb13-cloud-amd64",
            "linux-image-6.16.9+deb13-rt-amd64",
            "linux-image-7.3.4+deb13-cloud-amd64",
            "linux-image-6.1-cloud-amd64",
        ];
        assert_eq!(
            first_and_last(&packages.map(str::to_owned)),
            [
                "6.16.3+deb13-cloud-amd64",
                "6.16.12+deb13-cloud-amd64",
                "7.3.4+deb13-cloud-amd64"
            ]
        );
    }

    #[test]
    fn the_compiler_is_what_the_headers_depend_on() {
        for (package, compiler) in [
            ("gcc-14-for-host", Some("gcc-14")),
            ("linux-compiler-gcc-12-x86", Some("gcc-12")),
            ("linux-base", None),
        ] {
            assert_eq!(compiler_named_in(package).as_deref(), compiler, "{package}");
        }
    }

    #[test]
    fn what_is_no_kernel_is_refused_with_the_choices() {
        let cache = Cache::at("/nonexistent".into());
        let error = Kernel::find(&cache, "7.77", None).unwrap_err().to_string();
        assert!(error.contains("6.12, 6.1"), "{error}");
        let empty = tempfile::tempdir().unwrap();
        fs::create_dir(empty.path().join("boot")).unwrap();
        let error = Kernel::find(&cache, empty.path().to_str().unwrap(), None).unwrap_err();
        assert!(
            error.to_string().contains("boot/vmlinuz-RELEASE"),
            "{error}"
        );
    }
}
