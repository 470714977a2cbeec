//! Share of apps' response time that they wait for storage, by app and class.
//!
//! Response time is the time in which an app runs or is blocked in the storage stack. Waits for the
//! user, the network or a CPU are not counted. Concurrent waits of several threads count each.

mod html;

use crate::live::OTHERS;
use crate::{Level, Observation};
use iopro::export::parquet;
use iopro::tables::{Column, Kind, Of, Table};
use iopro::wait::Class;
use rusqlite::types::Value;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

pub use html::page;

/// Result of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Study {
    /// Level of observation.
    pub level: Level,
    /// Limits of this level.
    pub cannot_see: Vec<String>,
    /// Requested time in nanoseconds.
    pub asked_ns: u64,
    /// For how long it was.
    pub watched_ns: u64,
    /// Whether the study was stopped early.
    pub ended_early: bool,
    /// Time in which some task waited for I/O (PSI).
    pub pressed_ns: u64,
    /// Apps, longest wait first.
    pub apps: Vec<App>,
}

/// An app: a cgroup of its own, or a command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct App {
    /// The cgroup's last name, such as `firefox.service`, or the command.
    pub name: String,
    /// CPU time in nanoseconds.
    pub cpu_ns: u64,
    /// Time blocked in the storage stack.
    pub waited_ns: u64,
    /// Waiting time over waiting and running time.
    pub share: f64,
    /// Waits by class, longest first.
    pub classes: Vec<Waited>,
}

/// Waits of an app in one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waited {
    /// Class, as iopro names it.
    pub class: Class,
    /// Number of waits, and of samples of those that were sampled.
    pub waits: u64,
    /// Total time in nanoseconds.
    pub waited_ns: u64,
    /// Longest wait; 0 if unknown.
    pub longest_ns: u64,
    /// Share of the app's waiting and running time.
    pub share: f64,
}

/// Makes a study of an observation.
pub fn study(seen: &Observation, asked_ns: u64) -> Study {
    let seen = &seen.on_a_page();
    let mut apps: BTreeMap<&str, (u64, BTreeMap<Class, Waited>)> = BTreeMap::new();
    let mut named: BTreeMap<&str, &str> = BTreeMap::new();
    for user in &seen.users {
        let name = user.app.as_deref().unwrap_or(&user.name);
        named.insert(&user.name, name);
        apps.entry(name).or_default().0 += user.cpu_ns;
    }
    for wait in &seen.waits {
        let name = named.get(wait.who.as_str()).copied();
        let classes = &mut apps.entry(name.unwrap_or(&wait.who)).or_default().1;
        let sum = classes.entry(wait.class).or_insert(Waited {
            class: wait.class,
            waits: 0,
            waited_ns: 0,
            longest_ns: 0,
            share: 0.0,
        });
        sum.waits += wait.waits + wait.samples;
        sum.waited_ns += wait.lost_ns;
        sum.longest_ns = sum.longest_ns.max(wait.longest_ns);
    }
    let apps = apps
        .into_iter()
        .map(|(name, (cpu_ns, classes))| app(name, cpu_ns, classes));
    let mut apps: Vec<App> = apps.filter(|it| it.waited_ns > 0).collect();
    apps.sort_by_key(|it| std::cmp::Reverse(it.waited_ns));
    Study {
        level: seen.level,
        cannot_see: seen.lacks(),
        asked_ns,
        watched_ns: seen.watched_ns,
        // The end is noticed some milliseconds late, never early.
        ended_early: seen.watched_ns < asked_ns,
        pressed_ns: seen.pressure.io_ns,
        apps,
    }
}

fn app(name: &str, cpu_ns: u64, classes: BTreeMap<Class, Waited>) -> App {
    let mut classes: Vec<Waited> = classes.into_values().collect();
    let waited_ns: u64 = classes.iter().map(|it| it.waited_ns).sum();
    // CPU time of merged apps is unknown.
    let response_ns = (cpu_ns + waited_ns).max(1) as f64;
    for class in &mut classes {
        class.share = class.waited_ns as f64 / response_ns;
    }
    classes.sort_by_key(|it| std::cmp::Reverse(it.waited_ns));
    App {
        name: name.to_owned(),
        cpu_ns,
        waited_ns,
        share: waited_ns as f64 / response_ns,
        classes,
    }
}

impl Study {
    /// One sentence for the terminal.
    pub fn summary(&self) -> String {
        let time = |ns: u64| record::number::with_unit(ns as f64, "ns");
        let early = match self.ended_early {
            true => format!(", ended early: {} were asked for", time(self.asked_ns)),
            false => String::new(),
        };
        let named = self.apps.iter().find(|it| it.name != OTHERS);
        let most = named.map_or("no app waited for storage".to_owned(), |app| {
            format!(
                "{} waited longest for storage, {}, {} of its response time",
                app.name,
                time(app.waited_ns),
                record::number::percent(app.share)
            )
        });
        format!("Watched {}{early}; {most}.", time(self.watched_ns))
    }

    /// The table as Parquet: a row for each app and class.
    ///
    /// # Errors
    /// What the system says of `output`.
    pub fn write_parquet(&self, output: impl Write) -> io::Result<()> {
        let of_app = |app: &App| -> Vec<Vec<Value>> {
            let rows = app.classes.iter().map(|it| {
                vec![
                    Value::Text(app.name.clone()),
                    Value::Text(it.class.to_string()),
                    number(it.waits),
                    number(it.waited_ns),
                    number(it.longest_ns),
                    number(app.cpu_ns),
                    number(app.waited_ns),
                    number(self.watched_ns),
                ]
            });
            rows.collect()
        };
        parquet::write_table(output, &TABLE, self.apps.iter().flat_map(of_app))
    }
}

/// A count in a table, whose integers have a sign.
pub(crate) fn number(value: u64) -> Value {
    Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

/// A column whose meaning docs tell.
pub(crate) const fn column(name: &'static str, kind: Kind) -> Column {
    Column {
        name,
        kind,
        nullable: false,
        doc: &[],
    }
}

/// The Parquet file's columns; docs/use/doctor-trial.md says what they mean.
const TABLE: Table = Table {
    name: "study",
    of: Of::All,
    doc: &[],
    columns: &[
        column("app", Kind::Text),
        column("class", Kind::Text),
        column("waits", Kind::Integer),
        column("waited_ns", Kind::Integer),
        column("longest_ns", Kind::Integer),
        column("app_cpu_ns", Kind::Integer),
        column("app_waited_ns", Kind::Integer),
        column("watched_ns", Kind::Integer),
    ],
    indices: &[],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Machine;
    use crate::observe::{Memory, Pressure, User, Wait};

    const SECOND: u64 = 1_000_000_000;

    fn wait(who: &str, class: Class, lost_ns: u64) -> Wait {
        Wait {
            who: who.to_owned(),
            class,
            waits: 3,
            lost_ns,
            longest_ns: lost_ns / 2,
            ..Wait::default()
        }
    }

    fn seen() -> Observation {
        let user = |name: &str, app: Option<&str>, cpu_ns| User {
            name: name.to_owned(),
            app: app.map(str::to_owned),
            cpu_ns,
            ..Default::default()
        };
        Observation {
            level: Level::Linked,
            watched_ns: 60 * SECOND,
            linked_ns: 60 * SECOND,
            pieces: BTreeMap::new(),
            waits: vec![
                wait("Web Content", Class::Service, 2 * SECOND),
                wait("firefox", Class::JournalCommit, SECOND),
                wait("dd", Class::DirtyThrottle, 8 * SECOND),
                wait(OTHERS, Class::Tag, SECOND),
            ],
            pressure: Pressure::default(),
            over_time: Vec::new(),
            memory: Memory::default(),
            cpu_busy: 0.0,
            users: vec![
                user("firefox", Some("firefox.service"), 4 * SECOND),
                user("Web Content", Some("firefox.service"), 5 * SECOND),
                user("dd", None, 2 * SECOND),
                user("idler", None, SECOND),
            ],
            disks: Vec::new(),
            groups: Vec::new(),
            kernel_blocked: BTreeMap::new(),
            held_up: Vec::new(),
            lost_events: 0,
            machine: Machine::default(),
        }
    }

    #[test]
    fn shares_are_of_what_an_app_ran_and_waited() {
        let study = study(&seen(), 60 * SECOND);
        let apps: Vec<_> = study
            .apps
            .iter()
            .map(|it| (it.name.as_str(), it.share))
            .collect();
        assert_eq!(
            apps,
            [("dd", 0.8), ("firefox.service", 0.25), (OTHERS, 1.0)]
        );
        let [service, commit] = &study.apps[1].classes[..] else {
            panic!("{study:?}");
        };
        assert_eq!(
            (service.class.name(), commit.class.name()),
            ("service", "I_jcommit")
        );
        assert_eq!(commit.share, 1.0 / 12.0);
        assert!(!study.ended_early);
        assert!(
            study.summary().contains("dd waited longest"),
            "{}",
            study.summary()
        );
    }

    #[test]
    fn what_was_ended_early_says_so_on_the_page() {
        let study = study(&seen(), 3600 * SECOND);
        assert!(study.ended_early);
        assert!(study.summary().contains("ended early"));
        let page = page(&study);
        for said in ["Ended early", "firefox.service", "dark", "<svg", "</html>"] {
            assert!(page.contains(said), "{said}");
        }
        assert!(!page.contains("<script"), "{page}");
    }

    #[test]
    fn the_parquet_file_has_a_row_for_each_app_and_class() {
        let mut bytes = Vec::new();
        study(&seen(), 1).write_parquet(&mut bytes).unwrap();
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        let names = String::from_utf8_lossy(&bytes);
        assert!(
            names.contains("app_waited_ns"),
            "the footer names the columns"
        );
    }
}
