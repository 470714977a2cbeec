//! Puts seeded defects into a copy of the sources, one at a time, and asks whether the test that each names
//! sees it.
//!
//! ```text
//! cargo run -p xtask -- defects [PART_OF_A_NAME…]
//! cargo run -p xtask -- defects draw FILE… --seed N --count K
//! ```
//!
//! The first runs `tests/defects.toml`, or the entries whose name has one of the parts. Each test is run
//! without a defect first: a test that fails anyway catches nothing. The second prints candidates for the
//! list. Exit code 1 if a defect was not caught, 2 if the list is wrong.

mod draw;
mod list;
mod tree;

use crate::child::{self, Ended, Took};
use crate::tally::{self, Counts};
use list::{Defect, words};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use tree::Tree;

const LIST: &str = "tests/defects.toml";

/// The copy of the sources, and what is built from it. All entries share the build.
const TREE: &str = "target/defects/tree";
const BUILD: &str = "target/defects/build";

/// Runs the list, or draws candidates for it.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    match arguments.split_first() {
        Some((first, rest)) if first == "draw" => draw::run(rest),
        _ => Session::new(arguments)?.run(),
    }
}

/// The wanted part of the list, and a tree to try it in.
struct Session {
    defects: Vec<Defect>,
    tree: Tree,
    build: PathBuf,
    counts: Counts,
    cpu_s: f64,
    failures: Vec<String>,
}

impl Session {
    fn new(parts: &[String]) -> Result<Self, String> {
        if let Some(option) = parts.iter().find(|it| it.starts_with('-')) {
            return Err(format!(
                "there is no option {option}: give parts of names, or draw"
            ));
        }
        let mut defects = list::read(Path::new(LIST))?;
        defects.retain(|it| parts.is_empty() || parts.iter().any(|part| it.name.contains(part)));
        if defects.is_empty() {
            return Err(format!("no defect is named {}", parts.join(" or ")));
        }
        let here = std::env::current_dir().map_err(|error| error.to_string())?;
        let tree = Tree::update(&here, &here.join(TREE))?;
        for defect in &defects {
            defect.applied_to(&tree.text(&defect.file)?)?;
        }
        Ok(Self {
            defects,
            tree,
            build: here.join(BUILD),
            counts: Counts::default(),
            cpu_s: 0.0,
            failures: Vec::new(),
        })
    }

    fn run(mut self) -> Result<ExitCode, String> {
        println!("Each test without a defect:");
        let defects = std::mem::take(&mut self.defects);
        let mut known = BTreeSet::new();
        for defect in &defects {
            if known.insert(&defect.test) {
                self.passes(defect)?;
            }
        }
        println!("With one defect at a time:");
        for defect in &defects {
            self.try_one(defect)?;
        }
        Ok(self.close())
    }

    /// Fails if the test does not pass without the defect, or is none: a filter may name nothing.
    fn passes(&mut self, defect: &Defect) -> Result<(), String> {
        let build = self.build(defect)?;
        let fails = |output: &str| format!("{} fails without a defect:\n{output}", defect.test);
        if !build.status.success() {
            return Err(fails(&build.output));
        }
        let test = self.test(defect)?;
        self.note("passes", sum(build.took, test.took), &defect.test);
        match tally::of_runner(&test).failed {
            0 => Ok(()),
            _ => Err(fails(&test.output)),
        }
    }

    fn try_one(&mut self, defect: &Defect) -> Result<(), String> {
        let sound = self.tree.text(&defect.file)?;
        self.tree.write(&defect.file, &defect.applied_to(&sound)?)?;
        let outcome = self.outcome(defect);
        self.tree.write(&defect.file, &sound)?;
        let (verdict, took) = outcome?;
        self.note(verdict.text(), took, &defect.name);
        match verdict {
            Verdict::Caught => self.counts.passed += 1,
            Verdict::NotCaught => self.fail(defect, &defect.test),
            Verdict::NotBuilt(output) => self.fail(defect, &output),
        }
        Ok(())
    }

    /// What the test says of the defect, which is in the tree.
    fn outcome(&self, defect: &Defect) -> Result<(Verdict, Took), String> {
        let build = self.build(defect)?;
        if !build.status.success() {
            return Ok((Verdict::NotBuilt(build.output), build.took));
        }
        let test = self.test(defect)?;
        let verdict = match test.status.success() {
            true => Verdict::NotCaught,
            false => Verdict::Caught,
        };
        Ok((verdict, sum(build.took, test.took)))
    }

    /// Builds the test: a defect that does not compile is no defect that a test caught.
    fn build(&self, defect: &Defect) -> Result<Ended, String> {
        let words = defect.build_words()?;
        child::run_without_limit(&mut self.command(&words)).map_err(not_run(&words))
    }

    fn test(&self, defect: &Defect) -> Result<Ended, String> {
        let words = words(&defect.test);
        child::run(&mut self.command(&words)).map_err(not_run(&words))
    }

    fn command(&self, words: &[String]) -> Command {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let mut command = match words[0].as_str() {
            "cargo" => Command::new(cargo),
            other => Command::new(other),
        };
        command.args(&words[1..]).current_dir(self.tree.root());
        command.env("CARGO_TARGET_DIR", &self.build);
        command
    }

    fn note(&mut self, verdict: &str, took: Took, name: &str) {
        println!(
            "{:7.1} CPU s {:7.1} s  {verdict:10}  {name}",
            took.cpu_s, took.wall_s
        );
        self.cpu_s += took.cpu_s;
    }

    fn fail(&mut self, defect: &Defect, why: &str) {
        println!("FAILED: {}: {why}", defect.name);
        self.counts.failed += 1;
        self.failures.push(defect.name.clone());
    }

    /// Prints the closing lines.
    fn close(self) -> ExitCode {
        println!("\n{:.1} CPU minutes in all", self.cpu_s / 60.0);
        for name in &self.failures {
            println!("FAILED: {name}");
        }
        let Counts { passed, failed } = self.counts;
        println!("{passed} passed, {failed} failed");
        ExitCode::from(u8::from(failed > 0))
    }
}

enum Verdict {
    Caught,
    NotCaught,
    /// What the compiler said.
    NotBuilt(String),
}

impl Verdict {
    fn text(&self) -> &'static str {
        match self {
            Self::Caught => "caught",
            Self::NotCaught => "NOT CAUGHT",
            Self::NotBuilt(_) => "NOT BUILT",
        }
    }
}

fn not_run(words: &[String]) -> impl Fn(io::Error) -> String {
    move |error| format!("cannot run {}: {error}", words.join(" "))
}

fn sum(one: Took, other: Took) -> Took {
    Took {
        wall_s: one.wall_s + other.wall_s,
        cpu_s: one.cpu_s + other.cpu_s,
    }
}
