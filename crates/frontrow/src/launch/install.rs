//! `frontrow launch install`: an app's menu entry or systemd unit starts it through
//! Frontrow. What the distribution installed stays as it is; what is written here
//! comes before it and is removed as a whole.
//!
//! What root installs runs as root at each start, so no other user may be able to change any of it:
//! the entry, this program, the place, and every directory above them are root's alone.

use super::name;
use crate::exit::{Exit, Failure};
use crate::print::{json, print_text};
use serde_json::json;
use std::env;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// First line of files that this program writes.
const MARK: &str = "# written by `frontrow launch install`";

#[derive(clap::Args)]
pub struct Install {
    /// Menu entry (NAME.desktop) or unit (NAME.service), its path, or the name of an app: a Flatpak's
    /// such as org.gnome.Maps, a Snap's such as firefox
    #[arg(value_name = "ENTRY")]
    entry: PathBuf,
    /// Remove the installed files
    #[arg(long)]
    remove: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the subcommand.
pub fn run(args: &Install) -> Result<(), Failure> {
    let home = home()?;
    let program = env::current_exe().map_err(failed("find", Path::new("frontrow")))?;
    if let Some(link) = args.entry.to_str().filter(|it| it.starts_with(STEAM)) {
        return Err(steam(&program, game(link)));
    }
    let candidates: Vec<Entry> = file_names(&args.entry)
        .iter()
        .filter_map(|name| home.entry(name))
        .collect();
    if args.remove {
        let installed = candidates.iter().find(|it| it.target.exists());
        let entry = installed.or(candidates.first());
        let target = &entry.ok_or_else(|| unknown(&args.entry))?.target;
        refuse_foreign(target, &program)?;
        return remove(target, args.json);
    }
    for candidate in &candidates {
        refuse_foreign(&candidate.target, &program)?;
    }
    let is_path = args.entry.components().count() > 1;
    let found = candidates.into_iter().find_map(|entry| {
        let source = match is_path {
            true => Some(args.entry.clone()),
            false => entry.find(),
        };
        Some((source?, entry))
    });
    let (source, entry) = found.ok_or_else(|| unknown(&args.entry))?;
    let Entry {
        target, rewrite, ..
    } = entry;
    let directory = target.parent().unwrap_or(Path::new("/"));
    let text = match is_root() {
        true => read_roots_alone(&source, &program, directory)?,
        false => {
            fs::create_dir_all(directory).map_err(failed("make", directory))?;
            fs::read_to_string(&source).map_err(failed("read", &source))?
        }
    };
    let program = program.to_str().ok_or_else(|| unspeakable(&program))?;
    let text = rewrite(&text, &quoted(program)?)?;
    put(directory, &target, &format!("{MARK}\n{text}")).map_err(failed("write", &target))?;
    tell(args.json, "written", &target)
}

/// The link of Steam's menu entries, before the game's number.
const STEAM: &str = "steam://rungameid/";

/// Steam starts its games itself, so that an entry that opens a link of Steam's would start none of them.
fn steam(program: &Path, game: &str) -> Failure {
    let name = name::of(&["steam", &format!("{STEAM}{game}")]).unwrap_or_default();
    refused(format_args!(
        "Steam starts its games itself: set the game's launch options (in its properties) to `{} launch --name {name} -- %command%`",
        program.display()
    ))
}

/// The game's number in the first link of Steam's.
fn game(text: &str) -> &str {
    let after = text.split_once(STEAM).map_or("", |(_, after)| after);
    after
        .split(|it: char| !it.is_ascii_digit())
        .next()
        .unwrap_or_default()
}

/// Names of files that an entry may have. Flatpak's is the app's name; Snap's is `PACKAGE_APP`, of an app that
/// is run as `PACKAGE.APP`, or as `APP` if both are one.
fn file_names(entry: &Path) -> Vec<PathBuf> {
    let Some(name) = entry.file_name() else {
        return Vec::new();
    };
    let is_one = |extension| {
        Path::new(name)
            .extension()
            .is_some_and(|it| it == extension)
    };
    if is_one("desktop") || is_one("service") || entry.components().count() > 1 {
        return vec![name.into()];
    }
    let name = name.to_string_lossy();
    [
        format!("{name}.desktop"),
        format!("{name}_{name}.desktop"),
        format!("{}.desktop", name.replacen('.', "_", 1)),
        format!("{name}.service"),
    ]
    .map(PathBuf::from)
    .into()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The entry's text, read from what was checked. Makes the directory, and nothing before all else is
/// found to be root's alone.
fn read_roots_alone(source: &Path, program: &Path, directory: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let mut entry = open_roots_alone(source)?;
    open_roots_alone(program)?;
    let made = sys::walk::make_own_directory(directory);
    made.map_err(|error| others(directory, "make", error))?;
    let read = entry.read_to_string(&mut text);
    read.map_err(failed("read", source))?;
    Ok(text)
}

/// Opens a file that only root can change or replace.
fn open_roots_alone(path: &Path) -> Result<File, Failure> {
    sys::walk::open_own_file(path).map_err(|error| others(path, "read", error))
}

fn others(path: &Path, action: &'static str, error: io::Error) -> Failure {
    match sys::walk::is_refusal(&error) {
        true => refused(format_args!(
            "others than root may change {}, which would be used as root: {error}, as `make install` \
             does",
            path.display()
        )),
        false => failed(action, path)(error),
    }
}

/// Program path, quoted for the command lines of menu entries and units. Both interpret quotes and
/// percent signs.
fn quoted(program: &str) -> Result<String, Failure> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._+-,:@=~%".contains(letter);
    let is_unspeakable = |letter: char| letter.is_control() || "\"\\$`".contains(letter);
    if program.chars().any(is_unspeakable) {
        return Err(unspeakable(Path::new(program)));
    }
    let escaped = program.replace('%', "%%");
    match program.chars().all(is_plain) {
        true => Ok(escaped),
        false => Ok(format!("\"{escaped}\"")),
    }
}

fn unspeakable(program: &Path) -> Failure {
    refused(format_args!(
        "{program:?} has letters in its path that an entry cannot hold: put frontrow into another \
         directory"
    ))
}

/// Replaces the path by a new file; does not follow links.
fn put(directory: &Path, target: &Path, text: &str) -> io::Result<()> {
    let mut file = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.persist(target)?;
    Ok(())
}

/// Converts the installed text, with this program's path, to the text to write.
type Rewrite = fn(&str, &str) -> Result<String, Failure>;

/// Directories of this user's entries and units.
struct Home {
    data: PathBuf,
    units: PathBuf,
    unit_places: Vec<PathBuf>,
}

/// A menu entry or unit, and what replaces it.
struct Entry {
    file_name: PathBuf,
    target: PathBuf,
    places: Vec<PathBuf>,
    rewrite: Rewrite,
}

impl Entry {
    /// The entry that the distribution, Flatpak or Snap installed.
    fn find(&self) -> Option<PathBuf> {
        let paths = self.places.iter().map(|place| place.join(&self.file_name));
        paths.into_iter().find(|path| path.is_file())
    }
}

impl Home {
    /// None if a file of this name is neither a menu entry nor a unit.
    fn entry(&self, file_name: &Path) -> Option<Entry> {
        let is = |extension: &str| file_name.extension().is_some_and(|it| it == extension);
        let (target, places, rewrite): (_, _, Rewrite) = match (is("desktop"), is("service")) {
            (true, _) => {
                let own = self.data.join("applications");
                (own.join(file_name), self.desktop_places(), desktop)
            }
            (_, true) => {
                let own = self.units.join(file_name.with_extension("service.d"));
                (own.join("frontrow.conf"), self.unit_places.clone(), unit)
            }
            _ => return None,
        };
        Some(Entry {
            file_name: file_name.to_owned(),
            target,
            places,
            rewrite,
        })
    }

    /// Where menu entries are installed, those of Flatpak and Snap even if the session does not name them.
    fn desktop_places(&self) -> Vec<PathBuf> {
        let named = env::var("XDG_DATA_DIRS").unwrap_or_default();
        let named = match named.is_empty() {
            true => "/usr/local/share:/usr/share",
            false => &named,
        };
        let mut places: Vec<PathBuf> = named.split(':').map(PathBuf::from).collect();
        if !is_root() {
            places.push(self.data.join("flatpak/exports/share"));
        }
        places.extend(
            ["/var/lib/flatpak/exports/share", "/var/lib/snapd/desktop"].map(PathBuf::from),
        );
        places.iter().map(|it| it.join("applications")).collect()
    }
}

fn home() -> Result<Home, Failure> {
    let absolute = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|it| it.is_absolute())
    };
    let home = absolute("HOME").ok_or_else(|| Failure::new(Exit::Usage, "set HOME"))?;
    let data = absolute("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
    let config = absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    let (units, kind) = match is_root() {
        true => (PathBuf::from("/etc/systemd/system"), "system"),
        false => (config.join("systemd/user"), "user"),
    };
    let mut unit_places = vec![units.clone()];
    if !is_root() {
        unit_places.push(data.join("systemd/user"));
    }
    for place in [
        "/etc/systemd",
        "/run/systemd",
        "/usr/lib/systemd",
        "/lib/systemd",
    ] {
        unit_places.push(Path::new(place).join(kind));
    }
    Ok(Home {
        data,
        units,
        unit_places,
    })
}

/// The entry with `frontrow launch` before each program.
fn desktop(text: &str, frontrow: &str) -> Result<String, Failure> {
    let mut found = false;
    let mut out = String::new();
    for line in text.lines() {
        if let Some(command) = line.strip_prefix("Exec=") {
            found = true;
            if command.contains(STEAM) {
                return Err(steam(Path::new(frontrow), game(command)));
            }
            let name = app_name(command);
            out += &format!("Exec={frontrow} launch --name {name} -- {command}\n");
        } else if line.starts_with("DBusActivatable=") {
            // Else Exec would not be used.
            out += "DBusActivatable=false\n";
        } else {
            out += &format!("{line}\n");
        }
    }
    match found {
        true => Ok(out),
        false => Err(refused("the menu entry starts no program (no Exec=)")),
    }
}

/// A drop-in that starts the unit's programs through `frontrow launch`.
fn unit(text: &str, frontrow: &str) -> Result<String, Failure> {
    let mut out = String::from("[Service]\nExecStart=\n");
    let mut found = false;
    for command in text.lines().filter_map(|it| it.strip_prefix("ExecStart=")) {
        if command.ends_with('\\') {
            return Err(refused("the unit's ExecStart= goes over several lines"));
        }
        let bare = command.trim_start_matches(['-', ':', '+', '!']);
        if bare.is_empty() {
            continue;
        }
        if bare.starts_with('@') {
            return Err(refused("the unit gives its program another name (@)"));
        }
        found = true;
        let prefix = &command[..command.len() - bare.len()];
        let name = app_name(bare);
        out += &format!("ExecStart={prefix}{frontrow} launch --name {name} -- {bare}\n");
    }
    match found {
        true => Ok(out),
        false => Err(refused("the unit starts no program (no ExecStart=)")),
    }
}

/// Name of the profile of the app that a command line starts.
fn app_name(command: &str) -> String {
    let words = command.split_whitespace().map(|it| it.trim_matches('"'));
    let words: Vec<&str> = words.collect();
    name::of(&words).unwrap_or_default()
}

fn remove(target: &Path, json: bool) -> Result<(), Failure> {
    match fs::remove_file(target) {
        Ok(()) => tell(json, "removed", target),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(refused(format_args!(
            "nothing was installed: there is no {}",
            target.display()
        ))),
        Err(error) => Err(failed("remove", target)(error)),
    }
}

/// An entry or link of another program is left alone.
fn refuse_foreign(target: &Path, program: &Path) -> Result<(), Failure> {
    match fs::read_to_string(target) {
        Ok(text) if !text.starts_with(MARK) && text.contains(STEAM) => {
            Err(steam(program, game(&text)))
        }
        Ok(text) if !text.starts_with(MARK) || target.is_symlink() => Err(refused(format_args!(
            "{} is not from `frontrow launch install`: edit it yourself, or move it away",
            target.display()
        ))),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("read", target)(error)),
        _ => Ok(()),
    }
}

fn tell(as_json: bool, done: &str, target: &Path) -> Result<(), Failure> {
    match as_json {
        true => print_text(&json(&json!({ done: target }))?),
        false => print_text(&format!("{done}: {}\n", target.display())),
    }
}

fn unknown(entry: &Path) -> Failure {
    let entry = entry.display();
    Failure::new(
        Exit::Usage,
        format_args!(
            "{entry} is no menu entry, unit or app: give NAME.desktop, NAME.service, a path, or the name of a Flatpak or Snap"
        ),
    )
}

fn refused(sentence: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Refused, sentence)
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Failure + use<> {
    let path = path.to_owned();
    move |error| {
        let sentence = format_args!("cannot {action} {}: {error}", path.display());
        Failure::new((&error).into(), sentence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_starts_its_program_through_frontrow() {
        let text = "[Desktop Entry]\nName=X\nExec=env A=1 /opt/x/app %U\nDBusActivatable=true\n";
        assert_eq!(
            desktop(text, "/usr/bin/frontrow").unwrap(),
            "[Desktop Entry]\nName=X\n\
             Exec=/usr/bin/frontrow launch --name app -- env A=1 /opt/x/app %U\n\
             DBusActivatable=false\n"
        );
        assert!(desktop("[Desktop Entry]\n", "f").is_err());
    }

    #[test]
    fn a_path_is_one_word_and_stands_for_itself() {
        for (program, word) in [
            ("/usr/bin/frontrow", "/usr/bin/frontrow"),
            ("/opt/my apps/frontrow", "\"/opt/my apps/frontrow\""),
            ("/opt/%n/frontrow", "/opt/%%n/frontrow"),
            ("/opt/a;b/frontrow", "\"/opt/a;b/frontrow\""),
        ] {
            assert_eq!(quoted(program).unwrap(), word);
        }
        for program in ["/a\nExecStart=/b", "/a\"b", "/$a", "/a\\b", "/`a`"] {
            assert!(quoted(program).is_err(), "{program:?}");
        }
        assert_eq!(app_name("\"/opt/%p\" -x"), "_p");
        assert_eq!(app_name("/opt/a;reboot -x"), "a_reboot");
    }

    /// A file or directory above it that other users may write to.
    #[test]
    fn root_uses_nothing_that_others_may_change() {
        // Only root's files can be root's alone.
        if !is_root() {
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let above = directory.path().join("above");
        let program = above.join("frontrow");
        fs::create_dir(&above).unwrap();
        fs::write(&program, "").unwrap();
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        set(&program, 0o755).unwrap();
        set(&above, 0o755).unwrap();
        open_roots_alone(&program).unwrap();
        set(&above, 0o775).unwrap();
        assert!(
            open_roots_alone(&program).is_err(),
            "a directory of a group's"
        );
        set(&above, 0o755).unwrap();
        set(&program, 0o757).unwrap();
        assert!(
            open_roots_alone(&program).is_err(),
            "a program of everybody's"
        );
        set(&program, 0o755).unwrap();
        std::os::unix::fs::chown(&above, Some(1000), None).unwrap();
        assert!(open_roots_alone(&program).is_err(), "a user's checkout");
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&program, &link).unwrap();
        assert!(open_roots_alone(&link).is_err(), "a link to it");
    }

    #[test]
    fn a_unit_gets_a_drop_in_that_keeps_its_prefix() {
        let text = "[Service]\nExecStart=-/usr/sbin/daemon -f\n";
        assert_eq!(
            unit(text, "/usr/bin/frontrow").unwrap(),
            "[Service]\nExecStart=\n\
             ExecStart=-/usr/bin/frontrow launch --name daemon -- /usr/sbin/daemon -f\n"
        );
        for odd in ["", "ExecStart=@/bin/a b\n", "ExecStart=/bin/a \\\n b\n"] {
            assert!(unit(odd, "f").is_err(), "{odd}");
        }
    }
}
