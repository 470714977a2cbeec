//! Debian packages: which one a name stands for, fetching, unpacking. Nothing
//! is installed and no root is needed.

use crate::{Error, tool};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Options that leave only what a package cannot run without.
const HARD_DEPENDENCIES: [&str; 6] = [
    "--no-recommends",
    "--no-suggests",
    "--no-conflicts",
    "--no-breaks",
    "--no-replaces",
    "--no-enhances",
];

/// The packages that `package` depends on directly.
pub fn dependencies(package: &str) -> Result<Vec<String>, Error> {
    let text = apt_cache(package, false)?;
    Ok(parse_dependencies(&text))
}

/// `package`, its parts (`python3.11-minimal`), and the packages with the libraries it
/// needs, sorted.
pub fn with_libraries(package: &str) -> Result<Vec<String>, Error> {
    let text = apt_cache(package, true)?;
    let mut names: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()))
        .filter(|name| name.starts_with(package) || name.starts_with("lib") || *name == "zlib1g")
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Fetches `packages` and unpacks them all into `root`. Gives a line with name,
/// version and architecture for each, sorted.
pub fn unpack(packages: &[String], root: &Path) -> Result<Vec<String>, Error> {
    let downloads = root.join(".downloads");
    fs::create_dir(&downloads).map_err(Error::file(&downloads))?;
    for package in packages {
        download(package, &downloads)?;
    }
    let mut versions = Vec::new();
    for entry in fs::read_dir(&downloads).map_err(Error::file(&downloads))? {
        let archive = entry.map_err(Error::file(&downloads))?.path();
        let extract = Command::new("dpkg-deb")
            .arg("-x")
            .arg(&archive)
            .arg(root)
            .output_of("dpkg")?;
        debug_assert!(extract.is_empty());
        versions.push(identity(&archive)?);
    }
    fs::remove_dir_all(&downloads).map_err(Error::file(&downloads))?;
    versions.sort();
    Ok(versions)
}

fn apt_cache(package: &str, recurse: bool) -> Result<String, Error> {
    let mut command = Command::new("apt-cache");
    command.arg("depends").args(HARD_DEPENDENCIES);
    if recurse {
        command.arg("--recurse");
    }
    refused_by_apt(package, command.arg(package).output_of("apt"))
}

fn download(package: &str, into: &Path) -> Result<(), Error> {
    let mut command = Command::new("apt-get");
    command
        .args(["download", "--quiet=2", package])
        .current_dir(into);
    refused_by_apt(package, command.output_of("apt")).map(drop)
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
    Command::new("dpkg-deb")
        .args(["-W", "--showformat=${Package} ${Version} ${Architecture}"])
        .arg(archive)
        .output_of("dpkg")
}

trait OutputOf {
    fn output_of(&mut self, package: &'static str) -> Result<String, Error>;
}

impl OutputOf for Command {
    fn output_of(&mut self, package: &'static str) -> Result<String, Error> {
        tool::output(self, package)
    }
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
}
