//! Whatever happens, and wherever it is killed, the knobs return to what they were.

mod system;

use foreground::{Cgroup, Error, Grounds, Hold, Keeper, Order, Pace, Parts, Step};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use system::{APPS, System};

const NAMES: [&str; 5] = [
    "app-game-1.scope",
    "app-shop-2.scope",
    "app-mail-3.scope",
    "app-maps-4.scope",
    "app-chat-5.scope",
];

fn system() -> System {
    let system = System::new();
    for name in NAMES {
        system.cgroup(name, "io memory");
    }
    system
}

fn cgroup(name: &str) -> Cgroup {
    serde_json::from_value(format!("/{APPS}/{name}").into()).unwrap()
}

/// Every file of the kernel's.
fn knobs(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut knobs = BTreeMap::new();
    let mut directories = vec![root.join("sys")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => directories.push(path),
                false => {
                    let text = fs::read_to_string(&path).unwrap();
                    knobs.insert(path, text.trim().to_owned());
                }
            }
        }
    }
    knobs
}

/// What can happen to a daemon.
#[derive(Clone, Debug)]
enum Event {
    /// These apps have the focus.
    Focus(Vec<usize>),
    Command(usize),
    Release,
    /// An app ends, or another one starts in a cgroup of the same name.
    End(usize),
    Start(usize),
    /// An app has this many MiB.
    Grow(usize, u64),
    /// So many seconds pass.
    Wait(u64),
    Kill,
}

fn event() -> impl Strategy<Value = Event> {
    let app = || 0..NAMES.len();
    prop_oneof![
        4 => prop::collection::vec(app(), 0..3).prop_map(Event::Focus),
        1 => app().prop_map(Event::Command),
        1 => Just(Event::Release),
        2 => app().prop_map(Event::End),
        2 => app().prop_map(Event::Start),
        1 => (app(), 1..400u64).prop_map(|(app, mib)| Event::Grow(app, mib)),
        2 => (0..3000u64).prop_map(Event::Wait),
        1 => Just(Event::Kill),
    ]
}

struct Desk {
    system: System,
    keeper: Keeper,
    now: Instant,
}

const LIMIT: Option<Duration> = Some(Duration::from_secs(1000));

impl Desk {
    fn new() -> Self {
        let system = system();
        let now = Instant::now();
        let keeper = Keeper::start(system.root(), LIMIT, now).unwrap();
        Desk {
            system,
            keeper,
            now,
        }
    }

    fn directory(&self, name: &str) -> PathBuf {
        self.system
            .root()
            .join(format!("sys/fs/cgroup/{APPS}/{name}"))
    }

    fn focus(&mut self, names: &[&str]) {
        let front = names.iter().map(|name| cgroup(name)).collect();
        self.keeper.sees(front, "a test", self.now).unwrap();
    }

    fn happens(&mut self, event: &Event) {
        match event {
            Event::Focus(apps) => {
                let names: Vec<_> = apps.iter().map(|&app| NAMES[app]).collect();
                self.focus(&names);
            }
            Event::Command(app) => {
                let order = Order {
                    front: vec![cgroup(NAMES[*app])],
                    behind: Vec::new(),
                };
                let exists = self.directory(NAMES[*app]).exists();
                let made = self.keeper.command(order, self.now);
                assert_eq!(made.is_ok(), exists);
            }
            Event::Release => {
                self.keeper.release("a test", self.now).unwrap();
            }
            Event::End(app) => {
                if self.directory(NAMES[*app]).exists() {
                    self.system.remove(NAMES[*app]);
                    self.keeper.look_after(self.now).unwrap();
                }
            }
            Event::Start(app) => {
                if !self.directory(NAMES[*app]).exists() {
                    self.system.cgroup(NAMES[*app], "io memory");
                }
            }
            Event::Grow(app, mib) => {
                let stat = self.directory(NAMES[*app]).join("memory.stat");
                if stat.exists() {
                    fs::write(stat, format!("anon {}\n", mib << 20)).unwrap();
                    self.keeper.limit_was_hit(self.now);
                }
            }
            Event::Wait(seconds) => {
                self.now += Duration::from_secs(*seconds);
                if self.keeper.due().is_some_and(|due| due <= self.now) {
                    self.keeper.tick(self.now).unwrap();
                }
            }
            Event::Kill => {
                // Its lock ends with it, before the next one asks for it.
                let next = System::new();
                let nobody = Keeper::start(next.root(), None, self.now).unwrap();
                drop(std::mem::replace(&mut self.keeper, nobody));
                self.keeper = Keeper::start(self.system.root(), LIMIT, self.now).unwrap();
            }
        }
    }

    /// Cgroups that have ended are made anew, as all had been.
    fn knobs_in_the_end(mut self) -> BTreeMap<PathBuf, String> {
        self.keeper.release("the end", self.now).unwrap();
        for (app, name) in NAMES.iter().enumerate() {
            self.happens(&Event::Start(app));
            let stat = self.directory(name).join("memory.stat");
            fs::write(stat, "anon 8388608\nfile 4096\n").unwrap();
        }
        relative(self.system.root())
    }
}

/// Without the directory that they are in.
fn relative(root: &Path) -> BTreeMap<PathBuf, String> {
    let inside = |path: &Path| path.strip_prefix(root).unwrap().to_owned();
    let knobs = knobs(root).into_iter();
    knobs.map(|(path, text)| (inside(&path), text)).collect()
}

/// The knob as if the process had been killed between writing a change down and making it.
fn undo_by_hand(root: &Path, step: &Step, before: &BTreeMap<PathBuf, String>) {
    if let Step::Set { path, .. } = step {
        let path = path.strip_prefix("/").unwrap();
        fs::write(root.join(path), &before[path]).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_knobs_return_to_what_they_were(events in prop::collection::vec(event(), 0..24)) {
        let before = relative(system().root());
        let mut desk = Desk::new();
        for event in &events {
            desk.happens(event);
        }
        prop_assert_eq!(desk.knobs_in_the_end(), before);
    }

    #[test]
    fn killed_after_any_step_it_leaves_nothing_that_cannot_be_undone(
        fronts in prop::collection::vec(0..NAMES.len(), 1..4),
        torn in any::<bool>(),
    ) {
        let before = relative(system().root());
        let (last, first) = fronts.split_last().unwrap();
        for killed_after in 0.. {
            let system = system();
            let root = system.root();
            let mut hold = Hold::begin(root, Parts::ALL).unwrap();
            for front in first {
                hold.change(&system.in_front(NAMES[*front]), Pace::Settled).unwrap();
            }
            let steps = hold.steps(&system.in_front(NAMES[*last]), Pace::Settled).unwrap();
            for step in steps.iter().take(killed_after) {
                hold.take(step).unwrap();
            }
            if let Some(step) = steps.get(killed_after).filter(|_| torn) {
                let held = relative(root);
                hold.take(step).unwrap();
                undo_by_hand(root, step, &held);
            }
            drop(hold);
            foreground::release(root).unwrap();
            prop_assert_eq!(&relative(root), &before);
            if killed_after >= steps.len() {
                break;
            }
        }
    }
}

#[test]
fn a_minute_of_changes_at_20_hz_leaves_a_short_journal_and_nothing_else() {
    let before = relative(system().root());
    let mut desk = Desk::new();
    for change in 0..20 * 60 {
        let front = NAMES[change % NAMES.len()];
        if change % 7 == 3 {
            // It ends in mid-switch: the focus is told after its end.
            desk.happens(&Event::Start(change % NAMES.len()));
            desk.system.remove(front);
        }
        desk.focus(&[front]);
        desk.happens(&Event::Start(change % NAMES.len()));
        desk.now += Duration::from_millis(50);
    }
    let journal = desk.system.read("run/frontrow/foreground.jsonl");
    assert!(journal.lines().count() < 20, "{journal}");
    assert_eq!(desk.knobs_in_the_end(), before);
}

#[test]
fn what_was_said_counts_before_what_is_seen_until_it_is_released() {
    let mut desk = Desk::new();
    let front = |desk: &Desk| -> Vec<String> {
        let front = desk.keeper.grounds().front.iter();
        front
            .map(|it| it.path().rsplit('/').next().unwrap().to_owned())
            .collect()
    };
    desk.focus(&[NAMES[0]]);
    assert_eq!(front(&desk), [NAMES[0]]);
    desk.happens(&Event::Command(1));
    desk.focus(&[NAMES[2]]);
    assert_eq!(front(&desk), [NAMES[1]]);
    let status = desk.keeper.status(desk.now).unwrap();
    assert_eq!(status.why, "said by frontrow fg set");
    assert_eq!(status.behind.len(), 4);
    desk.happens(&Event::Release);
    assert!(front(&desk).is_empty());
    // An app that starts is no change of focus.
    desk.focus(&[NAMES[2]]);
    assert!(front(&desk).is_empty());
    desk.focus(&[NAMES[3]]);
    assert_eq!(front(&desk), [NAMES[3]]);
    // With the end of the one that was named, the focus counts again.
    desk.happens(&Event::Command(1));
    desk.happens(&Event::End(1));
    assert_eq!(front(&desk), [NAMES[3]]);
}

#[test]
fn between_two_apps_with_the_focus_nobody_is_let_go() {
    let mut desk = Desk::new();
    let game = format!("/{APPS}/{}", NAMES[0]);
    desk.focus(&[NAMES[0]]);
    desk.focus(&[]);
    assert_eq!(desk.system.list("foreground"), game);
    desk.focus(&[NAMES[0]]);
    desk.happens(&Event::Wait(1));
    assert_eq!(desk.system.list("foreground"), game);
    desk.focus(&[]);
    desk.happens(&Event::Wait(1));
    assert_eq!(desk.system.list("foreground"), "none");
    // After a release too it is a change when the same app gets the focus again.
    desk.focus(&[NAMES[0]]);
    desk.happens(&Event::Release);
    desk.focus(&[]);
    desk.happens(&Event::Wait(1));
    desk.focus(&[NAMES[0]]);
    assert_eq!(desk.system.list("foreground"), game);
}

#[test]
fn an_app_that_starts_while_another_is_in_front_is_behind() {
    let mut desk = Desk::new();
    desk.happens(&Event::End(4));
    desk.focus(&[NAMES[0]]);
    desk.happens(&Event::Start(4));
    desk.focus(&[NAMES[0]]);
    let behind = &desk.keeper.grounds().behind;
    assert!(behind.contains(&cgroup(NAMES[4])), "{behind:?}");
    assert_ne!(desk.system.app(NAMES[4], "memory.high"), "max");
}

#[test]
fn nobody_is_held_behind_for_ever() {
    let mut desk = Desk::new();
    desk.focus(&[NAMES[0]]);
    desk.happens(&Event::Wait(999));
    assert_eq!(
        desk.system.list("foreground"),
        format!("/{APPS}/{}", NAMES[0])
    );
    desk.happens(&Event::Wait(1));
    assert_eq!(desk.system.list("foreground"), "none");
    assert_eq!(desk.system.app(NAMES[1], "memory.high"), "max");
    let why = desk.keeper.status(desk.now).unwrap().why;
    assert!(why.contains("so long"), "{why}");
    assert!(desk.keeper.due().is_none());
    desk.focus(&[NAMES[1]]);
    assert_eq!(
        desk.system.list("foreground"),
        format!("/{APPS}/{}", NAMES[1])
    );
}

#[test]
fn limits_wait_until_the_user_stays() {
    let mut desk = Desk::new();
    let mail = format!("sys/fs/cgroup/{APPS}/{}/memory", NAMES[2]);
    desk.system
        .write(&format!("{mail}.current"), &(600u64 << 20).to_string());
    desk.focus(&[NAMES[0]]);
    let mib = |desk: &Desk| {
        desk.system
            .app(NAMES[2], "memory.high")
            .parse::<u64>()
            .unwrap()
            >> 20
    };
    assert_eq!(mib(&desk), 600);
    desk.happens(&Event::Wait(1));
    // A quarter of 1 GiB among four, and what the app uses.
    assert_eq!(mib(&desk), 64 + 8);
    assert!(!desk.keeper.is_settling());
    desk.happens(&Event::Grow(2, 100));
    desk.happens(&Event::Wait(1));
    assert_eq!(mib(&desk), 64 + 100);
}

#[test]
fn what_cannot_be_done_is_told_and_leaves_nothing() {
    let mut desk = Desk::new();
    let before = relative(desk.system.root());
    desk.system
        .write("sys/block/mmcblk0/queue/scheduler", "[none] frontrow\n");
    let seen = desk.keeper.sees(vec![cgroup(NAMES[0])], "a test", desk.now);
    assert!(matches!(seen, Err(Error::NoScheduler)));
    let why = desk.keeper.status(desk.now).unwrap().why;
    assert!(why.contains("sched enable"), "{why}");
    let nobody = Order {
        front: Vec::new(),
        behind: Vec::new(),
    };
    let made = desk.keeper.command(nobody, desk.now);
    assert!(matches!(made, Err(Error::Garbled)));
    desk.system.write(
        "sys/block/mmcblk0/queue/scheduler",
        "none [frontrow] mq-deadline\n",
    );
    assert_eq!(relative(desk.system.root()), before);
    assert_eq!(*desk.keeper.grounds(), Grounds::default());
}
