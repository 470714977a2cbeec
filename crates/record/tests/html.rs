//! The report as a reader opens it.

mod synthetic;

use record::html;
use std::path::Path;

#[test]
fn the_report_stands_alone() {
    let page = html::render(&synthetic::result(&synthetic::POLICIES, &[1, 2, 3, 4, 5]));
    std::fs::write(
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.html"),
        &page,
    )
    .unwrap();
    for outside in ["http://", "https://", "src=", "<script", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}
