//! Names of the units in which desktops start apps (systemd's DESKTOP_ENVIRONMENTS.md).
//!
//! | started by | unit below `app.slice` | names |
//! |---|---|---|
//! | GNOME, KDE, sway, niri | `app-LAUNCHER-APP-RANDOM.scope` | APP |
//! | systemd, D-Bus | `app-LAUNCHER-APP@RANDOM.service` | APP |
//! | flatpak | `app-flatpak-APP-INSTANCE.scope` | APP |
//! | uwsm | `app-graphical.slice/app-COMPOSITOR-APP-RANDOM.scope` | APP |
//! | snapd | `snap.PACKAGE.APP-UUID.scope` | PACKAGE, `PACKAGE_APP` |
//! | Steam | `app-steam-appID-PID.scope` | `steam_app_ID` |
//! | ghostty, for a terminal's child | `app-ghostty-surface-transient-PID.scope` | ghostty |
//! | dbus-broker | `app-dbus-:1.2-APP.slice/…` | APP |
//! | the session's start | `app-APP@autostart.service` | APP |
//!
//! `-` in names is written `\x2d`.

/// Slice of systemd's for what ends with the graphical session: it holds apps and is none.
const HOLDS_APPS: &str = "app-graphical.slice";

/// Programs with the screen's furniture: behind them, no app is foreground or background.
const SHELLS: [&str; 2] = ["plasmashell", "org.kde.plasmashell"];

/// X servers of compositors without their own: they own all windows of X11 apps.
const X_SERVERS: [&str; 2] = ["xwayland", "xwayland-satellite"];

/// Fewest parts of a name such as `org.mozilla.firefox`, whose last part names the app as well.
const REVERSED_PARTS: usize = 3;

/// A unit below an `app.slice`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit<'a> {
    /// Path of the `app.slice`.
    pub slice: &'a str,
    /// Path of the unit.
    pub path: &'a str,
}

impl<'a> Unit<'a> {
    /// The unit that a cgroup belongs to: the innermost app among nested slices, or else the first unit
    /// below them. `None` outside of an `app.slice`, and for slices that only hold apps.
    pub fn of(path: &'a str) -> Option<Self> {
        const SLICE: &str = "/app.slice";
        let mut at = path.find(&format!("{SLICE}/"))? + SLICE.len();
        let slice = &path[..at];
        let mut unit = None;
        for name in path[at + 1..].split('/') {
            at += 1 + name.len();
            let is_slice = name.ends_with(".slice");
            if is_app(name) || unit.is_none() && !is_slice {
                unit = Some(&path[..at]);
            }
            if !is_slice {
                break;
            }
        }
        unit.map(|path| Unit { slice, path })
    }

    pub fn name(&self) -> &'a str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }

    /// Name of the app, as its window or its `.desktop` file has it.
    pub fn app(&self) -> String {
        let name = self.name();
        if let Some((package, _)) = snap(name) {
            return package.to_owned();
        }
        let (stem, kind) = name.rsplit_once('.').unwrap_or((name, ""));
        if let Some(terminal) = terminal_of(stem) {
            return unescaped(terminal);
        }
        let stem = match (kind, stem.matches('-').count()) {
            ("scope", 2..) => stem.rsplit_once('-').map_or(stem, |(name, _)| name),
            ("service", _) => stem.split('@').next().unwrap_or(stem),
            _ => stem,
        };
        let (launcher, app) = stem.rsplit_once('-').unwrap_or(("", stem));
        let app = unescaped(app);
        match app.strip_prefix("app").filter(|_| launcher == "app-steam") {
            Some(game) if game.bytes().all(|it| it.is_ascii_digit()) => format!("steam_app_{game}"),
            _ => without_bus_name(&app).to_owned(),
        }
    }

    /// Whether a window may call its app by this name.
    pub fn is_named(&self, name: &str) -> bool {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        match snap(self.name()) {
            Some((package, app)) => is(package) || is(&format!("{package}_{app}")),
            None => is(&self.app()),
        }
    }

    /// Whether it belongs to the same app as `other`: a main process and its helpers may have units of
    /// their own, and names with or without their domain.
    pub fn is_of_the_app_of(&self, other: &Unit<'_>) -> bool {
        is_same_app(&self.app(), &other.app())
    }

    /// Whether it runs what a terminal's window shows, apart from the terminal.
    pub fn is_in_a_terminal(&self) -> bool {
        let stem = self.name().rsplit_once('.').map_or("", |(stem, _)| stem);
        terminal_of(stem).is_some()
    }

    /// Whether the session started it by itself: such services help apps and are none.
    pub fn is_autostarted(&self) -> bool {
        self.name().ends_with("@autostart.service")
    }

    /// Whether it may be limited while another app is foreground.
    pub fn may_be_background(&self) -> bool {
        is_app(self.name()) && !self.is_autostarted() && !self.is_a_shell()
    }

    /// Whether a window of its processes may make it foreground.
    pub fn may_be_foreground(&self) -> bool {
        let is_bus = matches!(self.name(), "dbus.service" | "dbus-broker.service");
        !is_bus && !self.is_an_x_server() && !self.is_a_shell()
    }

    /// Whether it is that of an X server, which owns the windows of others.
    pub fn is_an_x_server(&self) -> bool {
        let app = self.app();
        X_SERVERS.iter().any(|it| it.eq_ignore_ascii_case(&app))
    }

    pub fn is_a_shell(&self) -> bool {
        is_shell(&self.app())
    }
}

/// Whether windows of this name are a desktop's furniture.
pub(crate) fn is_shell(name: &str) -> bool {
    SHELLS.iter().any(|it| it.eq_ignore_ascii_case(name))
}

/// Whether the two are names of one app: `firefox` and `org.mozilla.firefox` are.
pub(crate) fn is_same_app(one: &str, other: &str) -> bool {
    let is = |it: &str, other: &str| it.eq_ignore_ascii_case(other);
    is(one, other)
        || last_part(one).is_some_and(|it| is(it, other))
        || last_part(other).is_some_and(|it| is(it, one))
}

fn last_part(name: &str) -> Option<&str> {
    match name.split('.').count() {
        REVERSED_PARTS.. => name.rsplit('.').next(),
        _ => None,
    }
}

/// Whether this is the name of an app's unit or slice.
pub(crate) fn is_app(name: &str) -> bool {
    name.starts_with("app-") && name != HOLDS_APPS || snap(name).is_some()
}

/// Package and app of a snap's unit; `None` for its services and hooks.
fn snap(name: &str) -> Option<(&str, &str)> {
    /// Digits in the groups of a UUID.
    const UUID: [usize; 5] = [8, 4, 4, 4, 12];
    const UUID_BYTES: usize = 36;
    let names = name.strip_prefix("snap.")?.strip_suffix(".scope")?;
    let (names, uuid) = names.split_at_checked(names.len().checked_sub(UUID_BYTES)?)?;
    let is_uuid = uuid.split('-').map(str::len).eq(UUID);
    // Versions before 2.60 wrote a dot before it.
    let names = names.strip_suffix(['-', '.']).filter(|_| is_uuid)?;
    let (package, app) = names.split_once('.')?;
    (!app.starts_with("hook.")).then_some((package, app))
}

/// The terminal for whose child this unit is.
fn terminal_of(stem: &str) -> Option<&str> {
    let (name, _) = stem.rsplit_once("-surface-transient-")?;
    name.strip_prefix("app-")
}

/// `org.gnome.Files` for `dbus-:1.2-org.gnome.Files`.
fn without_bus_name(app: &str) -> &str {
    let after = app.strip_prefix("dbus-:").and_then(|it| it.split_once('-'));
    after.map_or(app, |(_, app)| app)
}

/// Undoes systemd's escapes such as `\x2d` for `-`.
fn unescaped(name: &str) -> String {
    let mut parts = name.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match code {
            Some(code) => {
                bytes.push(code);
                bytes.extend(&part.as_bytes()[2..]);
            }
            // Not an escape of systemd's.
            None => bytes.extend(format!("\\x{part}").as_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(below: &str) -> Option<(String, String)> {
        let path = format!("/u/app.slice/{below}");
        let unit = Unit::of(&path)?;
        assert_eq!(unit.slice, "/u/app.slice");
        Some((unit.name().to_owned(), unit.app()))
    }

    #[test]
    fn the_units_of_an_app_are_known_by_its_name() {
        const UUID: &str = "7a3bcd12-0d1e-4b0c-8f9a-0123456789ab";
        for (unit_name, app) in [
            (
                "app-gnome-org.mozilla.firefox-4711.scope",
                "org.mozilla.firefox",
            ),
            (
                "app-flatpak-org.mozilla.firefox-4712.scope",
                "org.mozilla.firefox",
            ),
            (
                "app-org.mozilla.firefox@0815.service",
                "org.mozilla.firefox",
            ),
            ("app-kde\\x2dcalc-7.scope", "kde-calc"),
            ("app-gnome-mail@autostart.service", "mail"),
            ("app-org.gnome.Terminal.slice", "org.gnome.Terminal"),
            ("app-game.scope", "game"),
            ("app-com.google.Chrome-4711.scope", "com.google.Chrome"),
            ("app-niri-foot-7.scope", "foot"),
            ("app-steam-app570-812.scope", "steam_app_570"),
            ("app-steam-apple-812.scope", "apple"),
            ("app-ghostty-surface-transient-99.scope", "ghostty"),
            (
                "app-dbus\\x2d:1.2\\x2dorg.gnome.Files.slice",
                "org.gnome.Files",
            ),
            (&format!("snap.firefox.firefox-{UUID}.scope"), "firefox"),
            (
                &format!("snap.libreoffice.writer.{UUID}.scope"),
                "libreoffice",
            ),
            ("run-r5.scope", "r5"),
        ] {
            let (name, known) = unit(unit_name).unwrap();
            assert_eq!((name.as_str(), known.as_str()), (unit_name, app));
        }
    }

    #[test]
    fn the_innermost_app_is_the_unit() {
        for (below, wanted) in [
            (
                "app-graphical.slice/app-sway-foot-1.scope",
                Some("app-sway-foot-1.scope"),
            ),
            (
                "app-graphical.slice/app-sway-foot-1.scope/tab",
                Some("app-sway-foot-1.scope"),
            ),
            ("app-graphical.slice/waybar.service", Some("waybar.service")),
            ("app-graphical.slice", None),
            // A part of an app stands for all of it.
            (
                "app-org.gnome.Terminal.slice/vte-spawn-1.scope",
                Some("app-org.gnome.Terminal.slice"),
            ),
            (
                "app-game-7.scope/app-inner-8.scope",
                Some("app-game-7.scope"),
            ),
            ("emacs.service", Some("emacs.service")),
        ] {
            let name = unit(below).map(|(name, _)| name);
            assert_eq!(name.as_deref(), wanted, "{below}");
        }
        assert_eq!(Unit::of("/init.scope"), None);
        assert_eq!(Unit::of("/u/session.slice/dbus.service"), None);
    }

    #[test]
    fn helpers_and_furniture_are_no_apps() {
        const UUID: &str = "7a3bcd12-0d1e-4b0c-8f9a-0123456789ab";
        let of = |name: &str| {
            let path = format!("/u/app.slice/{name}");
            let unit = Unit::of(&path).unwrap();
            (unit.may_be_foreground(), unit.may_be_background())
        };
        assert_eq!(of("app-gnome-game-1.scope"), (true, true));
        assert_eq!(of(&format!("snap.a_b.c-{UUID}.scope")), (true, true));
        assert_eq!(of("emacs.service"), (true, false));
        // Discord, say, may be started with the session and have a window.
        assert_eq!(of("app-discord@autostart.service"), (true, false));
        assert_eq!(
            of("app-org.kde.plasmashell@autostart.service"),
            (false, false)
        );
        assert_eq!(of("dbus.service"), (false, false));
        assert_eq!(of("app-niri-xwayland\\x2dsatellite-9.scope"), (false, true));
        for name in [
            format!("snap.a.hook.configure-{UUID}.scope"),
            "snap.a.b.service".to_owned(),
        ] {
            assert!(!of(&name).1, "{name}");
        }
    }

    #[test]
    fn an_app_has_a_name_with_its_domain_and_one_without() {
        for (one, other, same) in [
            ("ghostty", "com.mitchellh.ghostty", true),
            ("Org.Mozilla.Firefox", "firefox", true),
            ("org.gnome.Terminal", "org.xfce.Terminal", false),
            ("notepad.exe", "exe", false),
            ("a", "b", false),
        ] {
            assert_eq!(is_same_app(one, other), same, "{one} {other}");
            assert_eq!(is_same_app(other, one), same, "{one} {other}");
        }
    }

    #[test]
    fn names_are_as_before_systemd_escaped_them() {
        for (name, before) in [
            ("a\\x2db", "a-b"),
            ("plain", "plain"),
            ("\\xzz\\x2", "\\xzz\\x2"),
            ("\\xc3\\xa9t\\xc3\\xa9", "été"),
            ("\\x2dé", "-é"),
        ] {
            assert_eq!(unescaped(name), before);
        }
    }
}
