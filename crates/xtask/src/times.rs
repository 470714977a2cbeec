//! What each test and build step took, as a file that two runs can be compared by.
//!
//! A line each: CPU seconds, seconds on the wall, and the name, with tabs between. CPU seconds of a
//! guest with exact time hardly depend on what else the host does, so they are compared.

use crate::child::Took;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// Rows of the closing table.
const SLOWEST: usize = 20;

/// Differences below this many CPU seconds are noise.
const NOISE_CPU_S: f64 = 1.0;

/// What each took, by name.
#[derive(Debug, Default, PartialEq)]
pub struct Times(BTreeMap<String, Took>);

impl Times {
    /// Reads a file; lines that are damaged are left out.
    pub fn read(path: &Path) -> io::Result<Times> {
        let text = fs::read_to_string(path)?;
        let of_line = |line: &str| {
            let mut fields = line.splitn(3, '\t');
            let mut number = || fields.next()?.parse().ok();
            let (cpu_s, wall_s) = (number()?, number()?);
            Some((fields.next()?.to_owned(), Took { wall_s, cpu_s }))
        };
        Ok(Times(text.lines().filter_map(of_line).collect()))
    }

    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = String::new();
        for (name, took) in &self.0 {
            let _ = writeln!(text, "{:.2}\t{:.2}\t{name}", took.cpu_s, took.wall_s);
        }
        fs::write(path, text)
    }

    pub fn add(&mut self, name: &str, took: Took) {
        self.0.insert(name.to_owned(), took);
    }

    /// Takes over all that `newer` has.
    pub fn update(&mut self, newer: Times) {
        self.0.extend(newer.0);
    }

    /// CPU seconds of `name`; None if it is not there.
    pub fn cpu_s(&self, name: &str) -> Option<f64> {
        self.0.get(name).map(|took| took.cpu_s)
    }

    /// CPU seconds of all together.
    pub fn total_cpu_s(&self) -> f64 {
        self.0.values().map(|took| took.cpu_s).sum()
    }

    /// A line for each of the slowest, longest first.
    pub fn slowest(&self) -> String {
        let mut all: Vec<_> = self.0.iter().collect();
        all.sort_by(|one, other| other.1.cpu_s.total_cmp(&one.1.cpu_s));
        let mut text = String::new();
        for (name, took) in all.into_iter().take(SLOWEST) {
            let _ = writeln!(
                text,
                "{:7.1} CPU s {:7.1} s  {name}",
                took.cpu_s, took.wall_s
            );
        }
        text
    }

    /// A line for each whose CPU time is another in `new`, the largest difference first.
    fn differences(&self, new: &Times) -> String {
        let names = self.0.keys().chain(new.0.keys());
        let mut differ: Vec<_> = names
            .map(|name| {
                let [was, is] = [self, new].map(|it| it.cpu_s(name).unwrap_or_default());
                (name, was, is)
            })
            .filter(|(_, was, is)| (is - was).abs() >= NOISE_CPU_S)
            .collect();
        differ.sort_by(|one, other| {
            let size = |it: &(&String, f64, f64)| (it.2 - it.1).abs();
            size(other).total_cmp(&size(one)).then(one.0.cmp(other.0))
        });
        differ.dedup();
        let mut text = String::new();
        for (name, was, is) in differ {
            let _ = writeln!(text, "{was:7.1} -> {is:7.1} CPU s  {name}");
        }
        text
    }
}

/// Prints how two runs differ: `times OLD NEW`.
pub fn compare(arguments: &[String]) -> Result<ExitCode, String> {
    let [old, new] = arguments else {
        return Err("give two files of times, the older one first".to_owned());
    };
    let read = |path: &String| {
        Times::read(Path::new(path)).map_err(|error| format!("cannot read {path}: {error}"))
    };
    let (old, new) = (read(old)?, read(new)?);
    print!("{}", old.differences(&new));
    println!(
        "{:7.1} -> {:7.1} CPU s  in all",
        old.total_cpu_s(),
        new.total_cpu_s()
    );
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(all: &[(&str, f64)]) -> Times {
        let mut times = Times::default();
        for (name, cpu_s) in all {
            let took = Took {
                wall_s: 2.0 * cpu_s,
                cpu_s: *cpu_s,
            };
            times.add(name, took);
        }
        times
    }

    #[test]
    fn what_is_written_is_read_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let written = times(&[("sys a test", 0.25), ("lab another", 12.5)]);
        written.write(file.path()).unwrap();
        assert_eq!(Times::read(file.path()).unwrap(), written);
    }

    #[test]
    fn what_differs_comes_with_the_largest_difference_first() {
        let old = times(&[("same", 9.0), ("slower", 21.0), ("gone", 5.0)]);
        let new = times(&[("same", 9.5), ("slower", 23.5), ("new", 2.0)]);
        let names: Vec<String> = (old.differences(&new).lines())
            .map(|line| line.rsplit("CPU s  ").next().unwrap().to_owned())
            .collect();
        assert_eq!(names, ["gone", "slower", "new"]);
    }

    #[test]
    fn the_slowest_are_told_longest_first() {
        let slowest = times(&[("short", 1.0), ("long", 9.0)]).slowest();
        assert!(slowest.find("long").unwrap() < slowest.find("short").unwrap());
    }
}
