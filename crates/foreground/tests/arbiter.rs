//! Roles of apps, from orders and the focus, and how long they last.

use crate::desk::{Desk, Event, NAMES, cgroup, relative};
use crate::system::APPS;
use foreground::{Error, Order, Roles};
use sys::knobs::Change;

#[test]
fn an_order_overrides_the_focus_until_it_is_released() {
    let mut desk = Desk::new();
    let foreground = |desk: &Desk| -> Vec<String> {
        let foreground = desk.arbiter.roles().foreground.iter();
        foreground
            .map(|it| it.path().rsplit('/').next().unwrap().to_owned())
            .collect()
    };
    desk.focus(&[NAMES[0]]);
    assert_eq!(foreground(&desk), [NAMES[0]]);
    desk.happens(&Event::Command(1));
    desk.focus(&[NAMES[2]]);
    assert_eq!(foreground(&desk), [NAMES[1]]);
    let status = desk.arbiter.status(desk.now).unwrap();
    assert_eq!(status.why, "set by frontrow fg set");
    assert_eq!(status.background.len(), 4);
    desk.happens(&Event::Release);
    assert!(foreground(&desk).is_empty());
    // An app that starts is no change of focus.
    desk.focus(&[NAMES[2]]);
    assert!(foreground(&desk).is_empty());
    desk.focus(&[NAMES[3]]);
    assert_eq!(foreground(&desk), [NAMES[3]]);
    // With the end of the one that was named, the focus counts again.
    desk.happens(&Event::Command(1));
    desk.happens(&Event::End(1));
    assert_eq!(foreground(&desk), [NAMES[3]]);
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

/// Each change of scheduler freezes the disk for all: a user who sets and releases without a pause
/// has it change once a minute at most, and soon after the last release it is as before.
#[test]
fn who_sets_and_releases_without_end_changes_no_scheduler_more_than_once_a_minute() {
    let mut desk = Desk::new();
    desk.system.add_disk_of_the_kernels();
    let before = desk.system.scheduler();
    let (mut switches, mut held) = (0, before.clone());
    let mut look = |desk: &Desk| {
        let now = desk.system.scheduler();
        switches += u32::from(now != std::mem::replace(&mut held, now.clone()));
        switches
    };
    for pause_s in [0, 0, 0, 7, 59, 61, 61, 61, 3, 0] {
        desk.happens(&Event::Command(1));
        look(&desk);
        desk.happens(&Event::Wait(1));
        desk.happens(&Event::Release);
        desk.happens(&Event::Wait(pause_s));
        look(&desk);
    }
    let elapsed_s = 10 + 252;
    assert!(look(&desk) <= elapsed_s / 60, "{} changes", look(&desk));
    desk.happens(&Event::Wait(61));
    assert_eq!(desk.system.scheduler(), before);
    assert_eq!(desk.arbiter.due(), None);
}

#[test]
fn status_says_which_scheduler_a_disk_keeps_and_when_it_may_change() {
    let mut desk = Desk::new();
    desk.system.add_disk_of_the_kernels();
    desk.happens(&Event::Command(1));
    desk.happens(&Event::Release);
    let status = desk.arbiter.status(desk.now).unwrap();
    assert_eq!((status.kept.len(), status.switch_in_s), (1, 60));
    assert_eq!(desk.system.app(NAMES[2], "memory.high"), "max");
    // Put back, it stays so for a minute; then the foreground has BFQ by itself.
    desk.happens(&Event::Wait(60));
    desk.happens(&Event::Command(1));
    assert_eq!(desk.system.scheduler(), "mq-deadline");
    let status = desk.arbiter.status(desk.now).unwrap();
    assert_eq!((status.kept.len(), status.switch_in_s), (0, 60));
    desk.happens(&Event::Wait(60));
    assert_eq!(desk.system.scheduler(), "bfq");
    desk.arbiter.end("the end", desk.now).unwrap();
    assert_eq!(desk.system.scheduler(), "mq-deadline");
}

#[test]
fn an_app_that_starts_beside_a_foreground_is_background() {
    let mut desk = Desk::new();
    desk.happens(&Event::End(4));
    desk.focus(&[NAMES[0]]);
    desk.happens(&Event::Start(4));
    desk.focus(&[NAMES[0]]);
    let background = &desk.arbiter.roles().background;
    assert!(background.contains(&cgroup(NAMES[4])), "{background:?}");
    assert_ne!(desk.system.app(NAMES[4], "memory.high"), "max");
}

#[test]
fn no_app_stays_in_the_background_for_ever() {
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
    let why = desk.arbiter.status(desk.now).unwrap().why;
    assert!(why.contains("longer than the limit"), "{why}");
    assert!(desk.arbiter.due().is_none());
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
    assert!(!desk.arbiter.is_settling());
    desk.happens(&Event::Grow(2, 100));
    desk.happens(&Event::Wait(1));
    assert_eq!(mib(&desk), 64 + 100);
}

#[test]
fn an_app_that_stands_still_at_its_limit_goes_without() {
    let mut desk = Desk::new();
    let pressure = format!("sys/fs/cgroup/{APPS}/{}/memory.pressure", NAMES[2]);
    desk.focus(&[NAMES[0]]);
    desk.happens(&Event::Wait(1));
    for (percent, high) in [("9.99", "75497472"), ("10.00", "max"), ("0.00", "max")] {
        let some = "some avg10=99.00 avg60=0.00 avg300=0.00 total=1";
        let full = format!("full avg10={percent} avg60=0.00 avg300=0.00 total=1");
        desk.system.write(&pressure, &format!("{some}\n{full}\n"));
        desk.arbiter.limit_was_hit(desk.now);
        desk.happens(&Event::Wait(1));
        assert_eq!(desk.system.app(NAMES[2], "memory.high"), high);
    }
    let status = desk.arbiter.status(desk.now).unwrap();
    assert_eq!(status.spared, [cgroup(NAMES[2])]);
    assert_eq!(desk.system.app(NAMES[1], "memory.high"), "75497472");
}

#[test]
fn what_cannot_be_done_is_told_and_leaves_nothing() {
    let mut desk = Desk::new();
    let before = relative(desk.system.root());
    desk.system.cgroup(NAMES[0], "io");
    let seen = desk
        .arbiter
        .set_focus(vec![cgroup(NAMES[0])], "a test", desk.now);
    assert!(matches!(seen, Err(Error::NoController { .. })));
    let why = desk.arbiter.status(desk.now).unwrap().why;
    assert!(why.contains("+memory"), "{why}");
    let nobody = Order {
        foreground: Vec::new(),
        visible: Vec::new(),
        background: Vec::new(),
    };
    let made = desk.arbiter.command(nobody, desk.now);
    assert!(matches!(made, Err(Error::Garbled)));
    desk.system.cgroup(NAMES[0], "io memory");
    assert_eq!(relative(desk.system.root()), before);
    assert_eq!(*desk.arbiter.roles(), Roles::default());
}

/// Two apps of one user that take turns keep others in the background as long as one app would.
#[test]
fn taking_turns_is_no_way_around_the_limit() {
    let mut desk = Desk::new();
    for turn in 0..100 {
        desk.focus(&[NAMES[turn % 2]]);
        desk.happens(&Event::Wait(9));
    }
    assert_ne!(desk.system.list("foreground"), "none");
    desk.happens(&Event::Wait(100));
    assert_eq!(desk.system.list("foreground"), "none");
}

#[test]
fn an_order_names_no_more_cgroups_than_a_screen_has() {
    let mut desk = Desk::new();
    let mut order = Order {
        foreground: vec![cgroup(NAMES[0])],
        visible: Vec::new(),
        background: vec![cgroup(NAMES[1]); 1200],
    };
    let refused = desk.arbiter.command(order.clone(), desk.now);
    assert!(matches!(refused, Err(Error::TooMany(_))), "{refused:?}");
    assert_eq!(desk.system.list("foreground"), "none");
    order.background.truncate(1);
    desk.arbiter.command(order, desk.now).unwrap();
}

#[test]
fn a_user_is_told_of_their_own_apps_only() {
    let mut desk = Desk::new();
    desk.focus(&[NAMES[0]]);
    let mut status = desk.arbiter.status(desk.now).unwrap();
    status.writers = vec![limited(NAMES[1]), limited(NAMES[2])];
    let whole = status.clone().told_of(true, |_| true);
    assert_eq!(whole, status);
    let mail = cgroup(NAMES[2]);
    let theirs = status.clone().told_of(true, |it| *it == mail);
    assert!(theirs.others && theirs.foreground.is_empty());
    assert_eq!(theirs.background, [mail]);
    assert!(!theirs.changes.is_empty());
    assert_eq!(theirs.writers, [limited(NAMES[2])]);
    let told = serde_json::to_string(&theirs).unwrap();
    for name in [NAMES[0], NAMES[1], NAMES[3]] {
        assert!(!told.contains(name), "{told}");
    }
    let nothing = serde_json::to_string(&status.told_of(false, |_| false)).unwrap();
    assert!(!nothing.contains("scope"), "{nothing}");
    assert!(nothing.contains("\"since_s\":null"), "{nothing}");
    // The end of another's foreground says when it was, too.
    let owner = rustix::process::geteuid().as_raw();
    assert!(!desk.arbiter.was_changed_for(owner + 1));
    desk.happens(&Event::Release);
    assert!(!desk.arbiter.was_changed_for(owner + 1));
    assert!(desk.arbiter.was_changed_for(owner));
}

/// The limit of an app that writes far ahead of its disk.
fn limited(name: &str) -> Change {
    Change {
        path: format!("/sys/fs/cgroup/{APPS}/{name}/memory.high").into(),
        before: "max".to_owned(),
        value: Some("1073741824".to_owned()),
        reason: String::new(),
    }
}
