//! Debian packages: which one a name stands for, fetching, unpacking. Nothing
//! is installed and no root is needed.
//!
//! A package comes from the release of Debian that is asked for, whatever the host
//! has: from the mirror that the host's apt is set up with, through lists of our own.

use crate::cache::Cache;
use crate::image::hex;
use crate::{Error, tool};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};
use sys::arch::Arch;

/// A release of Debian, with what is added to it after its release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// Name of the suite.
    pub suite: &'static str,
    /// `VERSION_CODENAME` of the systems that are it.
    pub codename: &'static str,
    main: &'static [&'static str],
    security: Option<&'static str>,
}

/// Debian 12, bookworm.
pub const BOOKWORM: Release = Release {
    suite: "bookworm",
    codename: "bookworm",
    main: &["bookworm", "bookworm-updates"],
    security: Some("bookworm-security"),
};

/// Debian 13, trixie.
pub const TRIXIE: Release = Release {
    suite: "trixie",
    codename: "trixie",
    main: &["trixie", "trixie-updates"],
    security: Some("trixie-security"),
};

/// Debian 13 with what the next release has already.
pub const BACKPORTS: Release = Release {
    suite: "trixie-backports",
    codename: "trixie",
    main: &["trixie", "trixie-updates", "trixie-backports"],
    security: Some("trixie-security"),
};

/// Options that leave only what a package cannot run without.
const HARD_DEPENDENCIES: [&str; 6] = [
    "--no-recommends",
    "--no-suggests",
    "--no-conflicts",
    "--no-breaks",
    "--no-replaces",
    "--no-enhances",
];

/// Debian unstable, where new kernels appear first.
pub const UNSTABLE: Release = Release {
    suite: "sid",
    codename: "sid",
    main: &["sid"],
    security: None,
};

/// Lists stay good this long; what they name is removed from the archive some time later.
const LISTS_S: u64 = 24 * 3600;

/// apt with one release's lists.
pub struct Apt {
    options: Vec<String>,
}

impl Apt {
    /// For packages of `release` for `arch`, with lists that are at most a day old, and newer than the
    /// last change of where the host's apt gets its own.
    pub fn of(cache: &Cache, release: Release, arch: Arch) -> Result<Apt, Error> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let period = now.unwrap_or_default().as_secs() / LISTS_S;
        let prefix = format!("{}-", release.suite);
        let lists = format!("apt{}", arch.suffix);
        let from = &hex(&Sha256::digest(host_sources()))[..8];
        let place = cache.directory(&format!("{lists}/{prefix}{period}-{from}"), |dir| {
            for name in ["lists/partial", "archives/partial"] {
                let path = dir.join(name);
                fs::create_dir_all(&path).map_err(Error::file(&path))?;
            }
            let list = dir.join("sources.list");
            fs::write(&list, sources(release)?).map_err(Error::file(&list))?;
            let apt = Apt::at(dir, release, arch);
            let update = apt.run("apt-get", &["update", "--quiet=2"], Path::new("/"));
            refused_by_apt(release.suite, update).map(drop)
        })?;
        // Another process may still read yesterday's.
        cache.keep_latest(&lists, &prefix, 2)?;
        Ok(Apt::at(&place, release, arch))
    }

    fn at(place: &Path, release: Release, arch: Arch) -> Apt {
        let place = place.display();
        let options = [
            format!("Dir::Etc::SourceList={place}/sources.list"),
            "Dir::Etc::SourceParts=/dev/null".to_owned(),
            "Dir::Etc::Preferences=/dev/null".to_owned(),
            "Dir::Etc::PreferencesParts=/dev/null".to_owned(),
            format!("Dir::State={place}"),
            format!("Dir::State::Lists={place}/lists"),
            "Dir::State::Status=/dev/null".to_owned(),
            format!("Dir::Cache={place}"),
            format!("APT::Architecture={}", arch.debian),
            format!("APT::Architectures={}", arch.debian),
            "Acquire::Languages=none".to_owned(),
            // As root apt would fetch as a user who cannot write into root's cache.
            "APT::Sandbox::User=root".to_owned(),
        ];
        // apt takes nothing from backports unasked; of the others it takes the newest.
        let preferred = release.main.last().filter(|it| it.ends_with("-backports"));
        let preferred = preferred.map(|suite| format!("APT::Default-Release={suite}"));
        let options = options.into_iter().chain(preferred);
        Apt {
            options: options.map(|it| format!("-o{it}")).collect(),
        }
    }

    /// The packages that `package` depends on directly.
    pub fn dependencies(&self, package: &str) -> Result<Vec<String>, Error> {
        let text = self.depends(package, &[])?;
        Ok(parse_dependencies(&text))
    }

    /// `package`, its parts (`python3.11-minimal`), and the packages with the libraries it
    /// needs, sorted.
    pub fn with_libraries(&self, package: &str) -> Result<Vec<String>, Error> {
        let mut names = self.with_all(package)?;
        names.retain(|name| name.starts_with(package) || is_library(name));
        Ok(names)
    }

    /// `package` and all it needs, sorted.
    pub fn with_all(&self, package: &str) -> Result<Vec<String>, Error> {
        let text = self.depends(package, &["--recurse"])?;
        let mut names: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
            .map(str::to_owned)
            .collect();
        names.sort();
        names.dedup();
        Ok(names)
    }

    /// All packages whose names begin with `prefix`.
    pub fn names(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let text = self.run("apt-cache", &["pkgnames", prefix], Path::new("/"))?;
        Ok(text.lines().map(str::to_owned).collect())
    }

    /// Fetches `packages` and unpacks them all into `root`. Gives a line with name,
    /// version and architecture for each, sorted.
    pub fn unpack(&self, packages: &[String], root: &Path) -> Result<Vec<String>, Error> {
        let downloads = root.join(".downloads");
        fs::create_dir(&downloads).map_err(Error::file(&downloads))?;
        for package in packages {
            let fetched = self.run("apt-get", &["download", "--quiet=2", package], &downloads);
            refused_by_apt(package, fetched)?;
        }
        let mut versions = Vec::new();
        for entry in fs::read_dir(&downloads).map_err(Error::file(&downloads))? {
            let archive = entry.map_err(Error::file(&downloads))?.path();
            let mut extract = Command::new("dpkg-deb");
            tool::output(extract.arg("-x").arg(&archive).arg(root), "dpkg")?;
            versions.push(identity(&archive)?);
        }
        fs::remove_dir_all(&downloads).map_err(Error::file(&downloads))?;
        versions.sort();
        Ok(versions)
    }

    fn depends(&self, package: &str, options: &[&str]) -> Result<String, Error> {
        let arguments = [&["depends"], &HARD_DEPENDENCIES[..], options, &[package]].concat();
        refused_by_apt(package, self.run("apt-cache", &arguments, Path::new("/")))
    }

    fn run(&self, program: &str, arguments: &[&str], dir: &Path) -> Result<String, Error> {
        let mut command = Command::new(program);
        command.args(&self.options).args(arguments).current_dir(dir);
        tool::output(&mut command, "apt")
    }
}

fn is_library(package: &str) -> bool {
    package.starts_with("lib") || package == "zlib1g"
}

/// Lines of `sources.list` for `release`, from the mirrors that the host's apt uses for Debian's
/// archive.
fn sources(release: Release) -> Result<String, Error> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(LABEL)\t$(REPO_URI)"]);
    targets.args(["Created-By: Packages", "Origin: Debian"]);
    let targets = tool::output(&mut targets, "apt")?;
    let main = mirror(&targets, "Debian").ok_or(Error::NoArchive)?;
    let signed_by = KEYRINGS.into_iter().find(|path| Path::new(path).is_file());
    let options = signed_by.map_or(String::new(), |path| format!("[signed-by={path}] "));
    let mut lines = String::new();
    for suite in release.main {
        lines += &format!("deb {options}{main} {suite} main\n");
    }
    if let Some(suite) = release.security {
        let mirror = mirror(&targets, "Debian-Security").unwrap_or(SECURITY);
        lines += &format!("deb {options}{mirror} {suite} main\n");
    }
    Ok(lines)
}

/// What the host's apt is set up with. apt itself takes half a second to tell.
fn host_sources() -> Vec<u8> {
    let more = fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten();
    let mut files: Vec<_> = more.flatten().map(|it| it.path()).collect();
    files.sort();
    files.push("/etc/apt/sources.list".into());
    let texts = files.iter().flat_map(fs::read);
    texts.flatten().collect()
}

/// Where a host finds security updates whose apt has no place for them: one that follows unstable, or
/// that debootstrap just made. Debian 12's kernel 6.12 is one of them.
const SECURITY: &str = "http://deb.debian.org/debian-security";

const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.gpg",
    "/usr/share/keyrings/debian-archive-keyring.pgp",
];

fn mirror<'a>(targets: &'a str, label: &str) -> Option<&'a str> {
    let mut lines = targets.lines().filter_map(|line| line.split_once('\t'));
    lines.find(|(it, _)| *it == label).map(|(_, uri)| uri)
}

/// Whether the host is `release`, and can run its programs as they are.
pub fn host_is(release: Release) -> bool {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let wanted = format!("VERSION_CODENAME={}", release.codename);
    text.lines().any(|line| line.trim() == wanted)
}

fn refused_by_apt(package: &str, outcome: Result<String, Error>) -> Result<String, Error> {
    outcome.map_err(|error| match error {
        Error::Tool { output, .. } => Error::Package {
            package: package.to_owned(),
            reason: output,
        },
        other => other,
    })
}

fn identity(archive: &Path) -> Result<String, Error> {
    tool::output(
        Command::new("dpkg-deb")
            .args(["-W", "--showformat=${Package} ${Version} ${Architecture}"])
            .arg(archive),
        "dpkg",
    )
}

/// `apt-cache depends` prints `  Depends: NAME`, with a bar before all but the
/// last of alternatives and angle brackets around what no package is.
fn parse_dependencies(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| {
            line.trim_start_matches([' ', '|'])
                .strip_prefix("Depends: ")
        })
        .filter(|name| !name.starts_with('<'))
        .map(|name| name.trim().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_with_alternatives_and_without_virtual_ones() {
        let text = "linux-headers-6.12\n  Depends: linux-base\n |Depends: linux-image-6.12\n  \
                    Depends: linux-image-6.12-unsigned\n  Depends: <gcc>\n";
        assert_eq!(
            parse_dependencies(text),
            [
                "linux-base",
                "linux-image-6.12",
                "linux-image-6.12-unsigned"
            ]
        );
    }

    #[test]
    fn a_mirror_is_found_by_its_label() {
        let targets = "Debian\thttp://one/debian/\nDebian-Security\thttp://two/\n";
        assert_eq!(mirror(targets, "Debian"), Some("http://one/debian/"));
        assert_eq!(mirror(targets, "Debian-Security"), Some("http://two/"));
        assert_eq!(mirror(targets, "Debian Backports"), None);
    }
}
