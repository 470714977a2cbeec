//! Pages and help texts are in plain English: sentences of at most 30 words, and common ones.
//! Vale is in none of the archives that `make test` takes things from; harper's limit is 40 words.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

const MOST_WORDS: usize = 30;

/// Pages whose long sentences are not all mended, with how many they have. None is to be added.
const LEFT: [(&str, usize); 0] = [];

/// Words and the plainer ones for them.
const PLAINER: [(&str, &str); 22] = [
    ("aforementioned", "this"),
    ("albeit", "though"),
    ("amongst", "among"),
    ("commence", "begin"),
    ("facilitate", "help"),
    ("henceforth", "from now on"),
    ("heretofore", "until now"),
    ("hitherto", "until now"),
    ("in order to", "to"),
    ("in the event that", "if"),
    ("leverage", "use"),
    ("notwithstanding", "despite"),
    ("prior to", "before"),
    ("subsequently", "then"),
    ("thereof", "of it"),
    ("upon", "on"),
    ("utilise", "use"),
    ("utilize", "use"),
    ("whereby", "by which"),
    ("wherein", "in which"),
    ("whereof", "of which"),
    ("whilst", "while"),
];

/// Sentences of a page of Markdown. Code, tables and headings have none.
fn sentences_of_page(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    let mut is_code = false;
    for line in text.lines() {
        let fence = line.starts_with("```");
        is_code ^= fence;
        let item = line.trim_start();
        let item = ["- ", "* "].iter().find_map(|mark| item.strip_prefix(mark));
        let is_none = fence || is_code || line.starts_with("    ") || line.trim().is_empty();
        if is_none || line.trim_start().starts_with(['|', '#']) {
            paragraphs.push(String::new());
            continue;
        }
        if item.is_some() || is_numbered(line) {
            paragraphs.push(String::new());
        }
        let last = paragraphs.last_mut().unwrap();
        last.push(' ');
        last.push_str(item.unwrap_or(line).trim());
    }
    paragraphs
        .iter()
        .flat_map(|it| sentences(&plain(it)))
        .collect()
}

fn is_numbered(line: &str) -> bool {
    let rest = line
        .trim_start()
        .trim_start_matches(|it: char| it.is_ascii_digit());
    rest.len() < line.trim_start().len() && rest.starts_with(". ")
}

/// Sentences of a man page, which has the help text.
fn sentences_of_help(text: &str) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for line in text.lines() {
        // A request of roff's, or a line that stays as it is.
        if line.starts_with('.') || line.starts_with("  ") || line.trim().is_empty() {
            paragraphs.push(String::new());
            continue;
        }
        let last = paragraphs.last_mut().unwrap();
        last.push(' ');
        last.push_str(line);
    }
    let unescaped = |it: &String| {
        it.replace("\\-", "-")
            .replace("\\fB", "")
            .replace("\\fR", "")
    };
    let texts = paragraphs.iter().map(unescaped);
    texts.flat_map(|it| sentences(&it)).collect()
}

/// The text without its code, the targets of its links, and emphasis.
fn plain(text: &str) -> String {
    let mut kept = String::new();
    for (place, part) in text.split('`').enumerate() {
        kept.push_str(if place % 2 == 0 { part } else { "CODE" });
    }
    let mut without_targets = String::new();
    for (place, part) in kept.split("](").enumerate() {
        let shown = match place {
            0 => part,
            _ => part.split_once(')').map_or("", |(_, rest)| rest),
        };
        without_targets.push_str(shown);
    }
    without_targets.replace(['[', ']', '*'], "")
}

/// A sentence ends with a full stop, a colon or the like before a capital letter.
fn sentences(paragraph: &str) -> Vec<String> {
    let words: Vec<&str> = paragraph.split_whitespace().collect();
    let mut all = Vec::new();
    let mut sentence: Vec<&str> = Vec::new();
    for (place, word) in words.iter().enumerate() {
        sentence.push(word);
        let ends = word
            .trim_end_matches([')', '"'])
            .ends_with(['.', '!', '?', ':', ';']);
        let next = words.get(place + 1).and_then(|it| it.chars().next());
        let begins =
            next.is_none_or(|it| it.is_uppercase() || it.is_ascii_digit() || "(\"".contains(it));
        if ends && begins {
            all.push(sentence.join(" "));
            sentence.clear();
        }
    }
    all.push(sentence.join(" "));
    all
}

fn is_long(sentence: &str) -> bool {
    sentence.split_whitespace().count() > MOST_WORDS
}

fn plainer(sentence: &str) -> Option<(&'static str, &'static str)> {
    let letters = |it: char| {
        if it.is_alphabetic() {
            it.to_ascii_lowercase()
        } else {
            ' '
        }
    };
    let text: String = sentence.chars().map(letters).collect();
    let text = format!(
        " {} ",
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    );
    let mut words = PLAINER.into_iter();
    words.find(|(word, _)| text.contains(&format!(" {word} ")))
}

/// Pages for readers, by name. Results are made by the program, and measure rather than tell.
fn pages() -> BTreeMap<String, String> {
    let mut pages = BTreeMap::new();
    for directory in crate::pages::FOLDERS {
        for entry in fs::read_dir(Path::new(ROOT).join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|it| it == "md") {
                let name = path.file_name().unwrap().to_str().unwrap();
                let name = Path::new(directory).join(name).display().to_string();
                pages.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    assert!(pages.len() > 25, "{:?}", pages.keys());
    pages
}

/// Man pages, by name.
fn helps() -> BTreeMap<String, String> {
    let directory = tempfile::tempdir().unwrap();
    for program in [
        env!("CARGO_BIN_EXE_frontrow"),
        env!("CARGO_BIN_EXE_frontrow-lab"),
    ] {
        let status = Command::new(program)
            .arg("man")
            .arg(directory.path())
            .stdout(std::process::Stdio::null())
            .status();
        assert!(status.unwrap().success());
    }
    let entries = fs::read_dir(directory.path()).unwrap();
    let paths: Vec<PathBuf> = entries.map(|it| it.unwrap().path()).collect();
    let read = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    paths.iter().map(read).collect()
}

#[test]
fn sentences_of_pages_are_short() {
    let mut wrong = Vec::new();
    for (name, text) in pages() {
        let sentences = sentences_of_page(&text);
        let long: Vec<&String> = sentences.iter().filter(|it| is_long(it)).collect();
        let allowed = LEFT
            .iter()
            .find(|(page, _)| *page == name)
            .map_or(0, |it| it.1);
        if long.len() > allowed {
            wrong.extend(long.iter().map(|it| format!("{name}: {it}")));
        } else if long.len() < allowed {
            wrong.push(format!(
                "{name} has {} long sentences now: say so here",
                long.len()
            ));
        }
    }
    let count = wrong.len();
    assert!(
        wrong.is_empty(),
        "{count}, above {MOST_WORDS} words:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn sentences_of_help_are_short() {
    let mut wrong = Vec::new();
    for (name, text) in helps() {
        let sentences = sentences_of_help(&text).into_iter();
        wrong.extend(
            sentences
                .filter(|it| is_long(it))
                .map(|it| format!("{name}: {it}")),
        );
    }
    wrong.sort();
    assert!(
        wrong.is_empty(),
        "above {MOST_WORDS} words:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn words_are_plain() {
    let mut wrong = Vec::new();
    let of_pages = pages()
        .into_iter()
        .map(|(name, text)| (name, sentences_of_page(&text)));
    let of_helps = helps()
        .into_iter()
        .map(|(name, text)| (name, sentences_of_help(&text)));
    for (name, sentences) in of_pages.chain(of_helps) {
        for sentence in sentences {
            if let Some((word, instead)) = plainer(&sentence) {
                wrong.push(format!("{name}: {word:?}, better {instead:?}: {sentence}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The checks themselves.
#[test]
fn long_sentences_and_rare_words_are_found() {
    let long = "word ".repeat(MOST_WORDS) + "end.";
    let page =
        format!("# {long}\n\n{long} Next one.\n\n- `code of many words here` [link]({long})\n");
    let sentences = sentences_of_page(&page);
    assert_eq!(
        sentences.iter().filter(|it| is_long(it)).count(),
        1,
        "{sentences:?}"
    );
    assert!(sentences.contains(&"Next one.".to_owned()));
    assert!(sentences.contains(&"CODE link".to_owned()), "{sentences:?}");
    assert_eq!(plainer("In order\nto go."), Some(("in order to", "to")));
    assert_eq!(plainer("It goes, once it commenced."), None);
    let help = format!(".SH DESCRIPTION\n{long}\n.TP\n\\fB\\-\\-json\\fR\nPrint JSON\n");
    let sentences = sentences_of_help(&help);
    assert_eq!(sentences.iter().filter(|it| is_long(it)).count(), 1);
    assert!(
        sentences.contains(&"--json Print JSON".to_owned()),
        "{sentences:?}"
    );
}
