//! Cold starts of real programs with and without `frontrow launch`, measured by `frontrow launch
//! bench`. Their files are copied from the lab's guest to the file system under test.

use crate::Error;
use crate::Measurement;
use crate::background::Background;
use crate::code::{Code, Start};
use crate::layout::settle;
use crate::meter::Meter;
use crate::package::{Package, Unpacked};
use crate::sqlite;
use crate::stage::{Foreground, RunContext};
use serde::Deserialize;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The program of users' machines in the lab's guests.
const FRONTROW: &str = "/bin/frontrow";

/// Directory of Debian's libraries in the guests.
const LIBRARIES: &str = sys::arch::NATIVE.libraries;

/// Table that SQLite scans: rows of 0.6 MB in all, without an index for the query.
const TABLE: &str = "CREATE TABLE t (i INTEGER, w TEXT); \
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 16000) \
    INSERT INTO t SELECT i, hex(i * 7919) || ' ' || hex(i) FROM n;";
const SCAN: &str = "SELECT count(*) FROM t WHERE w LIKE '%7%'";

/// Python's own modules that larger programs import at first.
const IMPORTS: &str =
    "import json, argparse, asyncio, email, http.client, unittest, xml.dom, logging";

/// Name of the keystore, and its password.
const KEYS: &str = "keys.p12";
const PASSWORD: &str = "frontrow";
/// Options with which Java's tools start quickly.
const SERIAL: &str = "-XX:+UseSerialGC";
const QUICK: &str = "-XX:TieredStopAtLevel=1";
const KEYTOOL: &str = "sun.security.tools.keytool.Main";
const KEYTOOL_GENERATE: [&str; 14] = [
    SERIAL,
    QUICK,
    KEYTOOL,
    "-genseckey",
    "-alias",
    "one",
    "-keyalg",
    "AES",
    "-keysize",
    "256",
    "-storepass",
    PASSWORD,
    "-keystore",
    KEYS,
];
const KEYTOOL_LIST: [&str; 8] = [
    SERIAL,
    QUICK,
    KEYTOOL,
    "-list",
    "-storepass",
    PASSWORD,
    "-keystore",
    KEYS,
];

/// A program that ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Python 3.11, which imports 300 modules.
    Python,
    /// The sqlite3 shell, which scans a table.
    Sqlite,
    /// Java's keytool, which lists a keystore.
    Java,
}

impl Program {
    /// Name of the program in the guest's /bin.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Program::Python => "python3.11",
            Program::Sqlite => "sqlite3",
            Program::Java => "java",
        }
    }

    /// Directory of the program below the run's directory.
    fn place(self) -> &'static Path {
        Path::new(match self {
            Program::Python | Program::Sqlite => "usr/bin",
            // Java searches for its other files beside the program.
            Program::Java => "jvm/bin",
        })
    }

    /// Directories in the guest that the program reads, and their places below the run's directory.
    fn trees(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Program::Python => &[
                (LIBRARIES, "lib"),
                ("/usr/lib/python3.11", "usr/lib/python3.11"),
            ],
            Program::Sqlite => &[(LIBRARIES, "lib")],
            Program::Java => &[
                (LIBRARIES, "lib"),
                ("/usr/lib/jvm/java-17-openjdk-amd64/lib", "jvm/lib"),
                ("/usr/lib/jvm/java-17-openjdk-amd64/conf", "jvm/conf"),
            ],
        }
    }

    fn arguments(self) -> &'static [&'static str] {
        match self {
            Program::Python => &["-c", IMPORTS],
            Program::Sqlite => &["table.db", SCAN],
            Program::Java => &KEYTOOL_LIST,
        }
    }
}

/// A program, and how it comes to its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct App {
    program: Program,
    package: Package,
}

impl App {
    /// Debian's programs that a guest needs for it.
    pub(crate) fn programs(self) -> Vec<&'static str> {
        [&[self.program.name()], self.package.programs()].concat()
    }

    /// Modules of the kernel that a guest needs for it.
    pub(crate) fn modules(self) -> &'static [&'static str] {
        self.package.modules()
    }
}

/// The code of a workload that starts `program` from files.
pub(crate) const fn code(program: Program) -> Code {
    packed(program, Package::Files)
}

/// The code of a workload that starts `program` as it comes in `package`.
pub(crate) const fn packed(program: Program, package: Package) -> Code {
    Code::new(Start::Program(App { program, package }), sqlite::footprint)
}

/// A program on the file system under test.
pub(crate) struct Starts {
    program: Program,
    package: Package,
    directory: PathBuf,
    /// The app's files as they are packed; None before they are.
    unpacked: Option<Unpacked>,
    starts: u64,
    times: Option<Times>,
}

/// Output of `frontrow launch bench --json`.
#[derive(Deserialize)]
struct Times {
    demand_ms: f64,
    before_ms: f64,
    beside_ms: f64,
    warm_demand_ms: f64,
    warm_loaded_ms: f64,
}

impl Starts {
    pub(crate) fn new(context: &RunContext, app: App) -> Self {
        Starts {
            program: app.program,
            package: app.package,
            unpacked: None,
            directory: context.directory.clone(),
            starts: context.sizes.program_starts,
            times: None,
        }
    }

    /// Directory of the app's files.
    fn root(&self) -> PathBuf {
        let files = || self.package.source(&self.directory);
        self.unpacked
            .as_ref()
            .map_or_else(files, |it| it.root.clone())
    }

    fn binary(&self) -> PathBuf {
        self.root()
            .join(self.program.place())
            .join(self.program.name())
    }

    fn install(&self) -> Result<(), Error> {
        for (tree, place) in self.program.trees() {
            copy_tree(Path::new(tree), &self.root().join(place))?;
        }
        copy(&Path::new("/bin").join(self.program.name()), &self.binary())
    }

    /// Runs the program once, for files that only a first start writes: SQLite's table, Python's
    /// compiled modules.
    fn start_first(&self) -> Result<(), Error> {
        let arguments = match self.program {
            Program::Sqlite => &["table.db", TABLE],
            Program::Java => &KEYTOOL_GENERATE[..],
            other => other.arguments(),
        };
        self.run(&self.binary(), arguments).map(drop)
    }

    fn launch(&self, words: &[&str]) -> Result<Vec<u8>, Error> {
        let words = ["launch"].iter().chain(words).map(OsStr::new);
        self.run(Path::new(FRONTROW), words)
    }

    /// Runs `frontrow launch` with `words`, followed by the program and its arguments.
    fn launch_program(&self, words: &[&str]) -> Result<Vec<u8>, Error> {
        let binary = self.binary();
        let wrapper = self.unpacked.iter().flat_map(|it| &it.wrapper);
        let own: Vec<&OsStr> = wrapper
            .map(OsStr::new)
            .chain([binary.as_os_str()])
            .collect();
        let arguments = self.program.arguments().iter().map(OsStr::new);
        let words = ["launch"].iter().chain(words).map(OsStr::new);
        self.run(Path::new(FRONTROW), words.chain(own).chain(arguments))
    }

    /// Runs a program and returns its output.
    fn run<Word: AsRef<OsStr>>(
        &self,
        program: &Path,
        words: impl IntoIterator<Item = Word>,
    ) -> Result<Vec<u8>, Error> {
        let done = Command::new(program)
            .args(words)
            .current_dir(&self.directory)
            .env("HOME", &self.directory)
            .env("PYTHONHOME", self.root().join("usr"))
            .env("LD_LIBRARY_PATH", self.root().join("lib"))
            .stdin(Stdio::null())
            .output()
            .map_err(|source| Error::io("start", program, source))?;
        match done.status.success() {
            true => Ok(done.stdout),
            false => Err(Error::Program {
                path: program.to_owned(),
                reason: match done.stderr.trim_ascii() {
                    b"" => done.status.to_string(),
                    said => String::from_utf8_lossy(said).into_owned(),
                },
            }),
        }
    }
}

impl Foreground for Starts {
    fn prepare(&mut self) -> Result<(), Error> {
        self.install()?;
        self.start_first()?;
        self.unpacked = Some(self.package.pack(&self.directory)?);
        settle(&self.directory)?;
        self.launch(&["calibrate", "--json", "."])?;
        self.launch_program(&["record", "--name", "app", "--tries", "0", "--"])?;
        settle(&self.directory)
    }

    fn measure(&mut self, _: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        let starts = self.starts.to_string();
        let printed =
            self.launch_program(&["bench", "--name", "app", "--json", "--runs", &starts])?;
        let times = serde_json::from_slice(&printed).map_err(|error| Error::Program {
            path: FRONTROW.into(),
            reason: format!("its times are no times: {error}"),
        })?;
        self.times = Some(times);
        Ok(())
    }

    fn figures(&self, _: Duration) -> Vec<Measurement> {
        let Some(times) = &self.times else {
            return Vec::new();
        };
        let fastest_ms = times.before_ms.min(times.beside_ms);
        let ms = |name: &str, value| Measurement::milliseconds(name.to_owned(), value);
        vec![
            ms("demand_ms", times.demand_ms),
            ms("before_ms", times.before_ms),
            ms("beside_ms", times.beside_ms),
            Measurement::new("loaded_over_demand", "1", fastest_ms / times.demand_ms),
            ms("warm_demand_ms", times.warm_demand_ms),
            ms("warm_loaded_ms", times.warm_loaded_ms),
            Measurement::new(
                "warm_loaded_over_demand",
                "1",
                times.warm_loaded_ms / times.warm_demand_ms,
            ),
        ]
    }
}

/// Copies the files below `from` in the order of their names, so that their layout is the same
/// everywhere.
fn copy_tree(from: &Path, to: &Path) -> Result<(), Error> {
    let failed = |source| Error::io("read", from, source);
    let entries = fs::read_dir(from).map_err(failed)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let (path, place) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy_tree(&path, &place)?,
            false => copy(&path, &place)?,
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let directory = to.parent().unwrap_or(to);
    fs::create_dir_all(directory).map_err(|source| Error::io("make", directory, source))?;
    let copied = fs::copy(from, to).map_err(|source| Error::io("copy to", to, source));
    copied.map(drop)
}
