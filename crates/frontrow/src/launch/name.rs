//! The name of an app's profile, by its command line. Two apps must not share one, so a program that only
//! runs others does not give its own name.

use std::path::Path;

/// Longest name that is made; names of files may have 255 bytes.
const LIMIT_BYTES: usize = 200;

/// Programs that run a script, which is the app. Their versions may follow: python3.12.
const INTERPRETERS: [&str; 14] = [
    "bash", "dash", "fish", "java", "lua", "mono", "node", "perl", "php", "python", "ruby", "sh",
    "wine", "zsh",
];

/// Directory with a link to each of Snap's apps.
const SNAPS: &str = "/snap/bin/";

/// Name for the app that a command line starts; None for an empty one. It has letters, digits and `._+-@`
/// only, and others as `_`.
pub(super) fn of(words: &[&str]) -> Option<String> {
    let mut words = words.iter().copied().skip_while(|it| is_before(it));
    let path = words.next()?;
    let program = path.rsplit('/').next().filter(|it| !it.is_empty())?;
    let rest: Vec<&str> = words.collect();
    let of_runner = match program {
        "flatpak" => run(&rest).map(str::to_owned),
        "snap" => run(&rest).map(|it| format!("snap.{it}")),
        "steam" => game(&rest).map(|it| format!("steam.{it}")),
        _ if path.contains(SNAPS) => Some(format!("snap.{program}")),
        _ if is_interpreter(program) => script(program, &rest),
        _ => None,
    };
    Some(plain(&of_runner.unwrap_or_else(|| program.to_owned())))
}

/// `env` and its assignments are before the program.
fn is_before(word: &str) -> bool {
    word == "env" || word.ends_with("/env") || word.contains('=') && !word.starts_with('/')
}

fn is_interpreter(program: &str) -> bool {
    let name = program.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    INTERPRETERS.contains(&name)
}

/// The app of `flatpak run OPTIONS APP` and `snap run OPTIONS APP`.
fn run<'a>(rest: &[&'a str]) -> Option<&'a str> {
    let at = rest.iter().position(|it| *it == "run")?;
    rest[at + 1..]
        .iter()
        .copied()
        .find(|it| !it.starts_with('-'))
}

/// The game of `steam steam://rungameid/ID` and `steam -applaunch ID`.
fn game<'a>(rest: &[&'a str]) -> Option<&'a str> {
    let of_link = rest
        .iter()
        .find_map(|it| it.strip_prefix("steam://rungameid/"));
    let at = rest.iter().position(|it| *it == "-applaunch");
    of_link.or_else(|| rest.get(at? + 1).copied())
}

/// Interpreter and script: by the script's whole path, since many are called `main`. A module (`-m`) has a
/// name of its own; a command (`-c`) has none.
fn script(program: &str, rest: &[&str]) -> Option<String> {
    let mut rest = rest.iter();
    let name = loop {
        match *rest.next()? {
            "-m" => break (*rest.next()?).to_owned(),
            "-jar" => break path(rest.next()?),
            "-c" | "-e" => return None,
            "-cp" | "-classpath" | "-W" | "-X" => drop(rest.next()),
            option if option.starts_with('-') => {}
            script => break path(script),
        }
    };
    Some(format!("{program}-{name}"))
}

/// The absolute path of a script, its directories parted by points.
fn path(script: &str) -> String {
    let whole = std::fs::canonicalize(script).unwrap_or_else(|_| Path::new(script).to_owned());
    whole
        .to_string_lossy()
        .trim_start_matches('/')
        .replace('/', ".")
}

fn plain(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._+-@".contains(letter);
    let or_line = |letter| if is_plain(letter) { letter } else { '_' };
    let name: String = name.chars().map(or_line).collect();
    // The end tells more than the begin. No name may be a hidden file's.
    let end = &name[name.len().saturating_sub(LIMIT_BYTES)..];
    match end.starts_with('.') {
        true => format!("_{end}"),
        false => end.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_apps_of_one_runner_have_the_same_name() {
        for (command, name) in [
            ("/usr/bin/gedit %U", "gedit"),
            ("env A=1 /opt/x/app %U", "app"),
            (
                "/usr/bin/flatpak run --branch=stable --command=firefox --file-forwarding org.mozilla.firefox @@u %u @@",
                "org.mozilla.firefox",
            ),
            ("flatpak run org.gnome.Maps", "org.gnome.Maps"),
            (
                "env BAMF_DESKTOP_FILE_HINT=/var/lib/x.desktop /snap/bin/firefox %u",
                "snap.firefox",
            ),
            ("snap run code.url-handler", "snap.code.url-handler"),
            ("steam steam://rungameid/620", "steam.620"),
            (
                "python3 /opt/nowhere/one/main.py",
                "python3-opt.nowhere.one.main.py",
            ),
            (
                "python3.12 -u /opt/nowhere/two/main.py x",
                "python3.12-opt.nowhere.two.main.py",
            ),
            ("python3 -m http.server", "python3-http.server"),
            (
                "java -cp a.jar -jar /opt/nowhere/b.jar",
                "java-opt.nowhere.b.jar",
            ),
            ("sh -c true", "sh"),
            ("python3", "python3"),
            ("./my;app", "my_app"),
            ("/opt/.hidden", "_.hidden"),
        ] {
            let words: Vec<&str> = command.split_whitespace().collect();
            assert_eq!(of(&words).as_deref(), Some(name), "{command}");
        }
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["env", "A=1"]), None);
        let long = format!("/{}", "a".repeat(1000));
        assert_eq!(of(&[&long]).map(|it| it.len()), Some(LIMIT_BYTES));
    }
}
