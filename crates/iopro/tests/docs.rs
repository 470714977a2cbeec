//! Checks that the profiler's pages describe the tables as they are.

use iopro::tables::{Kind, TABLES};
use iopro::wait::Class;

/// The description of all tables, as the page must contain it.
fn schema() -> String {
    let mut text = String::new();
    for table in TABLES {
        let doc: Vec<&str> = table.doc.iter().map(|line| line.trim()).collect();
        text.push_str(&format!("\n### {}\n\n{}\n\n", table.name, doc.join(" ")));
        text.push_str("| column | type | meaning |\n|---|---|---|\n");
        for column in table.columns {
            let kind = match column.kind {
                Kind::Integer => "integer",
                Kind::Boolean => "boolean",
                Kind::Real => "real",
                Kind::Text => "text",
            };
            let nullable = if column.nullable { " or NULL" } else { "" };
            let doc: Vec<&str> = column.doc.iter().map(|line| line.trim()).collect();
            let doc = doc.join(" ");
            text.push_str(&format!("| {} | {kind}{nullable} | {doc} |\n", column.name));
        }
    }
    text
}

#[test]
fn the_page_has_every_table_and_column() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/how/iopro-tables.md"
    );
    let page = std::fs::read_to_string(path).unwrap();
    let schema = schema();
    assert!(
        page.contains(&schema),
        "docs/how/iopro-tables.md differs from the tables; its schema is to be:\n{schema}"
    );
}

#[test]
fn the_page_defines_every_class() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/use/iopro.md");
    let page = std::fs::read_to_string(path).unwrap();
    for class in Class::ALL {
        assert!(
            page.contains(&format!("| {} |", class.name())),
            "{}",
            class.name()
        );
    }
}
