//! Exports of real recordings, opened by the programs that they are made for.
//!
//! `make readers` installs these (`tests/readers`); `make test` does so first.

use iopro::export::{Export, Format};
use iopro::link::link;
use iopro::recording::Reader;
use iopro::store::Store;
use iopro::tables::{Kind, TABLES, Table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use tempfile::TempDir;

/// All export formats of one recording, made once.
static EXPORTS: LazyLock<TempDir> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    for format in Format::ALL {
        let output = directory.path().join(format.name());
        let export = Export::begin(format, &output).unwrap();
        let store = linked(export.store().unwrap());
        export.finish(store).unwrap();
    }
    directory
});

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A recording of the lab with all kinds of I/O, see `recordings/README.md`.
fn recording() -> PathBuf {
    root().join("crates/iopro/tests/recordings/6.12.iopro")
}

fn linked(store: Store) -> Store {
    let path = recording();
    let reader = Reader::open(&path).unwrap();
    link(reader, &path, None, store, &mut |_| {}).unwrap()
}

fn export(format: Format) -> PathBuf {
    EXPORTS.path().join(format.name())
}

/// Output of a program. `path` is below `target/readers`, or the name of a system's program.
fn printed(path: &str, arguments: &[&str]) -> String {
    let readers = root().join("target/readers");
    let program = match path.contains('/') {
        true => readers.join(path),
        false => path.into(),
    };
    let output = Command::new(&program)
        .args(arguments)
        .env(
            "LD_LIBRARY_PATH",
            readers.join("debian/usr/lib/x86_64-linux-gnu"),
        )
        .output()
        .unwrap_or_else(|error| {
            panic!(
                "cannot run {}: {error}; run `make readers` first",
                program.display()
            )
        });
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{path} {arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn sqlite(question: &str) -> String {
    let database = export(Format::Sqlite);
    printed(
        "sqlite3",
        &["-readonly", "-bail", text(&database), question],
    )
}

fn duckdb(question: &str) -> String {
    let duckdb = "python/bin/duckdb";
    printed(
        duckdb,
        &["-batch", "-bail", "-list", "-noheader", "-c", question],
    )
}

/// SQL for a table's columns that all programs print in the same way.
fn columns(table: &Table) -> String {
    let columns = table.columns.iter().map(|column| match column.kind {
        Kind::Text => format!("'<' || coalesce({}, '') || '>'", column.name),
        Kind::Integer | Kind::Real => format!("coalesce(CAST({} AS VARCHAR), '-')", column.name),
        Kind::Boolean => format!("CAST({} AS INTEGER)", column.name),
    });
    columns.collect::<Vec<_>>().join(", ")
}

/// Lines of an output in an order that does not depend on the program.
fn sorted(printed: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    lines
}

/// The SQL examples of the page docs/use/iopro-example.md.
fn examples() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/use/iopro-example.md")).unwrap();
    let blocks = page.split("```sql\n").skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

#[test]
fn sqlite3_finds_the_database_whole_with_all_that_is_documented() {
    assert_eq!(sqlite("PRAGMA integrity_check"), "ok\n");
    for table in TABLES {
        let names: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        let question = format!("SELECT name FROM pragma_table_info('{}')", table.name);
        assert_eq!(sqlite(&question).lines().collect::<Vec<_>>(), names);
    }
    assert_ne!(
        sqlite("SELECT count(*) FROM links WHERE kind = 'write'"),
        "0\n"
    );
}

#[test]
fn sqlite3_and_duckdb_answer_the_documented_questions_alike() {
    let examples = examples();
    assert!(examples.len() >= 4);
    let parquet = export(Format::Parquet);
    let views = TABLES.iter().map(|table| {
        let file = parquet.join(format!("{}.parquet", table.name));
        format!(
            "CREATE VIEW {} AS SELECT * FROM '{}';",
            table.name,
            file.display()
        )
    });
    let views: String = views.collect();
    for example in examples {
        let answer = sqlite(&example);
        assert!(!answer.is_empty(), "{example}");
        // Programs print means with different digits, and equal rows in a different order.
        let rows = duckdb(&format!("{views} {example}"));
        assert_eq!(answer.lines().count(), rows.lines().count(), "{example}");
    }
}

#[test]
fn duckdb_reads_the_rows_of_all_parquet_files() {
    for table in TABLES {
        let columns = columns(table);
        let file = export(Format::Parquet).join(format!("{}.parquet", table.name));
        let expected = sqlite(&format!("SELECT {columns} FROM {}", table.name));
        let read = duckdb(&format!("SELECT {columns} FROM '{}'", file.display()));
        assert_eq!(sorted(&read), sorted(&expected), "{}", table.name);
    }
}

#[test]
fn duckdb_reads_the_rows_of_all_csv_files() {
    for table in TABLES {
        let columns = columns(table);
        let file = export(Format::Csv).join(format!("{}.csv", table.name));
        let expected = sqlite(&format!("SELECT {columns} FROM {}", table.name));
        let read = duckdb(&format!(
            "SELECT {columns} FROM read_csv('{}', header = true, all_varchar = true)",
            file.display()
        ));
        assert_eq!(sorted(&read), sorted(&expected), "{}", table.name);
    }
}

/// Values of each line with their times, by the line's name.
fn changes(vcd: &str) -> BTreeMap<String, Vec<(u64, u64)>> {
    let mut parser = vcd::Parser::new(vcd.as_bytes());
    let header = parser.parse_header().unwrap();
    let scope = header.find_scope(&["storage"]).unwrap();
    let lines = scope.items.iter().filter_map(|item| match item {
        vcd::ScopeItem::Var(line) => Some((line.code, line.reference.clone())),
        _ => None,
    });
    let names: BTreeMap<vcd::IdCode, String> = lines.collect();
    let mut changes: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    let mut time = 0;
    for command in parser {
        match command.unwrap() {
            vcd::Command::Timestamp(at) => time = at,
            vcd::Command::ChangeVector(line, bits) => {
                let value = bits
                    .iter()
                    .fold(0, |sum, bit| sum << 1 | u64::from(bit == vcd::Value::V1));
                let values = changes.entry(names[&line].clone()).or_default();
                if values.last().is_none_or(|(_, last)| *last != value) {
                    values.push((time, value));
                }
            }
            _ => {}
        }
    }
    changes
}

#[test]
fn gtkwave_reads_the_lines_of_the_vcd() {
    let vcd = export(Format::Vcd);
    let fst = EXPORTS.path().join("waves.fst");
    printed("debian/usr/bin/vcd2fst", &[text(&vcd), text(&fst)]);
    let back = printed("debian/usr/bin/fst2vcd", &[text(&fst)]);
    let written = changes(&std::fs::read_to_string(&vcd).unwrap());
    assert!(written.values().any(|values| values.len() > 20));
    assert_eq!(changes(&back), written);
}

#[test]
fn the_trace_is_as_perfetto_publishes_it_and_has_every_call_wait_and_request() {
    let script = root().join("tests/readers/perfetto_trace.py");
    let trace = export(Format::Perfetto);
    let read = printed("python/bin/python", &[text(&script), text(&trace)]);
    let read: serde_json::Value = serde_json::from_str(&read).unwrap();
    let slices = read["slices"].as_array().unwrap();
    let of = |category: &str| {
        let mut found: Vec<String> = slices
            .iter()
            .filter(|slice| slice["category"] == category)
            .map(|slice| {
                format!(
                    "{}|{}|{}",
                    slice["name"].as_str().unwrap(),
                    slice["begin_ns"],
                    slice["end_ns"]
                )
            })
            .collect();
        found.sort();
        found
    };
    let expected = |question: &str| -> Vec<String> {
        let rows = sqlite(question);
        sorted(&rows).into_iter().map(str::to_owned).collect()
    };
    assert_eq!(
        of("call"),
        expected(
            "SELECT kind, begin_ns, max(end_ns, begin_ns + 1) FROM syscalls
             WHERE kind NOT IN ('kernel', 'unrecorded')"
        )
    );
    assert_eq!(
        of("wait"),
        expected("SELECT 'waits: ' || class, begin_ns, max(woken_ns, begin_ns + 1) FROM waits")
    );
    let request = "SELECT op || ' ' || content";
    assert_eq!(
        of("device"),
        expected(&format!(
            "{request}, issued_ns, max(completed_ns, issued_ns + 1) FROM requests
             WHERE completed_ns IS NOT NULL"
        ))
    );
    assert_eq!(
        of("block"),
        expected(&format!(
            "{request}, queued_ns, max(issued_ns, queued_ns + 1) FROM requests
             WHERE queued_ns IS NOT NULL"
        ))
    );
    // Each arrow joins a call and a request that carried its data.
    let arrows = read["arrows"].as_array().unwrap();
    assert!(!arrows.is_empty());
    for arrow in arrows {
        let ends = arrow.as_array().unwrap().iter();
        let mut ends: Vec<_> = ends
            .map(|place| &slices[place.as_u64().unwrap() as usize]["category"])
            .collect();
        ends.sort_by_key(|category| category.as_str());
        assert_eq!(ends, ["call", "device"]);
    }
}
