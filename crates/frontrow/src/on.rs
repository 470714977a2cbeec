//! `frontrow on` and `off`: all of it with one word, until told otherwise.
//!
//! On is the scheduler on each disk that gains (`module::sched`), frontrowd, and for each session what
//! tells it the focus. At boot the disks get it by a rule of udev's, which comes after all others, and by
//! the units that one can enable by hand. [`record`] has what was before.

mod disks;
mod record;
pub(crate) mod status;
mod systemd;

use crate::exit::{Exit, Failure};
use crate::print::{json_line, plain, print_text};
use crate::sched::{failure, unit_of};
use clap::Args;
use disks::{LeftOut, against_scheduler, choose, is_of_machine};
use module::sched::{self, Boost, Module, OWN_RULE, boot, hour, taken};
use record::Record;
use serde_json::json;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::{env, fs};
use sys::device::Device;
use sys::durable;
use sys::knobs::Change;
use systemd::Whose;

const RULE: &str = include_str!("../../../packaging/zz-frontrow.rules");
const RULES: &str = "etc/udev/rules.d";
const DAEMON: &str = "frontrowd.service";
const FOLLOWER: &str = "frontrow-follow.service";
/// It is active in each session that starts graphical apps by systemd.
const DESKTOP: &str = "graphical-session.target";
/// Units of disks, and what they want beside them.
const UNITS: [&str; 2] = ["frontrow-sched@*", "frontrow-watch@*"];
const TIMERS: [&str; 2] = ["frontrow-settled.timer", "frontrow-counted.timer"];
const MODULE: &str = "frontrow_iosched";

/// Switch everything on, now and at each boot
///
/// Puts each flash disk of this machine under the frontrow scheduler, starts frontrowd, and has each
/// session tell it which app has the focus. Without the scheduler's module the daemon does what it can
/// with the kernel's own means. It says what it changed and what it left out. `frontrow off` puts
/// everything back.
#[derive(Args)]
pub struct On {
    #[command(flatten)]
    place: Place,
    /// Print what would be changed, and change nothing
    #[arg(long)]
    dry_run: bool,
}

/// Undo `frontrow on`: everything is as it was before
#[derive(Args)]
pub struct Off {
    #[command(flatten)]
    place: Place,
}

#[derive(Args)]
struct Place {
    /// Root directory of the system to read and change
    #[arg(long, hide = true, default_value = "/")]
    sysroot: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// A disk, which is for the commands of single disks
    #[arg(hide = true)]
    disk: Option<String>,
}

impl Place {
    /// # Errors
    /// [`Exit::Usage`] if a disk is named: who knows one name is told the command for it.
    fn is_all(&self, for_one: &str) -> Result<(), Failure> {
        let Some(disk) = &self.disk else {
            return Ok(());
        };
        let disk = disk.trim_start_matches("/dev/");
        Err(Failure::new(
            Exit::Usage,
            format_args!(
                "this is for the whole machine, and takes no `{disk}`: \
                 for one disk there is `{for_one} {disk}`"
            ),
        ))
    }
}

/// Whether `on`, which is in force, did not find that disk under the scheduler. At boot there may be no
/// record in sight yet, and then no such disk.
///
/// # Errors
/// Failure to read what `on` has written.
pub(crate) fn is_for(root: &Path, device: &Device) -> Result<bool, Failure> {
    match Record::read(root)? {
        Some(record) => Ok(!record.had_scheduler(root, device.name())?),
        None => Ok(true),
    }
}

/// Ends the unit of a disk that is left to somebody else. The unit that this is called from ends with it.
pub(crate) fn give_up(disk: &str) {
    let unit = unit_of(disk);
    // Without systemd there is no unit to end.
    let _ = systemd::order(Whose::System, &["stop", "--no-block", &unit]);
}

/// What was changed, or would be, and what was not.
#[derive(Default)]
struct Outcome {
    /// Disks and the changes to each; none for those that had the scheduler already.
    disks: Vec<(String, Vec<Change>)>,
    /// Names of units that run and start by themselves, and of users that they run for.
    units: Vec<String>,
    users: Vec<u32>,
    rule: Option<PathBuf>,
    left_out: Vec<LeftOut>,
}

/// Whether `on` was run last, and not `off`.
///
/// # Errors
/// Failure to read what `on` has written.
pub(crate) fn is_on(root: &Path) -> Result<bool, Failure> {
    Ok(Record::read(root)?.is_some())
}

/// Switches everything on or off, without a word, if it is not so already.
///
/// # Errors
/// As of the two commands.
pub(crate) fn switch(root: &Path, to_on: bool) -> Result<(), Failure> {
    match (to_on, is_on(root)?) {
        (true, false) => {
            let (chosen, outcome) = survey(root)?;
            switch_on(root, &chosen, outcome).map(drop)
        }
        (false, true) => undo(root).map(drop),
        _ => Ok(()),
    }
}

/// Switches everything on.
pub fn on(arguments: On) -> Result<(), Failure> {
    arguments.place.is_all("sudo frontrow sched enable")?;
    let root = &arguments.place.sysroot;
    let (chosen, mut outcome) = survey(root)?;
    if arguments.dry_run {
        plan(root, &chosen, &mut outcome);
        outcome.is_anything()?;
        return outcome.print(arguments.place.json, true);
    }
    switch_on(root, &chosen, outcome)?.print(arguments.place.json, false)
}

/// The disks to put under the scheduler, and what is left out.
fn survey(root: &Path) -> Result<(Vec<Device>, Outcome), Failure> {
    let disks = choose(root)?;
    let against = against_scheduler(root)?;
    let mut outcome = Outcome {
        left_out: disks.left_out,
        ..Outcome::default()
    };
    let chosen = match &against {
        None => disks.chosen,
        Some(error) => {
            outcome.left_out.push(LeftOut::new("the scheduler", error));
            Vec::new()
        }
    };
    Ok((chosen, outcome))
}

fn switch_on(root: &Path, chosen: &[Device], mut outcome: Outcome) -> Result<Outcome, Failure> {
    let was_on = Record::read(root)?.is_some();
    Record::begin(root)?;
    taken::forgive(root).map_err(failure)?;
    let has_systemd = systemd::runs(root);
    if has_systemd {
        write_rule(root, &mut outcome)?;
    }
    enable_disks(root, chosen, has_systemd, &mut outcome)?;
    start_services(root, has_systemd, &mut outcome);
    hour::count(root, chosen).map_err(failure)?;
    let is_anything = outcome.is_anything();
    if is_anything.is_err() && !was_on {
        undo(root)?;
    }
    is_anything.map(|()| outcome)
}

/// What `on` would do, by what can be known without doing it.
fn plan(root: &Path, chosen: &[Device], outcome: &mut Outcome) {
    let disks = chosen.iter().map(|it| (it.name().to_owned(), Vec::new()));
    outcome.disks = disks.collect();
    if !systemd::runs(root) {
        outcome.left_out.push(without_systemd());
        return;
    }
    outcome.rule = Some(Path::new("/").join(RULES).join(OWN_RULE));
    outcome.units = [DAEMON, FOLLOWER].map(str::to_owned).to_vec();
    outcome.users = users_at_desktops(root, &mut outcome.left_out);
}

fn without_systemd() -> LeftOut {
    LeftOut::new(
        "frontrowd and each later boot",
        "systemd does not run this machine: have your init run `frontrow fg daemon` and `frontrow on`",
    )
}

/// Users who sit here in a graphical session that systemd knows of: without one the follower has nobody
/// to ask.
fn users_at_desktops(root: &Path, left_out: &mut Vec<LeftOut>) -> Vec<u32> {
    let (with, without): (Vec<u32>, Vec<u32>) = foreground::users_at_seats(root)
        .into_iter()
        .partition(|user| systemd::is_active(Whose::User(*user), DESKTOP));
    left_out.extend(without.iter().map(|user| {
        LeftOut::new(
            &format!("the focus of user {user}"),
            format_args!(
                "their session has no {DESKTOP}: have its autostart run `frontrow fg follow`"
            ),
        )
    }));
    with
}

fn write_rule(root: &Path, outcome: &mut Outcome) -> Result<(), Failure> {
    let path = Path::new(RULES).join(OWN_RULE);
    let program = env::current_exe().map_err(|error| {
        Failure::new(Exit::Internal, format_args!("cannot find myself: {error}"))
    })?;
    let text = RULE.replace("@FRONTROW@", &program.to_string_lossy());
    let place = root.join(&path);
    match durable::write(&place, text.as_bytes()) {
        Ok(()) => {
            reload_rules();
            outcome.rule = Some(Path::new("/").join(path));
            Ok(())
        }
        // As on NixOS, whose configuration has all rules.
        Err(error) if error.kind() == ErrorKind::ReadOnlyFilesystem => {
            let why = format!(
                "/{RULES} cannot be written: have your distribution's configuration run `frontrow on` at boot"
            );
            outcome
                .left_out
                .push(LeftOut::new("new disks and later boots", why));
            Ok(())
        }
        Err(error) => Err(needs_root(&place, &error)),
    }
}

/// udevd looks for changed rules by itself, at the next event after three seconds.
fn reload_rules() {
    let _ = sys::programs::output_of("udevadm", &["control", "--reload"]);
}

/// Puts disks under the scheduler. Until this boot has gone well, the next one would do without.
fn enable_disks(
    root: &Path,
    chosen: &[Device],
    has_systemd: bool,
    outcome: &mut Outcome,
) -> Result<(), Failure> {
    boot::settle(root).map_err(failure)?;
    if chosen.is_empty() {
        return Ok(());
    }
    if has_systemd {
        boot::begin(root).map_err(failure)?;
    }
    let mut is_at_boot = false;
    for device in chosen {
        match sched::enable(root, device, &Boost::all(), &Module::Installed) {
            Ok(changes) => {
                let name = device.name();
                outcome.disks.push((name.to_owned(), changes));
                let unit = unit_of(name);
                if !has_systemd {
                    continue;
                }
                match systemd::order(Whose::System, &["start", &unit]) {
                    Ok(()) => is_at_boot = true,
                    Err(why) => outcome.left_out.push(LeftOut::new(&unit, why)),
                }
            }
            Err(error) if error.is_permission() && !is_of_machine(&error) => {
                return Err(failure(error));
            }
            Err(error) if is_of_machine(&error) => {
                outcome.left_out.push(LeftOut::new("the scheduler", error));
                break;
            }
            Err(error) => outcome.left_out.push(LeftOut::new(device.name(), error)),
        }
    }
    // Nothing at the next boot would use what the mark is about.
    if !is_at_boot {
        boot::settle(root).map_err(failure)?;
    }
    Ok(())
}

fn start_services(root: &Path, has_systemd: bool, outcome: &mut Outcome) {
    if !has_systemd {
        outcome.left_out.push(without_systemd());
        return;
    }
    match systemd::order(Whose::System, &["enable", "--now", DAEMON]) {
        Ok(()) => outcome.units.push(DAEMON.to_owned()),
        Err(why) => {
            outcome.left_out.push(LeftOut::new("frontrowd", why));
            return;
        }
    }
    match systemd::order(Whose::AllUsers, &["enable", FOLLOWER]) {
        Ok(()) => outcome.units.push(FOLLOWER.to_owned()),
        Err(why) => {
            outcome.left_out.push(LeftOut::new(FOLLOWER, why));
            return;
        }
    }
    for user in users_at_desktops(root, &mut outcome.left_out) {
        match systemd::order(Whose::User(user), &["start", FOLLOWER]) {
            Ok(()) => outcome.users.push(user),
            Err(why) => {
                let why = format!("from the next login on ({why})");
                outcome
                    .left_out
                    .push(LeftOut::new(&format!("the focus of user {user}"), why));
            }
        }
    }
}

/// Puts everything back.
pub fn off(arguments: Off) -> Result<(), Failure> {
    arguments.place.is_all("sudo frontrow sched disable")?;
    let root = &arguments.place.sysroot;
    let undone = undo(root)?;
    if arguments.place.json {
        let value = json!({ "was_on": undone.is_some(), "undone": undone.unwrap_or_default() });
        return print_text(&(json_line(&value) + "\n"));
    }
    let words = match undone {
        Some(undone) if undone.is_empty() => "Frontrow is off; nothing was left to undo.\n".into(),
        Some(undone) => format!("Frontrow is off. Undone:\n  {}\n", undone.join("\n  ")),
        None => "frontrow on has not been run: nothing to undo. (`frontrow sched disable` puts back disks of `frontrow sched enable`.)\n".to_owned(),
    };
    print_text(&plain(&words))
}

/// Undoes a part of `on`, and adds lines on it.
type Step = fn(&Path, &Record, &mut Vec<String>) -> Result<(), Failure>;

/// Undoes `on`, whether it came to its end or not, and gives a line for each thing; None if nobody ran
/// it. What cannot be undone does not keep the rest: the first error is given when all was tried, and
/// the record stays for the next try.
fn undo(root: &Path) -> Result<Option<Vec<String>>, Failure> {
    let record = match Record::read(root)? {
        Some(record) => record,
        None if root.join(RULES).join(OWN_RULE).exists() => Record::default(),
        None => return Ok(None),
    };
    let mut undone = Vec::new();
    let mut first_error = None;
    let steps: [Step; 5] = [remove_rule, disable_disks, stop_services, unload, forget];
    for step in steps {
        if let Err(error) = step(root, &record, &mut undone) {
            first_error.get_or_insert(error);
        }
    }
    match first_error {
        Some(error) => Err(error),
        None => {
            record.end(root)?;
            Ok(Some(undone))
        }
    }
}

/// First, so that no event brings back what is undone next.
fn remove_rule(root: &Path, _: &Record, undone: &mut Vec<String>) -> Result<(), Failure> {
    let path = Path::new(RULES).join(OWN_RULE);
    let place = root.join(&path);
    if !place.exists() {
        return Ok(());
    }
    durable::remove(&place).map_err(|error| needs_root(&place, &error))?;
    reload_rules();
    undone.push(format!("/{} removed", path.display()));
    Ok(())
}

fn disable_disks(root: &Path, record: &Record, undone: &mut Vec<String>) -> Result<(), Failure> {
    let has_systemd = systemd::runs(root);
    let is_users = |unit: &str| has_systemd && systemd::is_enabled(Whose::System, unit);
    for device in Device::all(root).map_err(|error| failure(error.into()))? {
        if record.had_scheduler(root, device.name())? || is_users(&unit_of(device.name())) {
            continue;
        }
        if !sched::is_enabled(root, &device).map_err(failure)? {
            continue;
        }
        let changes = sched::disable(root, &device).map_err(failure)?;
        undone.extend(changes.iter().map(Change::to_string));
    }
    if !has_systemd {
        return Ok(());
    }
    for unit in UNITS.iter().flat_map(|it| systemd::units(it)) {
        let disk = unit.split_once('@').map(|(_, rest)| rest);
        let disk = disk.and_then(|it| it.rsplit_once('.')).map(|(it, _)| it);
        let disk = disk.unwrap_or_default();
        if record.had_scheduler(root, disk)? || is_users(&unit_of(disk)) {
            continue;
        }
        stop(&unit)?;
    }
    Ok(())
}

fn stop(unit: &str) -> Result<(), Failure> {
    systemd::order(Whose::System, &["stop", unit]).map_err(|why| {
        Failure::new(
            Exit::Internal,
            format_args!("cannot stop {unit}: {why}: stop it, then run `frontrow off` again"),
        )
    })?;
    // One that failed would stay in systemd's memory.
    let _ = systemd::order(Whose::System, &["reset-failed", unit]);
    Ok(())
}

fn stop_services(root: &Path, record: &Record, undone: &mut Vec<String>) -> Result<(), Failure> {
    if !systemd::runs(root) {
        return Ok(());
    }
    let failed = |why: String| Failure::new(Exit::Internal, why);
    let is_on = |whose| systemd::is_enabled(whose, FOLLOWER);
    if !record.follower_was_enabled() && is_on(Whose::AllUsers) {
        systemd::order(Whose::AllUsers, &["disable", FOLLOWER]).map_err(failed)?;
        undone.push(format!("{FOLLOWER} disabled"));
    }
    for user in users_with_sessions(root) {
        let whose = Whose::User(user);
        if systemd::is_active(whose, FOLLOWER) && !is_on(whose) {
            systemd::order(whose, &["stop", FOLLOWER]).map_err(failed)?;
            undone.push(format!("{FOLLOWER} of user {user} stopped"));
        }
    }
    if !record.daemon_was_enabled() && systemd::is_enabled(Whose::System, DAEMON) {
        systemd::order(Whose::System, &["disable", DAEMON]).map_err(failed)?;
        undone.push(format!("{DAEMON} disabled"));
    }
    if !record.daemon_was_active(root)? && systemd::is_active(Whose::System, DAEMON) {
        systemd::order(Whose::System, &["stop", DAEMON]).map_err(failed)?;
        undone.push(format!("{DAEMON} stopped"));
    }
    Ok(())
}

/// Users whose sessions systemd runs.
fn users_with_sessions(root: &Path) -> Vec<u32> {
    let entries = fs::read_dir(root.join("run/user")).into_iter().flatten();
    let runs = entries
        .flatten()
        .filter(|it| it.path().join("systemd").is_dir());
    let users = runs.filter_map(|it| it.file_name().to_str()?.parse().ok());
    users.collect()
}

/// The module offers its scheduler on every disk as long as it is there.
fn unload(root: &Path, record: &Record, undone: &mut Vec<String>) -> Result<(), Failure> {
    let is_used = Device::all(root)
        .map_err(|error| failure(error.into()))?
        .iter()
        .any(|it| {
            let active = it.schedulers().ok().flatten().map(|it| it.active);
            active.as_deref() == Some(sched::SCHEDULER)
        });
    let is_loaded = root.join("sys/module").join(MODULE).is_dir();
    if !is_loaded || is_used || record.had_module(root)? {
        return Ok(());
    }
    let output = sys::programs::output_of("modprobe", &["-r", MODULE]);
    match output {
        Ok(output) if output.status.success() => undone.push(format!("{MODULE} unloaded")),
        _ => undone.push(format!("{MODULE} stays loaded until the next boot, unused")),
    }
    Ok(())
}

fn forget(root: &Path, _: &Record, _: &mut Vec<String>) -> Result<(), Failure> {
    if systemd::runs(root) {
        let is_active = |unit: &str| systemd::is_active(Whose::System, unit);
        let is_wanted = systemd::units(UNITS[0]).iter().any(|it| is_active(it));
        for timer in TIMERS.into_iter().filter(|it| !is_wanted && is_active(it)) {
            stop(timer)?;
        }
    }
    taken::forget(root).map_err(failure)?;
    hour::forget(root).map_err(failure)?;
    boot::settle(root).map_err(failure)
}

fn needs_root(path: &Path, error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::PermissionDenied => Failure::new(
            Exit::Permission,
            "switching Frontrow on or off needs root: run the command with sudo",
        ),
        _ => Failure::new(
            error.into(),
            format_args!("cannot access {}: {error}", path.display()),
        ),
    }
}

impl Outcome {
    /// An error if there is nothing to switch on.
    fn is_anything(&self) -> Result<(), Failure> {
        if !(self.disks.is_empty() && self.units.is_empty()) {
            return Ok(());
        }
        let why: Vec<_> = self.left_out.iter().map(LeftOut::to_string).collect();
        Err(Failure::new(
            Exit::Unsupported,
            format_args!("nothing can be switched on here: {}", why.join("; ")),
        ))
    }

    fn print(&self, as_json: bool, is_plan: bool) -> Result<(), Failure> {
        if as_json {
            return print_text(&(json_line(&self.in_json(is_plan)) + "\n"));
        }
        print_text(&plain(&self.in_words(is_plan)))
    }

    fn in_json(&self, is_plan: bool) -> serde_json::Value {
        let disk =
            |(name, changes): &(String, Vec<Change>)| json!({ "device": name, "changes": changes });
        json!({
            "dry_run": is_plan,
            "disks": self.disks.iter().map(disk).collect::<Vec<_>>(),
            "units": self.units,
            "users": self.users,
            "rule": self.rule,
            "left_out": self.left_out.iter().map(LeftOut::in_json).collect::<Vec<_>>(),
        })
    }

    fn in_words(&self, is_plan: bool) -> String {
        let mut lines = vec![match (is_plan, self.rule.is_some()) {
            (true, _) => "`frontrow on` would switch on, now and at each boot:".to_owned(),
            (false, true) => "Frontrow is on, now and at each boot:".to_owned(),
            (false, false) => "Frontrow is on until the next boot:".to_owned(),
        }];
        let disks: Vec<_> = self.disks.iter().map(disk_in_words).collect();
        if !disks.is_empty() {
            lines.push(format!(
                "  the scheduler on {}: serves first what somebody waits for",
                disks.join(", ")
            ));
        }
        if let Some(rule) = &self.rule {
            lines.push(format!(
                "  {}: it stays on beside other rules, and new disks get it",
                rule.display()
            ));
        }
        if self.units.iter().any(|it| it == DAEMON) {
            lines.push(
                "  frontrowd: the app with the focus comes first, and who writes much is limited"
                    .to_owned(),
            );
        }
        if self.units.iter().any(|it| it == FOLLOWER) {
            let users: Vec<_> = self.users.iter().map(u32::to_string).collect();
            let now = match users.is_empty() {
                true => "from each login on".to_owned(),
                false => format!("for each login, and now for user {}", users.join(" and ")),
            };
            lines.push(format!(
                "  frontrow-follow: tells frontrowd the focus, {now}"
            ));
        }
        if !self.left_out.is_empty() {
            lines.push("Left out:".to_owned());
            lines.extend(self.left_out.iter().map(|it| format!("  {it}")));
        }
        lines.push(match is_plan {
            true => "Nothing was changed.".to_owned(),
            false => "`frontrow status` shows what it does; `sudo frontrow off` undoes all of it."
                .to_owned(),
        });
        lines.join("\n") + "\n"
    }
}

/// `vda (was mq-deadline)`
fn disk_in_words((name, changes): &(String, Vec<Change>)) -> String {
    let scheduler = changes
        .iter()
        .find(|it| it.path.ends_with("queue/scheduler"));
    match scheduler {
        Some(change) => format!("{name} (was {})", change.before),
        None => name.clone(),
    }
}

impl LeftOut {
    fn in_json(&self) -> serde_json::Value {
        json!({ "what": self.what, "why": self.why })
    }
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        /// More names than this are counted.
        const MOST: usize = 4;
        let named = self.what.len().min(MOST);
        write!(out, "{}", self.what[..named].join(", "))?;
        if self.what.len() > named {
            write!(out, " and {} more", self.what.len() - named)?;
        }
        write!(out, ": {}", self.why)
    }
}
