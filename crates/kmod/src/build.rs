//! Running kbuild.

use crate::{Error, Source, Tree};
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// As much of a failed build's output as an error shows.
const SHOWN_LINES: usize = 40;

/// Builds `source` against `tree` in `out`, which is made, and gives the path of
/// the `.ko`. The directory names are kept out of the module, so that the same
/// sources give the same bytes wherever they are built.
pub fn build(tree: &Tree, source: &Source, out: &Path) -> Result<PathBuf, Error> {
    for (path, content) in &source.files {
        let path = out.join(path);
        let parent = path.parent().unwrap_or(out);
        fs::create_dir_all(parent).map_err(Error::file(parent))?;
        fs::write(&path, content).map_err(Error::file(&path))?;
    }
    let out = fs::canonicalize(out).map_err(Error::file(out))?;
    let headers = fs::canonicalize(&tree.headers).map_err(Error::file(&tree.headers))?;
    let made = make(&headers, &out, tree.tools.as_deref())
        .output()
        .map_err(|source| Error::NoMake { source })?;
    let module = if made.status.success() {
        built_module(&out)?
    } else {
        None
    };
    module.ok_or_else(|| Error::Build {
        module: source.name.clone(),
        release: tree.release.clone(),
        output: end_of(&made.stdout, &made.stderr),
    })
}

fn make(headers: &Path, out: &Path, tools: Option<&Path>) -> Command {
    let mut prefixes = vec![format!("-ffile-prefix-map={}/=", out.display())];
    let above_headers = headers
        .parent()
        .and_then(Path::parent)
        .and_then(Path::parent);
    if let Some(root) = above_headers {
        prefixes.push(format!("-ffile-prefix-map={}/=/", root.display()));
    }
    let mut make = Command::new("make");
    make.arg("-C")
        .arg(headers)
        .arg(format!("M={}", out.display()))
        .arg(format!("KCFLAGS={}", prefixes.join(" ")))
        // Module BTF would need pahole, and its version would show in the bytes.
        .arg("CONFIG_DEBUG_INFO_BTF_MODULES=")
        .arg("modules")
        .env_remove("MAKEFLAGS")
        .env_remove("MAKELEVEL")
        .env("LC_ALL", "C")
        .env("KBUILD_BUILD_TIMESTAMP", "1970-01-01")
        .stdin(Stdio::null());
    if is_built_by_clang(headers) {
        make.arg("LLVM=1");
    }
    if let Some(tools) = tools {
        let path = env::var_os("PATH").unwrap_or_default();
        make.env("PATH", [tools.as_os_str(), &path].join(OsStr::new(":")));
    }
    make
}

/// A module has to come from the kernel's own compiler, which kbuild is told of.
fn is_built_by_clang(headers: &Path) -> bool {
    let config = fs::read_to_string(headers.join("include/config/auto.conf"));
    config.is_ok_and(|text| text.lines().any(|it| it == "CONFIG_CC_IS_CLANG=y"))
}

fn built_module(out: &Path) -> Result<Option<PathBuf>, Error> {
    let entries = fs::read_dir(out).map_err(Error::file(out))?;
    for entry in entries {
        let path = entry.map_err(Error::file(out))?.path();
        if path.extension().is_some_and(|it| it == "ko") {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn end_of(stdout: &[u8], stderr: &[u8]) -> String {
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(stdout),
        String::from_utf8_lossy(stderr)
    );
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_clang_built_gets_modules_of_clang() {
        let headers = tempfile::tempdir().unwrap();
        let config = headers.path().join("include/config");
        fs::create_dir_all(&config).unwrap();
        for (text, expected) in [
            ("CONFIG_CC_IS_GCC=y\n", false),
            ("CONFIG_CC_IS_CLANG=y\nCONFIG_LTO_CLANG_THIN=y\n", true),
        ] {
            fs::write(config.join("auto.conf"), text).unwrap();
            let make = make(headers.path(), Path::new("out"), None);
            assert_eq!(make.get_args().any(|it| it == "LLVM=1"), expected, "{text}");
        }
    }
}
