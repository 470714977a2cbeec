//! How far long work has come, for somebody who looks.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};

/// A bar on standard error, drawn as indicatif's `template` says; hidden where that is no
/// terminal.
pub fn bar(template: &str) -> ProgressBar {
    let bar = match io::stderr().is_terminal() {
        true => ProgressBar::new(0),
        false => ProgressBar::hidden(),
    };
    let style = ProgressStyle::with_template(template);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
