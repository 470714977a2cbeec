//! The terminal table as a user sees it.

use record::table::{self, Options};

#[test]
fn the_table_fits_its_width() {
    let result = crate::synthetic::result(&crate::synthetic::POLICIES, &[1, 2, 3, 4, 5]);
    for width in [60, 100, 140] {
        let table = table::render(
            &result,
            Options {
                width,
                ..Options::default()
            },
        );
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{width}: {widest:?}");
    }
}

#[test]
fn only_a_terminal_gets_colour() {
    let result = crate::synthetic::result(&["none", "frontrow"], &[1, 2]);
    let plain = table::render(&result, Options::default());
    assert!(!plain.contains('\u{1b}'));
    let coloured = table::render(
        &result,
        Options {
            color: true,
            ..Options::default()
        },
    );
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some(start) = rest.find('\u{1b}') {
        stripped.push_str(&rest[..start]);
        let end = rest[start..].find('m').unwrap();
        rest = &rest[start + end + 1..];
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
}

#[test]
fn columns_keep_the_order_of_the_experiment() {
    let result = crate::synthetic::result(&crate::synthetic::POLICIES, &[1]);
    let table = table::render(
        &result,
        Options {
            width: 200,
            ..Options::default()
        },
    );
    let heading = table
        .lines()
        .find(|line| line.contains("unloaded  "))
        .unwrap();
    let columns: Vec<&str> = heading.split_whitespace().collect();
    assert_eq!(
        columns,
        [
            "unloaded",
            "none",
            "mq-deadline",
            "kyber",
            "bfq",
            "frontrow"
        ]
    );
}
