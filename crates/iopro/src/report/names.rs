//! Names on the report's pages. Recordings may be anybody's, and in one's own files and processes have
//! the names that others gave them. JSON has them as they are.

use super::{Count, Direction, File, Recording, Report, Top, Waiting};
use sys::plain::name;

fn escape(text: &mut String) {
    *text = name(text);
}

/// A name that the text page must not break: its words could begin a line.
fn escape_name(text: &mut String) {
    *text = name(text).replace(' ', "\u{a0}");
}

fn escape_any(text: &mut Option<String>) {
    text.iter_mut().for_each(escape_name);
}

fn escape_kinds(counts: &mut [Count]) {
    counts.iter_mut().for_each(|it| escape(&mut it.kind));
}

fn escape_waiting(waiting: &mut Waiting) {
    let longest = waiting.longest.iter_mut().map(|it| &mut it.what);
    for top in waiting.top.iter_mut().chain(longest) {
        let Top {
            process,
            call,
            file,
            other,
            ..
        } = top;
        escape_name(process);
        call.iter_mut().for_each(escape);
        [file, other].into_iter().for_each(escape_any);
    }
}

fn escape_io(io: &mut [Direction], files: &mut [File]) {
    for direction in io {
        escape(&mut direction.op);
        escape(&mut direction.content);
    }
    files.iter_mut().for_each(|it| escape_name(&mut it.path));
}

impl Report {
    /// The report whose names each stay on their line.
    pub(super) fn on_a_page(&self) -> Report {
        let mut report = self.clone();
        let Recording {
            kernel,
            target,
            ending,
            missing,
            lost,
            ..
        } = &mut report.recording;
        [kernel, target, ending].into_iter().for_each(escape);
        missing.iter_mut().for_each(escape);
        for counts in [lost, &mut report.writes, &mut report.reads] {
            escape_kinds(counts);
        }
        escape_waiting(&mut report.foreground);
        escape_waiting(&mut report.everybody);
        report.calls.iter_mut().for_each(|it| escape(&mut it.kind));
        report
            .unlinked
            .iter_mut()
            .for_each(|it| escape(&mut it.kind));
        escape_io(&mut report.io, &mut report.files);
        report
    }
}
