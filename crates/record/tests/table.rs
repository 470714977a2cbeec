//! The terminal table as a user sees it.

mod synthetic;

use record::table::{self, Options};

#[test]
fn the_table_fits_its_width() {
    let result = synthetic::result(&synthetic::POLICIES, &[1, 2, 3, 4, 5]);
    for width in [60, 100, 140] {
        let table = table::render(
            &result,
            Options {
                width,
                ..Options::default()
            },
        );
        if width == 100 {
            println!("{table}");
        }
        let widest = table.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{width}: {widest:?}");
    }
}
