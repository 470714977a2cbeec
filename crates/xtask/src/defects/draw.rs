//! A seeded mutator: candidates for the list of defects. The same seed and sources give the same bytes.

use super::list::{Defect, List};
use std::fs;
use std::process::ExitCode;
use sys::random::Random;

/// Texts and what is put in their place. Spaces around operators tell them from Rust's generics and C's arrows.
const REPLACED: [(&str, &str); 26] = [
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" == ", " != "),
    (" != ", " == "),
    (" && ", " || "),
    (" || ", " && "),
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " / "),
    (" / ", " * "),
    (" % ", " / "),
    (" += ", " -= "),
    (" -= ", " += "),
    (" >> ", " << "),
    ("..=", ".."),
    (".is_some()", ".is_none()"),
    (".is_none()", ".is_some()"),
    (".is_ok()", ".is_err()"),
    (".is_err()", ".is_ok()"),
    (".any(", ".all("),
    (".all(", ".any("),
    (".min(", ".max("),
    (".max(", ".min("),
    (".next()", ".last()"),
];

/// The same of whole words.
const WORDS: [(&str, &str); 4] = [
    ("true", "false"),
    ("false", "true"),
    ("min", "max"),
    ("max", "min"),
];

/// Draws of which none gives a new candidate, before drawing ends.
const MOST_IN_VAIN: usize = 1000;

/// Prints candidates: `draw FILE… --seed N --count K`.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let wanted = Wanted::of(arguments)?;
    let mut sources = Vec::new();
    for file in &wanted.files {
        let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        sources.push((file.clone(), text));
    }
    let defect = draw(&sources, wanted.seed, wanted.count);
    let list = toml::to_string(&List { defect }).map_err(|error| error.to_string())?;
    print!("{list}");
    Ok(ExitCode::SUCCESS)
}

/// How arguments were understood.
#[derive(Debug, PartialEq)]
struct Wanted {
    files: Vec<String>,
    seed: u64,
    count: usize,
}

impl Wanted {
    fn of(arguments: &[String]) -> Result<Self, String> {
        let usage = || "give draw FILE… --seed N --count K".to_owned();
        let (mut files, mut seed, mut count) = (Vec::new(), None, None);
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut number = || words.next().and_then(|it| it.parse().ok());
            match word.as_str() {
                "--seed" => seed = number(),
                "--count" => count = number(),
                option if option.starts_with('-') => return Err(usage()),
                file => files.push(file.to_owned()),
            }
        }
        match (seed, count, files.is_empty()) {
            (Some(seed), Some(count), false) => Ok(Self {
                files,
                seed,
                count: count as usize,
            }),
            _ => Err(usage()),
        }
    }
}

/// As many different candidates as `count`, or as there are.
fn draw(sources: &[(String, String)], seed: u64, count: usize) -> Vec<Defect> {
    let mut random = Random::for_purpose(seed, "defects");
    let mutations: Vec<Vec<Vec<Mutation>>> =
        sources.iter().map(|(_, text)| by_line(text)).collect();
    let mut drawn: Vec<Defect> = Vec::new();
    let mut in_vain = 0;
    while drawn.len() < count && in_vain < MOST_IN_VAIN {
        in_vain += 1;
        let at = random.index(sources.len());
        let lines = &mutations[at];
        if lines.is_empty() {
            continue;
        }
        // A line first: one with many operators is not likelier than another.
        let line = &lines[random.index(lines.len())];
        let mutation = &line[random.index(line.len())];
        let (file, text) = &sources[at];
        let defect = mutation.defect(file, text, seed);
        if !drawn.contains(&defect) {
            drawn.push(defect);
            in_vain = 0;
        }
    }
    drawn
}

/// One change of a line.
#[derive(Clone, Debug, PartialEq)]
struct Mutation {
    /// Index of the line.
    line: usize,
    /// The line with it; None if the line goes.
    is: Option<String>,
    /// Operator, as a phrase.
    what: String,
}

impl Mutation {
    fn defect(&self, file: &str, text: &str, seed: u64) -> Defect {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let first = begins(&lines, self.line, text);
        let before = lines[first..self.line].concat();
        // Without the last line's end, so that an entry of one line has none.
        let was = lines[self.line].trim_end_matches('\n');
        let is = self.is.as_deref().unwrap_or_default();
        Defect {
            name: format!("{file}:{}: {}", self.line + 1, self.what),
            file: file.to_owned(),
            was: format!("{before}{was}"),
            is: format!("{before}{is}"),
            test: test_of(file),
            build: None,
            seed: Some(seed),
        }
    }
}

/// Index of the line from which the text to line `last` is only once in the file.
fn begins(lines: &[&str], last: usize, text: &str) -> usize {
    let is_once = |first: &usize| {
        let block = lines[*first..=last].concat();
        text.matches(block.trim_end_matches('\n')).count() == 1
    };
    (0..=last).rev().find(is_once).unwrap_or(0)
}

/// The command that is likeliest to see a defect of `file`.
fn test_of(file: &str) -> String {
    let parts: Vec<&str> = file.split('/').collect();
    let stem = parts.last().map_or("", |it| it.trim_end_matches(".rs"));
    match parts[..] {
        ["crates", "xtask", ..] => format!("cargo test --locked -p xtask -- {stem}"),
        ["crates", name, ..] => format!("cargo test --locked -p {name} --lib -- {stem}"),
        ["kernel", "simflash", ..] => "target/simflash-test/check TEST".to_owned(),
        ["kernel", "iosched", "core", _] => "target/iosched-test/check".to_owned(),
        _ => "cargo test --locked -p frontrow --test guests -- torture::TEST".to_owned(),
    }
}

/// All changes there are, by line; only lines that have some.
fn by_line(text: &str) -> Vec<Vec<Mutation>> {
    let code = code(text);
    let mut all = Vec::new();
    let mut begin = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let is_code = &code[begin..begin + line.len()];
        begin += line.len();
        if line.starts_with("mod tests") || line.starts_with("#[cfg(test)]") {
            break;
        }
        let of_line = of_line(number, line.trim_end_matches('\n'), is_code);
        if !of_line.is_empty() {
            all.push(of_line);
        }
    }
    all
}

fn of_line(number: usize, line: &str, is_code: &[bool]) -> Vec<Mutation> {
    let trimmed = line.trim_start();
    if ["#", "use ", "pub use ", "//", "const fn "]
        .iter()
        .any(|it| trimmed.starts_with(it))
    {
        return Vec::new();
    }
    let mut changes = Vec::new();
    let mut change = |at: usize, length: usize, is: &str| {
        let was = &line[at..at + length];
        changes.push(Mutation {
            line: number,
            is: Some(format!("{}{is}{}", &line[..at], &line[at + length..])),
            what: format!("{} is {}", was.trim(), is.trim()),
        });
    };
    for (was, is) in REPLACED {
        let places = line.match_indices(was).map(|(at, _)| at);
        for at in places.filter(|at| is_code[*at] && !is_no_operator(line, *at, was)) {
            change(at, was.len(), is);
        }
    }
    for (at, word) in words(line).into_iter().filter(|(at, _)| is_code[*at]) {
        // Two arms for the same value would not compile.
        let is_arm = line[at + word.len()..].starts_with(" =>");
        if let Some((_, is)) = WORDS.iter().find(|(was, _)| *was == word && !is_arm) {
            change(at, word.len(), is);
        }
        if let Ok(value) = word.parse::<u32>() {
            change(at, word.len(), &value.saturating_add(1).to_string());
        }
    }
    for at in negations(line).filter(|at| is_code[*at]) {
        change(at, 1, "");
    }
    if is_check(trimmed) {
        changes.push(Mutation {
            line: number,
            is: None,
            what: format!("no {trimmed}"),
        });
    }
    changes
}

/// Whether it is Rust's closure without arguments, or one of several traits that a type has.
fn is_no_operator(line: &str, at: usize, was: &str) -> bool {
    let (before, after) = (&line[..at], &line[at + was.len()..]);
    let is_closure = || {
        ["=", "(", ",", "mut", "move"]
            .iter()
            .any(|it| before.ends_with(it))
    };
    let mut letters = after.chars();
    let is_trait = |first: Option<char>, next: Option<char>| {
        let is_camel =
            first.is_some_and(char::is_uppercase) && next.is_some_and(char::is_lowercase);
        is_camel || first == Some('\'')
    };
    match was {
        " || " => is_closure(),
        " + " => is_trait(letters.next(), letters.next()),
        _ => false,
    }
}

/// Words and numbers, with their places. What has a point in it or before it is none.
fn words(line: &str) -> Vec<(usize, &str)> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '.';
    let mut words = Vec::new();
    let mut at = 0;
    for piece in line.split_inclusive(|letter| !is_part(letter)) {
        let word = piece.trim_end_matches(|letter| !is_part(letter));
        words.push((at, word));
        at += piece.len();
    }
    words
}

/// Places of `!` before a name or a bracket, of macros and of `!=` none.
fn negations(line: &str) -> impl Iterator<Item = usize> {
    let letters = line.as_bytes();
    let is_name = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    line.match_indices('!').map(|(at, _)| at).filter(move |at| {
        let before = at.checked_sub(1).map(|it| letters[it]);
        let after = letters.get(at + 1).copied().unwrap_or(b' ');
        !before.is_some_and(|it| is_name(it) || it == b'#') && (is_name(after) || after == b'(')
    })
}

/// A statement that only returns early: `check(value)?;`.
fn is_check(trimmed: &str) -> bool {
    let balanced = trimmed.matches('(').count() == trimmed.matches(')').count();
    let is_name = trimmed.starts_with(|letter: char| letter.is_ascii_lowercase());
    let keeps = ["let ", "return ", "match "];
    trimmed.ends_with(")?;")
        && balanced
        && is_name
        && !keeps.iter().any(|it| trimmed.starts_with(it))
        && !trimmed.contains(" = ")
}

/// Where in `text`, by byte, there is code: no comment, no string.
fn code(text: &str) -> Vec<bool> {
    let bytes = text.as_bytes();
    let mut code = vec![false; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest {
            [b'/', b'/', ..] => until(rest, b"\n", 2),
            [b'/', b'*', ..] => until(rest, b"*/", 2),
            [b'r', b'#', b'"', ..] => until(rest, b"\"#", 3),
            [b'"', ..] => string(rest),
            [b'\'', b'\\', _, ..] => until(rest, b"'", 3),
            [b'\'', _, b'\'', ..] => 3,
            _ => {
                code[at] = true;
                1
            }
        };
        at += length;
    }
    code
}

/// Length of what ends with `end`, which is looked for from `from` on.
fn until(rest: &[u8], end: &[u8], from: usize) -> usize {
    let found = (from..rest.len()).find(|at| rest[*at..].starts_with(end));
    found.map_or(rest.len(), |at| at + end.len())
}

/// Length of a string with its quotes.
fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    rest.len().min(at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUST: &str = r##"
use std::io; // 1 < 2
/// Whether a < b.
fn is_less(a: u64, b: u64) -> io::Result<bool> {
    check(a, b)?;
    println!("{} < {}", a, 'b');
    Ok(a < b && !b.is_some()) // never
}

fn is_less_too(a: u64, b: u64) -> bool {
    a + 10 < b
}
#[cfg(test)]
mod tests {
    fn none() -> bool {
        1 < 2
    }
}
"##;

    fn changes(text: &str) -> Vec<(Option<String>, String)> {
        let all = by_line(text).concat();
        all.into_iter().map(|it| (it.is, it.what)).collect()
    }

    #[test]
    fn code_is_changed_and_neither_comments_nor_strings_nor_tests() {
        let whats: Vec<String> = changes(RUST).into_iter().map(|it| it.1).collect();
        let expected = [
            "no check(a, b)?;",
            "< is <=",
            "&& is ||",
            ".is_some() is .is_none()",
            "! is ",
            "< is <=",
            "+ is -",
            "10 is 11",
        ];
        assert_eq!(whats, expected);
    }

    #[test]
    fn each_operator_changes_what_it_names() {
        for (was, is) in [
            ("x = true;", "x = false;"),
            ("y = min(a, b);", "y = max(a, b);"),
            ("if (!ready)", "if (ready)"),
            ("n += step;", "n -= step;"),
            ("for it in 0..=n {", "for it in 0..n {"),
            ("buffer[7] = a;", "buffer[8] = a;"),
        ] {
            assert_eq!(changes(was)[0].0.as_deref(), Some(is));
        }
        for sound in [
            "a->b",
            "Vec<u8>",
            "x1 = 1.5;",
            "assert!(a);",
            "#if 1",
            "/* 1 */",
        ] {
            assert_eq!(changes(sound), [], "{sound}");
        }
    }

    #[test]
    fn the_same_seed_draws_the_same_and_each_candidate_applies() {
        let sources = [("crates/sys/src/less.rs".to_owned(), RUST.to_owned())];
        let drawn = draw(&sources, 7, 5);
        assert_eq!(drawn, draw(&sources, 7, 5));
        assert_ne!(drawn, draw(&sources, 8, 5));
        assert_eq!(drawn.len(), 5);
        for defect in drawn {
            assert_ne!(defect.applied_to(RUST).as_deref(), Ok(RUST));
            assert_eq!(defect.test, "cargo test --locked -p sys --lib -- less");
        }
        assert_eq!(draw(&sources, 7, 100).len(), 8);
    }

    #[test]
    fn a_line_that_is_twice_is_named_with_those_before_it() {
        let text = "fn one() {\n    a < b\n}\nfn two() {\n    a < b\n}\n";
        let sources = [("f".to_owned(), text.to_owned())];
        let was: Vec<String> = (draw(&sources, 1, 9).into_iter())
            .map(|it| it.was)
            .collect();
        assert_eq!(was.len(), 2);
        assert!(was.contains(&"fn two() {\n    a < b".to_owned()), "{was:?}");
    }

    #[test]
    fn files_a_seed_and_a_count_are_asked_for() {
        let wanted = |line: &str| Wanted::of(&super::super::list::words(line));
        let files = vec!["a.rs".to_owned(), "b.rs".to_owned()];
        let (seed, count) = (3, 2);
        let expected = Wanted { files, seed, count };
        assert_eq!(wanted("a.rs b.rs --seed 3 --count 2"), Ok(expected));
        for wrong in ["a.rs --seed 3", "--seed 3 --count 2", "a.rs --fast"] {
            assert!(wanted(wrong).is_err());
        }
    }
}
