//! Reports as a reader opens them: on a phone, a tablet and a screen, in the dark, on paper, with a
//! keyboard and by a screen reader. Pages, pictures of them and PDFs stay in
//! target/*/tmp/reports.

use crate::browser::Browser;
use crate::events::Stream;
use record::ResultFile;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Widths in pixels: of a phone, a tablet and a screen.
const SHOWN: [(u32, &str); 4] = [
    (390, "light"),
    (800, "light"),
    (1600, "light"),
    (800, "dark"),
];
/// A4 without its margins, in CSS pixels.
const PAPER: u32 = 718;

/// Results that the lab has measured, cut down.
const SAMPLES: [&str; 9] = [
    "calibrate",
    "fasttrack",
    "foreground",
    "fragments",
    "janusd",
    "launch",
    "overhead",
    "qasio",
    "storage",
];

fn sample(name: &str) -> PathBuf {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record/tests/samples");
    samples.join(format!("{name}.json"))
}

fn result(name: &str) -> ResultFile {
    serde_json::from_slice(&fs::read(sample(name)).unwrap()).unwrap()
}

fn directory() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reports");
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Three fsyncs of an app wait for another app's writes.
fn recording() -> String {
    let mut stream = Stream::new();
    stream.fsyncs_behind_another_app();
    let report = iopro::report::Report::of(&stream.link().0).unwrap();
    iopro::report::html(&report)
}

/// The page that `frontrow bench compare` writes of a result and of one that is twice as fast.
fn comparison(out: &Path) {
    let mut after = result("bench-before");
    for row in &mut after.rows {
        row.policy = "frontrow".to_owned();
        row.value /= 2.0;
    }
    let after_path = directory().join("bench-after.json");
    fs::write(&after_path, serde_json::to_string(&after).unwrap()).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_frontrow"))
        .args(["bench", "compare"])
        .args([&sample("bench-before"), &after_path])
        .arg("--html")
        .arg(out)
        .status();
    assert!(status.unwrap().success());
}

/// Every page that the program writes, by its name.
fn pages() -> Vec<(String, PathBuf)> {
    let place = |name: &str| directory().join(format!("{name}.html"));
    let mut pages = Vec::new();
    let mut keep = |name: &str, page: String| {
        fs::write(place(name), page).unwrap();
        pages.push((name.to_owned(), place(name)));
    };
    for name in SAMPLES {
        keep(name, record::html::render(&result(name)));
    }
    let whole = crate::synthetic::result(&crate::synthetic::POLICIES, &[1, 2, 3, 4, 5]);
    keep("whole", record::html::render(&whole));
    keep("bench", record::html::render(&result("bench-before")));
    keep("iopro", recording());
    for (name, page) in crate::diagnoses::pages() {
        keep(name, page);
    }
    comparison(&place("compare"));
    pages.push(("compare".to_owned(), place("compare")));
    pages
}

/// The keyboard reaches everything that can be scrolled, opened or followed, and shows where it is.
fn faults_of_keyboard(browser: &mut Browser) -> Vec<String> {
    let reachable = "[...document.querySelectorAll('a[href], summary, [tabindex=\"0\"]')]\
                     .filter(it => it.checkVisibility())";
    let wanted = browser
        .ask(&format!("{reachable}.length"))
        .as_u64()
        .unwrap();
    let mut faults = Vec::new();
    for place in 0..wanted {
        browser.press_tab();
        let (at, outlined) = (
            browser.ask(&format!("{reachable}.indexOf(document.activeElement)")),
            browser.ask("getComputedStyle(document.activeElement).outlineStyle !== 'none'"),
        );
        if at != place || outlined != true {
            faults.push(format!(
                "Tab {place} of {wanted} leads to {at}, outlined: {outlined}"
            ));
        }
    }
    let unnamed = browser.ask(
        "[...document.querySelectorAll('[tabindex=\"0\"]')]\
         .filter(it => !it.getAttribute('aria-label')).length",
    );
    if unnamed != 0 {
        faults.push(format!("{unnamed} scrolled parts have no name"));
    }
    faults
}

fn faults_of_pictures(browser: &mut Browser) -> Vec<String> {
    let names = browser.names_of_pictures();
    let drawn = browser
        .ask("[...document.querySelectorAll('svg')].filter(it => it.checkVisibility()).length");
    match names.iter().all(|it| it.len() > 4) && drawn == names.len() {
        true => Vec::new(),
        false => vec![format!(
            "a screen reader finds {names:?} of {drawn} pictures"
        )],
    }
}

/// What is wrong with one page anywhere.
fn faults_of(browser: &mut Browser, name: &str, page: &Path) -> Vec<String> {
    let mut all = Vec::new();
    let mut note = |how: &str, faults: Vec<String>| {
        all.extend(faults.into_iter().map(|it| format!("{name}, {how}: {it}")));
    };
    for (width, scheme) in SHOWN {
        browser.show_as("screen", scheme);
        browser.open(page, width);
        browser.ask("document.querySelectorAll('details').forEach(it => it.open = true)");
        note(&format!("{width} px, {scheme}"), browser.faults());
        browser.screenshot(&directory().join(format!("{name}-{width}-{scheme}.png")));
    }
    note("keyboard", faults_of_keyboard(browser));
    note("screen reader", faults_of_pictures(browser));
    browser.open(page, PAPER);
    browser.show_as("print", "light");
    note("print", browser.faults());
    let cut = browser.ask(
        "[...document.querySelectorAll('.scroll')].filter(it => it.scrollWidth > it.clientWidth).length",
    );
    if cut != 0 {
        note("print", vec![format!("{cut} tables are cut off")]);
    }
    browser.print(&directory().join(format!("{name}.pdf")));
    all
}

#[test]
fn every_report_is_whole_on_any_screen_and_on_paper() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let faults: Vec<String> = pages()
        .into_iter()
        .flat_map(|(name, page)| faults_of(&mut browser, &name, &page))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The checks themselves: a page with one fault of each kind.
#[test]
fn what_is_wrong_with_a_page_is_found() {
    let page = directory().join("wrong.html");
    let wrong = "<!doctype html><body style='margin:0;background:#fff'><main>\
        <p style='width:2000px'>wide</p>\
        <svg viewBox='0 0 400 20' style='width:300px'><title>nothing</title></svg>\
        <figure style='width:300px'><svg viewBox='0 0 400 20'><title>silent</title>\
        <rect width='9' height='9'/><text x='380' y='9' font-size='40'>out of it</text></svg></figure>\
        <p style='position:absolute;top:300px;left:0'>one text</p>\
        <p style='position:absolute;top:300px;left:9px'>another</p>\
        <p style='color:#ccc'>pale</p><p style='font-size:6px'>tiny</p>\
        <script>console.log('hello')</script></main></body>";
    fs::write(&page, wrong).unwrap();
    let Some(mut browser) = Browser::start() else {
        return;
    };
    browser.open(&page, 390);
    let found = browser.faults().join("\n");
    for part in [
        "px wide",
        "nothing: an empty picture",
        "silent: hover tells no value",
        "\"out of it\" runs out of its frame",
        "\"one text\" and \"another\" overlap",
        "\"pale\" is hard to tell from its background",
        "\"tiny\" is 6.0 px",
        "console:",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
}
