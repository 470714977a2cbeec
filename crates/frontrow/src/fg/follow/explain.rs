//! Prints what is seen, whom it is taken for, and why.

use super::Listener;
use super::seen::{Focused, Seen, Taken};
use crate::exit::Failure;
use crate::print::{json_line, plain, print_text};
use foreground::{Cgroup, Process, Window};
use serde_json::{Value, json};
use std::os::fd::BorrowedFd;
use std::time::Instant;

/// Prints each change.
pub struct Explainer {
    json: bool,
    last: Option<Seen>,
}

impl Explainer {
    pub fn new(json: bool) -> Self {
        Explainer { json, last: None }
    }
}

impl Listener for Explainer {
    fn hear(&mut self, seen: Seen) -> Result<(), Failure> {
        if self.last.as_ref() == Some(&seen) {
            return Ok(());
        }
        let text = match self.json {
            true => json_line(&value(&seen)),
            false => plain(&words(&seen)),
        };
        self.last = Some(seen);
        print_text(&(text + "\n"))
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn go_on(&mut self) {}

    fn end(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

fn words(seen: &Seen) -> String {
    let mut lines = Vec::new();
    match &seen.focus {
        Focused::Nobody => lines.push("No window: the last app stays the foreground".to_owned()),
        Focused::Desktop => lines.push("The desktop itself: no app is foreground".to_owned()),
        Focused::Window(taken) => {
            lines.push(format!("Window: {}", name(&taken.window)));
            lines.push(format!("  foreground: {}", units(taken)));
            lines.push(format!("  because:    {}", taken.found.why));
        }
    }
    for (taken, percent) in &seen.beside {
        lines.push(format!(
            "  visible:    {} ({percent} %)",
            name(&taken.window)
        ));
        lines.push(format!(
            "              {}: {}",
            units(taken),
            taken.found.why
        ));
    }
    lines.push(format!("  seen by:    {}", seen.by));
    lines.join("\n")
}

fn name(window: &Window) -> String {
    if *window == Window::default() {
        return "not told".to_owned();
    }
    let process = match window.process {
        Some(Process::Pid(pid)) => format!("process {pid}"),
        Some(Process::ClaimedPid(pid)) => format!("process {pid} by its own word"),
        None => "unknown process".to_owned(),
    };
    match window.names.is_empty() {
        true => format!("without a name, {process}"),
        false => format!("{}, {process}", window.names.join(" or ")),
    }
}

fn units(taken: &Taken) -> String {
    match taken.found.units.as_slice() {
        [] => "none".to_owned(),
        units => {
            let paths: Vec<_> = units.iter().map(Cgroup::path).collect();
            paths.join(", ")
        }
    }
}

fn value(seen: &Seen) -> Value {
    let taken = |taken: &Taken| {
        json!({
            "window": taken.window,
            "units": taken.found.units,
            "why": taken.found.why,
        })
    };
    let (focus, foreground) = match &seen.focus {
        Focused::Nobody => ("nobody", Value::Null),
        Focused::Desktop => ("desktop", Value::Null),
        Focused::Window(window) => ("window", taken(window)),
    };
    let beside = seen.beside.iter().map(|(window, percent)| {
        let mut value = taken(window);
        value["percent"] = json!(percent);
        value
    });
    json!({
        "by": seen.by,
        "focus": focus,
        "foreground": foreground,
        "visible": beside.collect::<Vec<_>>(),
    })
}
