//! For whom waits were shortened. The scheduler's counters name no app: their growth is told of the app that
//! was the foreground while they grew. Most of it is that app's, and some may be another's.

use crate::Cgroup;
use crate::unit::Unit;
use module::sched::{Counters, counters_of};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::device::Device;

/// Time that is told of, and its parts: the oldest is forgotten as a whole.
const TOLD: Duration = Duration::from_secs(3600);
const PART: Duration = Duration::from_secs(300);
/// Most apps of a part: users make units as they like.
const MOST_APPS: usize = 64;

/// Growth of the counters while an app was the foreground, in the last hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Helped {
    /// Name of the app, as its unit has it.
    pub app: String,
    /// User that it ran for.
    pub user: u32,
    /// Time as the foreground, in milliseconds.
    pub foreground_ms: u64,
    /// Waits on background writes meanwhile.
    pub waits: u64,
    /// Waits of these that were shortened.
    pub shortened: u64,
}

type App = (u32, String);

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    foreground: Duration,
    waits: u64,
    shortened: u64,
}

/// Counters of disks, by name and by the number that no other disk of that name has.
type OfDisks = BTreeMap<(String, u64), Counters>;

/// Account of the last hour, an app a line.
#[derive(Debug)]
pub(crate) struct Account {
    root: PathBuf,
    /// Foreground app, and since when its growth is not written down.
    now: Option<App>,
    since: Instant,
    /// Counters at that time.
    counted: OfDisks,
    /// Parts of the hour by their begin, the oldest first.
    parts: VecDeque<(Instant, BTreeMap<App, Sum>)>,
}

impl Account {
    pub fn new(root: &Path, now: Instant) -> Self {
        Account {
            root: root.to_owned(),
            now: None,
            since: now,
            counted: OfDisks::new(),
            parts: VecDeque::new(),
        }
    }

    /// Takes the foreground that is in force.
    pub fn follow(&mut self, foreground: &[Cgroup], now: Instant) {
        let app = foreground.first().and_then(|it| self.app(it));
        if app == self.now {
            return;
        }
        self.write_down(now);
        self.now = app;
    }

    /// Apps of the last hour, those with the most shortened waits first.
    pub fn told(&mut self, now: Instant) -> Vec<Helped> {
        self.write_down(now);
        let mut sums: BTreeMap<&App, Sum> = BTreeMap::new();
        for (app, part) in self.parts.iter().flat_map(|(_, apps)| apps) {
            let sum = sums.entry(app).or_default();
            sum.foreground += part.foreground;
            sum.waits += part.waits;
            sum.shortened += part.shortened;
        }
        let told = sums.into_iter().map(|((user, app), sum)| Helped {
            app: app.clone(),
            user: *user,
            foreground_ms: u64::try_from(sum.foreground.as_millis()).unwrap_or(u64::MAX),
            waits: sum.waits,
            shortened: sum.shortened,
        });
        let mut told: Vec<_> = told.collect();
        told.sort_by_key(|it| std::cmp::Reverse((it.shortened, it.foreground_ms)));
        told
    }

    fn app(&self, cgroup: &Cgroup) -> Option<App> {
        let path = cgroup.path();
        let name = Unit::of(path).map_or_else(|| path.to_owned(), |it| it.app());
        Some((cgroup.owner(&self.root)?, name))
    }

    /// Writes down what the counters have grown by for the app that is the foreground.
    fn write_down(&mut self, now: Instant) {
        let counters = self.counters();
        let before = std::mem::replace(&mut self.counted, counters);
        let foreground = now.saturating_duration_since(self.since);
        self.since = now;
        self.forget(now);
        let Some(app) = &self.now else {
            return;
        };
        if self
            .parts
            .back()
            .is_none_or(|(begin, _)| now >= *begin + PART)
        {
            self.parts.push_back((now, BTreeMap::new()));
        }
        let Some((_, apps)) = self.parts.back_mut() else {
            return;
        };
        if apps.len() >= MOST_APPS && !apps.contains_key(app) {
            return;
        }
        let sum = apps.entry(app.clone()).or_default();
        sum.foreground += foreground;
        for (disk, counters) in &self.counted {
            // A disk that came since then has counted for nobody yet.
            if let Some(before) = before.get(disk) {
                let waits = counters.since(before).all_waits();
                sum.waits += waits.waits;
                sum.shortened += waits.boosted + waits.pending_matched;
            }
        }
    }

    fn forget(&mut self, now: Instant) {
        while self
            .parts
            .front()
            .is_some_and(|(begin, _)| now >= *begin + TOLD)
        {
            self.parts.pop_front();
        }
    }

    /// Counters of all disks under the scheduler. A disk that goes meanwhile has none.
    fn counters(&self) -> OfDisks {
        let disks = Device::all(&self.root).unwrap_or_default();
        let counted = disks.iter().filter_map(|disk| {
            let counters = counters_of(&self.root, disk).ok()??;
            Some(((disk.name().to_owned(), disk.sequence().ok()?), counters))
        });
        counted.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const SLICE: &str = "/user.slice/user-1000.slice/user@1000.service/app.slice";

    /// A disk that counts, and two apps.
    struct Machine(tempfile::TempDir);

    impl Machine {
        fn new() -> Self {
            let machine = Machine(tempfile::tempdir().unwrap());
            for app in [
                "app-gnome-fox-1.scope",
                "app-gnome-fox-2.scope",
                "app-gnome-foot-3.scope",
            ] {
                machine.write(&format!("sys/fs/cgroup{SLICE}/{app}/cgroup.procs"), "1");
            }
            machine.write("sys/block/sda/diskseq", "1");
            machine.write("sys/block/sda/mq/0/nr_tags", "32");
            machine.write("sys/block/sda/queue/scheduler", "none [frontrow]");
            machine.count(0, 0);
            machine
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }

        fn count(&self, waits: u64, boosted: u64) {
            let text = format!("data_waits {waits}\ndata_boosted {boosted}");
            self.write("sys/block/sda/queue/iosched/stats", &text);
        }
    }

    fn app(name: &str) -> Vec<Cgroup> {
        let cgroup = Cgroup::named(format!("{SLICE}/{name}"));
        vec![cgroup.unwrap()]
    }

    fn in_short(told: &[Helped]) -> Vec<(&str, u64, u64, u64)> {
        let each = told.iter();
        each.map(|it| {
            (
                it.app.as_str(),
                it.foreground_ms / 1000,
                it.waits,
                it.shortened,
            )
        })
        .collect()
    }

    #[test]
    fn growth_is_told_of_the_app_that_was_the_foreground_meanwhile() {
        let machine = Machine::new();
        let begin = Instant::now();
        let at = |s| begin + Duration::from_secs(s);
        let mut account = Account::new(machine.0.path(), begin);
        machine.count(5, 5);
        account.follow(&app("app-gnome-fox-1.scope"), at(10));
        machine.count(9, 8);
        account.follow(&app("app-gnome-foot-3.scope"), at(70));
        machine.count(10, 8);
        account.follow(&[], at(71));
        machine.count(20, 18);
        account.follow(&app("app-gnome-fox-2.scope"), at(80));
        machine.count(22, 20);
        let told = account.told(at(100));
        assert_eq!(in_short(&told), [("fox", 80, 6, 5), ("foot", 1, 1, 0)]);
        // The scheduler was set anew, and counts from zero.
        machine.count(1, 1);
        assert_eq!(in_short(&account.told(at(100)))[0], ("fox", 80, 7, 6));
    }

    #[test]
    fn after_an_hour_it_is_forgotten() {
        let machine = Machine::new();
        let begin = Instant::now();
        let at = |s| begin + Duration::from_secs(s);
        let mut account = Account::new(machine.0.path(), begin);
        account.follow(&app("app-gnome-fox-1.scope"), begin);
        machine.count(4, 4);
        account.follow(&app("app-gnome-foot-3.scope"), at(60));
        for minute in 2..60 {
            account.told(at(60 * minute));
        }
        assert_eq!(account.told(at(3600)).len(), 2);
        machine.count(6, 5);
        let told = account.told(at(3700));
        assert_eq!(told.len(), 1);
        assert_eq!((told[0].waits, told[0].shortened), (2, 1));
    }
}
