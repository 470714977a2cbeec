//! A copy of the sources, in which defects are put: the working tree is never changed.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A copy of all files that are tracked, or new.
pub struct Tree {
    root: PathBuf,
    /// Held as long as defects are put in.
    _lock: File,
}

impl Tree {
    /// Makes `root` a copy of the files in `sources` that git does not ignore. A file that is the same already is
    /// not written, as cargo builds again what is newer; a defect that a run left there when it was killed goes.
    /// Fails while another run works there.
    pub fn update(sources: &Path, root: &Path) -> Result<Self, String> {
        let tracked = tracked(sources)?;
        let failed = |error: io::Error| format!("cannot copy to {}: {error}", root.display());
        fs::create_dir_all(root).map_err(failed)?;
        let lock = File::create(root.with_extension("lock")).map_err(failed)?;
        lock.try_lock()
            .map_err(|error| format!("another run works in {}: {error}", root.display()))?;
        let gone = copied(root)?
            .difference(&tracked)
            .cloned()
            .collect::<Vec<_>>();
        for name in gone {
            fs::remove_file(root.join(name)).map_err(failed)?;
        }
        for name in &tracked {
            copy(&sources.join(name), &root.join(name)).map_err(failed)?;
        }
        let names: Vec<&str> = tracked.iter().map(String::as_str).collect();
        fs::write(list_of(root), names.join("\n")).map_err(failed)?;
        Ok(Self {
            root: root.to_owned(),
            _lock: lock,
        })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn text(&self, name: &str) -> Result<String, String> {
        fs::read_to_string(self.root.join(name)).map_err(|error| format!("{name}: {error}"))
    }

    /// Writes a file; it is newer than what was built from it, so that it is built again.
    pub fn write(&self, name: &str, text: &str) -> Result<(), String> {
        fs::write(self.root.join(name), text).map_err(|error| format!("{name}: {error}"))
    }
}

/// Files that are there and tracked, or new.
fn tracked(sources: &Path) -> Result<BTreeSet<String>, String> {
    let mut git = Command::new("git");
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ])
    .current_dir(sources);
    let listed = git.output().map_err(|error| format!("git: {error}"))?;
    if !listed.status.success() {
        let said = String::from_utf8_lossy(&listed.stderr);
        return Err(format!("git lists no files: {said}"));
    }
    let names = String::from_utf8_lossy(&listed.stdout);
    let names = names.split_terminator('\0').map(ToOwned::to_owned);
    Ok(names.filter(|it| sources.join(it).is_file()).collect())
}

/// Names of the files that an earlier run copied; other files there were built.
fn copied(root: &Path) -> Result<BTreeSet<String>, String> {
    let list = list_of(root);
    match fs::read_to_string(&list) {
        Ok(names) => Ok(names.lines().map(ToOwned::to_owned).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(format!("{}: {error}", list.display())),
    }
}

fn list_of(root: &Path) -> PathBuf {
    root.with_extension("files")
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if fs::read(to).is_ok_and(|has| fs::read(from).is_ok_and(|wanted| has == wanted)) {
        return Ok(());
    }
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::copy(from, to).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(directory: &Path, words: &[&str]) {
        let mut git = Command::new("git");
        let status = git.args(words).current_dir(directory).status().unwrap();
        assert!(status.success(), "{words:?}");
    }

    #[test]
    fn only_what_differs_is_written_and_what_is_gone_goes() {
        let directory = tempfile::tempdir().unwrap();
        let sources = directory.path().join("sources");
        fs::create_dir_all(sources.join("src")).unwrap();
        for name in ["same", "src/changed", "gone", "ignored"] {
            fs::write(sources.join(name), name).unwrap();
        }
        git(&sources, &["init", "-q"]);
        git(&sources, &["add", "same", "gone"]);
        fs::write(sources.join(".gitignore"), "ignored").unwrap();
        let root = directory.path().join("tree");
        let tree = Tree::update(&sources, &root).unwrap();
        tree.write("src/changed", "a defect").unwrap();
        fs::write(root.join("built"), "").unwrap();
        fs::remove_file(sources.join("gone")).unwrap();
        let written = |name: &str| fs::metadata(root.join(name)).unwrap().modified().unwrap();
        let before = written("same");
        assert!(Tree::update(&sources, &root).is_err(), "one at a time");
        drop(tree);
        let tree = Tree::update(&sources, &root).unwrap();
        assert_eq!(tree.text("src/changed").as_deref(), Ok("src/changed"));
        assert_eq!(written("same"), before);
        assert!(!root.join("gone").exists() && root.join("built").exists());
        assert!(!root.join("ignored").exists());
    }
}
