//! The tests of the workspace: built once, then listed, each to be run in a process of its own.

use crate::child::{self, Ended};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program with tests, as cargo built it.
struct Binary {
    /// Package, and target if it is not the library: `sys`, `frontrow::guests`.
    name: String,
    program: PathBuf,
    /// Directory of its package, in which cargo runs tests.
    directory: PathBuf,
}

/// A test function; it runs alone in a process.
pub struct Test {
    /// Name of the program with tests and name in it: `frontrow::guests lab::a_panic_is_told`.
    pub name: String,
    program: PathBuf,
    directory: PathBuf,
    in_program: String,
}

impl Test {
    /// A command that runs this test alone, also one that is ignored.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args([
                "--exact",
                &self.in_program,
                "--include-ignored",
                "--nocapture",
            ])
            .current_dir(&self.directory)
            .env("CARGO_MANIFEST_DIR", &self.directory);
        command
    }
}

/// Builds all tests.
pub fn build(cargo: &str) -> Result<Ended, String> {
    let mut command = Command::new(cargo);
    command.args(["test", "--workspace", "--locked", "--no-run"]);
    command.arg("--message-format=json-render-diagnostics");
    let ended = child::run_with_errors_shown(&mut command);
    let ended = ended.map_err(|error| format!("cannot run {cargo}: {error}"))?;
    match ended.status.success() {
        true => Ok(ended),
        false => Err("the tests were not built".to_owned()),
    }
}

/// The tests of all programs that cargo's messages name: those that are ignored, or the others.
pub fn list(messages: &str, ignored: bool) -> Result<Vec<Test>, String> {
    let mut tests = Vec::new();
    for binary in messages.lines().filter_map(binary) {
        let names = names(&binary, ignored)?;
        tests.extend(names.into_iter().map(|in_program| Test {
            name: format!("{} {in_program}", binary.name),
            program: binary.program.clone(),
            directory: binary.directory.clone(),
            in_program,
        }));
    }
    match tests.is_empty() {
        false => Ok(tests),
        true => Err("cargo built no tests".to_owned()),
    }
}

/// The program with tests that a message of cargo's is about.
fn binary(message: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let program = message["executable"].as_str()?;
    let directory = Path::new(message["manifest_path"].as_str()?).parent()?;
    let package = directory.file_name()?.to_str()?;
    let target = &message["target"];
    let is_library = target["kind"][0] == "lib";
    let name = match is_library {
        true => package.to_owned(),
        false => format!("{package}::{}", target["name"].as_str()?),
    };
    Some(Binary {
        name,
        program: program.into(),
        directory: directory.to_owned(),
    })
}

fn names(binary: &Binary, ignored: bool) -> Result<Vec<String>, String> {
    let listed = |which: &[&str]| -> Result<Vec<String>, String> {
        let mut command = Command::new(&binary.program);
        command.args(["--list", "--format", "terse"]).args(which);
        let ended = child::run(&mut command).map_err(|error| error.to_string())?;
        if !ended.status.success() {
            return Err(format!("{} lists no tests: {}", binary.name, ended.output));
        }
        let lines = ended.output.lines();
        let names = lines.filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(ToOwned::to_owned).collect())
    };
    let those_ignored = listed(&["--ignored"])?;
    if ignored {
        return Ok(those_ignored);
    }
    let mut all = listed(&[])?;
    all.retain(|name| !those_ignored.contains(name));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_with_tests_are_named_by_package_and_target() {
        let message = |kind: &str, test: bool| {
            format!(
                r#"{{"manifest_path":"/a/crates/sys/Cargo.toml","target":{{"kind":["{kind}"],"name":"fuzz"}},
                "profile":{{"test":{test}}},"executable":"/a/target/fuzz-1"}}"#
            )
            .replace('\n', "")
        };
        let name = |message: &str| binary(message).map(|it| it.name);
        assert_eq!(name(&message("lib", true)).unwrap(), "sys");
        assert_eq!(name(&message("test", true)).unwrap(), "sys::fuzz");
        assert_eq!(name(&message("bin", false)), None);
        assert_eq!(name("   Compiling sys"), None);
    }

    #[test]
    fn this_programs_tests_are_listed_and_one_is_run_alone() {
        let own = std::env::current_exe().unwrap();
        let binary = Binary {
            name: "xtask".to_owned(),
            program: own.clone(),
            directory: "/".into(),
        };
        let names = names(&binary, false).unwrap();
        let wanted = "suite::tests::programs_with_tests_are_named_by_package_and_target";
        assert!(names.iter().any(|it| it == wanted), "{names:?}");
        let test = Test {
            name: String::new(),
            program: own,
            directory: "/".into(),
            in_program: wanted.to_owned(),
        };
        let ended = child::run(&mut test.command()).unwrap();
        assert!(
            ended.output.contains("1 passed; 0 failed"),
            "{}",
            ended.output
        );
    }
}
