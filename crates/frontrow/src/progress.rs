//! Progress of long work.

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use std::io::{self, IsTerminal};
use std::thread;
use std::time::Duration;
use sys::confine;

/// A bar on standard error with indicatif's `template`; hidden unless that is a terminal.
pub fn bar(template: &str) -> ProgressBar {
    let bar = match io::stderr().is_terminal() {
        true => ProgressBar::new(0),
        false => ProgressBar::hidden(),
    };
    let style = ProgressStyle::with_template(template);
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// A line that tells how much of a measurement's `length` has passed; it is removed when dropped.
pub fn watching(length: Duration) -> ProgressBar {
    let all = HumanDuration(length);
    timed(&format!(
        "Watching, {{elapsed}} of {all}: do now what stutters. Ctrl-C ends it early."
    ))
}

/// A line that tells what goes on and since when; it is removed when dropped. For work of another
/// program's, of which nobody knows how much is left.
pub fn waiting_for(what: &str) -> ProgressBar {
    timed(&format!("{what}, {{elapsed}}"))
}

fn timed(template: &str) -> ProgressBar {
    let line = bar(template);
    // Its thread would keep this one's capabilities, whatever this one gives up later.
    thread::scope(|scope| {
        scope.spawn(|| {
            if confine::drop_capabilities().is_ok() {
                line.enable_steady_tick(Duration::from_secs(1));
            }
        });
    });
    line
}

/// Estimated time for the rest of `all`: `, about 2 minutes left`. Empty for the first seconds, and
/// until the first part is done.
pub fn left(elapsed: Duration, done: u64, all: u64) -> String {
    let left = elapsed.mul_f64(all.saturating_sub(done) as f64 / done.max(1) as f64);
    match done > 0 && left > Duration::from_secs(5) {
        true => format!(", about {} left", HumanDuration(left)),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_follows_from_what_is_done() {
        let minute = Duration::from_secs(60);
        assert_eq!(left(minute, 0, 4), "");
        assert_eq!(left(minute, 1, 4), ", about 3 minutes left");
        assert_eq!(left(minute, 4, 4), "");
        assert_eq!(left(Duration::from_secs(3), 2, 4), "");
    }
}
