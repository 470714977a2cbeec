//! Building a module by kbuild.

use crate::kmod::{Error, Source, Tree};
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// As much of a failed build's output as an error shows.
const SHOWN_LINES: usize = 40;

/// Builds `source` against `tree` in `out`, which is made, and gives the path of
/// the `.ko`. The directory names are kept out of the module, so that the same
/// sources give the same bytes wherever they are built.
///
/// A directory that others may change, or exchange, is refused: make runs what is in it, and root
/// loads the module.
pub fn build(tree: &Tree, source: &Source, out: &Path) -> Result<PathBuf, Error> {
    sys::walk::make_own_directory(out).map_err(|error| unusable(out, error))?;
    // Nobody else can make this another directory from here on.
    let out = &fs::canonicalize(out).map_err(Error::file(out))?;
    let headers = fs::canonicalize(&tree.headers).map_err(Error::file(&tree.headers))?;
    refuse_words(out)?;
    refuse_words(&headers)?;
    remove_modules(out)?;
    for (path, content) in &source.files {
        let path = out.join(path);
        let parent = path.parent().unwrap_or(out);
        fs::create_dir_all(parent).map_err(Error::file(parent))?;
        put(&path, content).map_err(Error::file(&path))?;
    }
    let made = make(&headers, out, tree)
        .output()
        .map_err(|source| Error::NoMake { source })?;
    let module = if made.status.success() {
        built_module(out)?
    } else {
        None
    };
    module.ok_or_else(|| Error::Build {
        module: source.name.clone(),
        release: tree.release.clone(),
        output: end_of(&made.stdout, &made.stderr),
    })
}

fn unusable(out: &Path, error: io::Error) -> Error {
    match sys::walk::is_refusal(&error) {
        true => Error::Shared {
            path: out.to_owned(),
            reason: error.to_string(),
        },
        false => Error::file(out)(error),
    }
}

/// Refuses paths with characters that make interprets, such as blanks or `$(shell …)`.
fn refuse_words(path: &Path) -> Result<(), Error> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._+-,@=~".contains(byte);
    match path.as_os_str().as_bytes().iter().all(is_plain) {
        true => Ok(()),
        false => Err(Error::Path {
            path: path.to_owned(),
        }),
    }
}

/// Removes modules that are not from this build.
fn remove_modules(out: &Path) -> Result<(), Error> {
    for module in modules(out)? {
        fs::remove_file(&module).map_err(Error::file(&module))?;
    }
    Ok(())
}

/// Replaces the path by a new file; does not follow links.
fn put(path: &Path, content: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::create_new(path)?.write_all(content)
}

fn make(headers: &Path, out: &Path, tree: &Tree) -> Command {
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
    if tree.arch != sys::arch::NATIVE {
        make.arg(format!("ARCH={}", tree.arch.kernel))
            .arg(format!("CROSS_COMPILE={}", tree.arch.cross_prefix()));
    }
    if let Some(tools) = &tree.tools {
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

/// The one that was built; a source tree is one module's.
fn built_module(out: &Path) -> Result<Option<PathBuf>, Error> {
    let built = modules(out)?;
    match <[PathBuf; 1]>::try_from(built) {
        Ok([module]) if module.symlink_metadata().is_ok_and(|it| it.is_file()) => Ok(Some(module)),
        _ => Ok(None),
    }
}

fn modules(out: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut modules = Vec::new();
    for entry in fs::read_dir(out).map_err(Error::file(out))? {
        let path = entry.map_err(Error::file(out))?.path();
        if path.extension().is_some_and(|it| it == "ko") {
            modules.push(path);
        }
    }
    Ok(modules)
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
    use crate::kmod::Wanted;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    /// Headers whose make builds a module without a compiler, as kbuild would be asked to.
    fn tree(root: &Path) -> Tree {
        let headers = root.join("headers");
        fs::create_dir(&headers).unwrap();
        let makefile = "modules:\n\ttouch $(M)/built.ko\n";
        fs::write(headers.join("Makefile"), makefile).unwrap();
        Tree {
            release: "6.12".to_owned(),
            btf: headers.join("vmlinux"),
            headers,
            tools: None,
            arch: sys::arch::NATIVE,
        }
    }

    #[test]
    fn a_path_is_no_order_to_make() {
        let root = tempfile::tempdir().unwrap();
        let tree = tree(root.path());
        let made = root.path().join("made");
        for name in [
            format!("$(shell touch {})", made.display()),
            "a b".to_owned(),
        ] {
            let out = root.path().join(name.replace('/', "_"));
            let refused = build(&tree, &Source::default(), &out).unwrap_err();
            assert!(matches!(refused, Error::Path { .. }), "{refused}");
        }
        assert!(!made.exists());
    }

    /// As `/tmp/module` that somebody made before: whoever owns it would exchange the module.
    #[test]
    fn nothing_is_built_in_a_directory_of_others() {
        let root = tempfile::tempdir().unwrap();
        let tree = tree(root.path());
        let out = root.path().join("out");
        fs::create_dir(&out).unwrap();
        let refused = |out: &Path| {
            let refused = build(&tree, &Source::default(), out).unwrap_err();
            assert!(matches!(refused, Error::Shared { .. }), "{refused}");
        };
        fs::set_permissions(&out, fs::Permissions::from_mode(0o777)).unwrap();
        refused(&out);
        refused(&out.join("below"));
        assert_eq!(fs::read_dir(&out).unwrap().count(), 0);
        // Only root can make a directory of somebody else's.
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            fs::set_permissions(&out, fs::Permissions::from_mode(0o755)).unwrap();
            std::os::unix::fs::chown(&out, Some(65534), None).unwrap();
            refused(&out);
        }
    }

    #[test]
    fn the_module_that_was_built_is_taken_and_no_other() {
        let root = tempfile::tempdir().unwrap();
        let tree = tree(root.path());
        let out = root.path().join("out");
        fs::create_dir(&out).unwrap();
        let theirs = root.path().join("theirs");
        fs::write(&theirs, "precious").unwrap();
        fs::write(out.join("aaa.ko"), "evil").unwrap();
        std::os::unix::fs::symlink(&theirs, out.join("main.c")).unwrap();
        let source = Source::default().with("main.c", "int main;");
        let built = build(&tree, &source, &out).unwrap();
        assert_eq!(built, out.canonicalize().unwrap().join("built.ko"));
        assert_eq!(fs::read(&theirs).unwrap(), b"precious");
    }

    /// Arguments of make for a kernel with this configuration.
    fn arguments(config: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let headers = root.path().join("headers");
        for (name, text) in [
            ("Makefile", ""),
            ("vmlinux", ""),
            ("include/config/auto.conf", config),
        ] {
            let path = headers.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let wanted = Wanted {
            release: Some("6.12".to_owned()),
            headers: Some(headers.clone()),
            btf: None,
        };
        let tree = Tree::find(root.path(), &wanted).unwrap();
        let make = make(&headers, Path::new("out"), &tree);
        let arguments = make.get_args().map(|it| it.to_string_lossy().into_owned());
        arguments.collect()
    }

    #[test]
    fn a_kernel_that_clang_built_gets_modules_of_clang() {
        for (text, expected) in [
            ("CONFIG_CC_IS_GCC=y\n", false),
            ("CONFIG_CC_IS_CLANG=y\nCONFIG_LTO_CLANG_THIN=y\n", true),
        ] {
            let is_clang = arguments(text).iter().any(|it| it == "LLVM=1");
            assert_eq!(is_clang, expected, "{text}");
        }
    }

    #[test]
    fn a_kernel_for_another_architecture_is_built_for_with_its_compiler() {
        for arch in sys::arch::ALL {
            let arguments = arguments(&format!("{}\n", arch.config));
            let told = |it: &str| arguments.iter().any(|argument| argument == it);
            let is_other = arch != sys::arch::NATIVE;
            assert_eq!(told(&format!("ARCH={}", arch.kernel)), is_other);
            let compiler = format!("CROSS_COMPILE={}-", arch.gnu);
            assert_eq!(told(&compiler), is_other, "{arguments:?}");
        }
    }
}
