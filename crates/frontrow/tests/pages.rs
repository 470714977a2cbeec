//! The documentation hangs together: each link leads somewhere, and each page is in the contents.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Folders of pages that people write; a program makes those of results.
pub const FOLDERS: [&str; 6] = [
    "",
    "docs",
    "docs/use",
    "docs/how",
    "docs/lab",
    "docs/develop",
];

/// All pages, by their paths from the root.
fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for directory in FOLDERS.into_iter().chain(["docs/results"]) {
        let entries = fs::read_dir(Path::new(ROOT).join(directory)).unwrap();
        let paths = entries.map(|it| Path::new(directory).join(it.unwrap().file_name()));
        pages.extend(paths.filter(|it| it.extension().is_some_and(|end| end == "md")));
    }
    pages.sort();
    pages
}

fn text_of(page: &Path) -> String {
    fs::read_to_string(Path::new(ROOT).join(page)).unwrap()
}

/// Where a page's links lead, those into the web left out. Code is no link.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if is_code || line.starts_with("    ") {
            continue;
        }
        let after = line.split("](").skip(1);
        let targets = after.filter_map(|it| it.split(')').next());
        links.extend(targets.filter(|it| !it.contains(':')).map(str::to_owned));
    }
    links
}

/// As GitHub and mdBook name a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter_map(|it| match it {
        ' ' => Some('-'),
        '-' | '_' => Some(it),
        it if it.is_alphanumeric() => Some(it.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

fn has_anchor(text: &str, wanted: &str) -> bool {
    let headings = text.lines().filter(|it| it.starts_with('#'));
    headings
        .map(|it| it.trim_start_matches('#').trim())
        .any(|it| anchor(it) == wanted)
}

fn leads_somewhere(page: &Path, link: &str) -> bool {
    let (file, section) = link.split_once('#').unwrap_or((link, ""));
    let target = match file {
        "" => page.to_owned(),
        _ => page.parent().unwrap().join(file),
    };
    let target = Path::new(ROOT).join(target);
    target.exists() && (section.is_empty() || has_anchor(&text_of(&target), section))
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_of_it() {
    let mut dead = Vec::new();
    let mut found = 0;
    for page in pages() {
        for link in links(&text_of(&page)) {
            found += 1;
            if !leads_somewhere(&page, &link) {
                dead.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{}", dead.join("\n"));
    assert!(found > 100, "{found} links");
}

#[test]
fn every_page_of_docs_is_in_its_contents_once() {
    let contents = links(&text_of(Path::new("docs/SUMMARY.md")));
    for page in pages() {
        let Ok(below) = page.strip_prefix("docs") else {
            continue;
        };
        if below == Path::new("SUMMARY.md") {
            continue;
        }
        let named = contents.iter().filter(|it| Path::new(it) == below).count();
        assert_eq!(named, 1, "docs/SUMMARY.md names {}", below.display());
    }
}

/// Lists that a table of the program has are whole in the pages.
#[test]
fn pages_name_all_that_the_tables_have() {
    let kernels = lab::Kernel::names();
    let devices = lab::Sources::embedded().device_names();
    let loads = record::load::listed().map(|(name, _)| name.to_owned());
    let workloads = record::workload::WORKLOADS
        .iter()
        .map(|it| it.name.to_owned());
    for (page, names) in [
        (
            "docs/lab/lab.md",
            kernels.split(", ").map(str::to_owned).collect(),
        ),
        ("docs/lab/simflash.md", devices),
        ("docs/use/bench.md", workloads.chain(loads).collect()),
    ] as [(&str, Vec<String>); 3]
    {
        let text = text_of(Path::new(page));
        let is_named = |name: &&String| text.contains(&format!("`{name}`"));
        let missing: Vec<_> = names.iter().filter(|it| !is_named(it)).collect();
        assert!(missing.is_empty(), "{page} lacks {missing:?}");
    }
}
