//! Holding and releasing, on a tree that stands for a system.

use crate::system::{APPS, System};
use foreground::{
    AppliedPolicy, Cgroup, Error, Order, Pace, Parts, Roles, Step, Visible, apply, changes, release,
};
use std::fs;

#[test]
fn other_apps_are_background_and_services_are_not() {
    let system = System::new();
    let roles = system.game_in_foreground();
    let background: Vec<_> = roles.background.iter().map(Cgroup::path).collect();
    assert_eq!(
        background,
        [
            "/user.slice/app.slice/app-mail-3.scope",
            "/user.slice/app.slice/app-shop-2.scope"
        ]
    );
    let whole = apply(system.root(), &roles, Parts::ALL).unwrap();
    assert_eq!(
        system.app("app-game-1.scope", "memory.low"),
        (512 << 20).to_string()
    );
    assert_eq!(
        system.app("app-mail-3.scope", "memory.high"),
        ((128 + 8) << 20).to_string()
    );
    // Or it would have no effect.
    assert_eq!(
        system.read("sys/fs/cgroup/user.slice/memory.low"),
        (512 << 20).to_string()
    );
    assert_eq!(system.app("dbus.service", "memory.high"), "max");
    assert_eq!(
        system.list("foreground"),
        "/user.slice/app.slice/app-game-1.scope"
    );
    assert_eq!(system.list("background"), background.join("\n"));
    assert_eq!(changes(system.root()).unwrap(), whole);
}

#[test]
fn all_is_as_it_was_after_release_and_release_may_be_repeated() {
    let system = System::new();
    apply(system.root(), &system.game_in_foreground(), Parts::ALL).unwrap();
    assert!(matches!(
        apply(system.root(), &system.game_in_foreground(), Parts::ALL),
        Err(Error::AlreadyApplied)
    ));
    assert_eq!(release(system.root()).unwrap().len(), 7);
    assert_eq!(system.app("app-game-1.scope", "memory.low"), "0");
    assert_eq!(system.app("app-mail-3.scope", "memory.high"), "max");
    assert_eq!(system.list("foreground"), "none");
    assert_eq!(system.list("background"), "none");
    assert!(release(system.root()).unwrap().is_empty());
}

#[test]
fn a_cgroup_that_vanished_is_no_obstacle_to_releasing_the_others() {
    let system = System::new();
    apply(system.root(), &system.game_in_foreground(), Parts::ALL).unwrap();
    let gone = format!("sys/fs/cgroup/{APPS}/app-shop-2.scope");
    fs::remove_dir_all(system.root().join(gone)).unwrap();
    release(system.root()).unwrap();
    assert_eq!(system.app("app-mail-3.scope", "memory.high"), "max");
    assert_eq!(system.list("foreground"), "none");
}

#[test]
fn a_failure_half_way_undoes_all_changes() {
    let system = System::new();
    system.cgroup("app-game-1.scope", "io");
    let error = apply(system.root(), &system.game_in_foreground(), Parts::ALL).unwrap_err();
    assert!(error.to_string().contains("+memory"), "{error}");
    assert_eq!(system.app("app-game-1.scope", "memory.low"), "0");
    assert_eq!(system.app("app-mail-3.scope", "memory.high"), "max");
    assert!(changes(system.root()).unwrap().is_empty());
}

/// A disk under a scheduler of the kernel's, with a setting that a change of scheduler resets.
fn without_the_scheduler(hardware_queues: usize) -> System {
    let system = System::new();
    let queue = "sys/block/mmcblk0/queue";
    system.write(&format!("{queue}/scheduler"), "none [mq-deadline]\n");
    system.write(&format!("{queue}/nr_requests"), "300\n");
    for number in 0..hardware_queues {
        system.write(&format!("sys/block/mmcblk0/mq/{number}/nr_tags"), "32\n");
    }
    system
}

#[test]
fn without_the_scheduler_the_kernels_own_means_serve() {
    let system = without_the_scheduler(1);
    let roles = system.game_in_foreground();
    let mut applied = AppliedPolicy::begin(system.root(), Parts::ALL).unwrap();
    let steps = applied.steps(&roles, Pace::Settled).unwrap();
    assert_eq!(in_words(&steps)[0], "set queue/scheduler");
    applied.take(&steps[0]).unwrap();
    // As the kernel does, then.
    let queue = "sys/block/mmcblk0/queue";
    system.write(&format!("{queue}/scheduler"), "none mq-deadline [bfq]\n");
    system.write(&format!("{queue}/nr_requests"), "64\n");
    let weight = |app: &str| format!("sys/fs/cgroup/{APPS}/{app}/io.bfq.weight");
    for app in ["app-game-1.scope", "app-shop-2.scope", "dbus.service"] {
        system.write(&weight(app), "default 100\n8:0 50\n");
    }
    applied.change(&roles, Pace::Settled).unwrap();
    assert_eq!(system.read(&weight("app-game-1.scope")), "1000");
    assert_eq!(system.read(&weight("app-shop-2.scope")), "1");
    assert!(system.read(&weight("dbus.service")).starts_with("default"));

    applied.release().unwrap();
    assert_eq!(system.read(&weight("app-game-1.scope")), "100");
    assert_eq!(system.read(&format!("{queue}/scheduler")), "mq-deadline");
    assert_eq!(system.read(&format!("{queue}/nr_requests")), "300");
}

#[test]
fn a_disk_with_many_queues_keeps_its_scheduler() {
    let system = without_the_scheduler(8);
    apply(system.root(), &system.game_in_foreground(), Parts::ALL).unwrap();
    let scheduler = system.read("sys/block/mmcblk0/queue/scheduler");
    assert_eq!(scheduler, "none [mq-deadline]");
    assert_ne!(system.app("app-game-1.scope", "memory.low"), "0");
}

#[test]
fn what_is_no_app_is_refused_with_its_reason() {
    let system = System::new();
    let resolve = |what: &str| Cgroup::resolve(system.root(), what).unwrap_err();
    assert!(matches!(resolve("9"), Error::Unknown(_)));
    assert!(matches!(resolve("/nowhere"), Error::Unknown(_)));
    assert!(matches!(
        resolve("/user.slice/../../etc"),
        Error::Unknown(_)
    ));
    assert!(matches!(resolve("8"), Error::Root(_)));
    assert!(matches!(resolve("/sys/fs/cgroup/"), Error::Root(_)));
    fs::remove_file(system.root().join("sys/fs/cgroup/cgroup.controllers")).unwrap();
    assert!(matches!(resolve("7"), Error::NoHierarchy));
}

#[test]
fn parts_are_to_be_had_apart() {
    let system = System::new();
    let none = Parts {
        allocator: false,
        reclaimer: false,
        dispatcher: false,
    };
    let only_reclaim = Parts {
        reclaimer: true,
        ..none
    };
    let made = apply(system.root(), &system.game_in_foreground(), only_reclaim).unwrap();
    assert_eq!(made.len(), 3);
    assert_eq!(system.list("foreground"), "none");
    release(system.root()).unwrap();
}

/// What a change would do, by the file names of the knobs.
fn in_words(steps: &[Step]) -> Vec<String> {
    let word = |step: &Step| {
        let (path, what) = match step {
            Step::Set { path, .. } => (path, "set"),
            Step::PutBack(path) => (path, "put back"),
        };
        let mut parts = path.iter().rev().map(|part| part.to_string_lossy());
        let [knob, of] = [parts.next().unwrap(), parts.next().unwrap()];
        format!("{what} {of}/{knob}")
    };
    steps.iter().map(word).collect()
}

#[test]
fn a_change_of_focus_touches_only_what_differs() {
    let system = System::new();
    let mut applied = AppliedPolicy::begin(system.root(), Parts::ALL).unwrap();
    applied
        .change(&system.game_in_foreground(), Pace::Settled)
        .unwrap();
    let shop = system.in_foreground("app-shop-2.scope");
    assert_eq!(
        in_words(&applied.steps(&shop, Pace::Settled).unwrap()),
        [
            "put back app-game-1.scope/memory.low",
            "put back app-shop-2.scope/memory.high",
            "set iosched/foreground",
            "set iosched/background",
            "set app-shop-2.scope/memory.low",
            "set app-game-1.scope/memory.high",
        ]
    );
    applied.change(&shop, Pace::Settled).unwrap();
    assert!(applied.steps(&shop, Pace::Settled).unwrap().is_empty());
    assert_eq!(system.app("app-shop-2.scope", "memory.high"), "max");
    assert_eq!(applied.release().unwrap().len(), 7);
}

#[test]
fn what_somebody_else_sets_meanwhile_is_left_and_told() {
    let system = System::new();
    let high = format!("sys/fs/cgroup/{APPS}/app-mail-3.scope/memory.high");
    let mut applied = AppliedPolicy::begin(system.root(), Parts::ALL).unwrap();
    applied
        .change(&system.game_in_foreground(), Pace::Settled)
        .unwrap();
    system.write(&high, "77000704\n");
    applied
        .change(&system.in_foreground("app-shop-2.scope"), Pace::Settled)
        .unwrap();
    assert_eq!(system.read(&high), "77000704");
    assert_eq!(
        applied.overruled().unwrap(),
        [std::path::Path::new("/").join(&high)]
    );
    applied.release().unwrap();
    assert_eq!(system.read(&high), "77000704");
    assert_eq!(system.list("foreground"), "none");
}

#[test]
fn limits_and_protection_that_go_further_are_left() {
    let system = System::new();
    let apps = format!("sys/fs/cgroup/{APPS}");
    system.write(&format!("{apps}/app-mail-3.scope/memory.high"), "4194304\n");
    system.write(&format!("{apps}/memory.low"), "max\n");
    let made = apply(system.root(), &system.game_in_foreground(), Parts::ALL).unwrap();
    assert_eq!(made.len(), 5);
    assert_eq!(system.app("app-mail-3.scope", "memory.high"), "4194304");
    assert_eq!(system.read(&format!("{apps}/memory.low")), "max");
    release(system.root()).unwrap();
}

#[test]
fn ancestors_of_two_foreground_apps_have_the_sum_of_their_protection() {
    let system = System::new();
    let mut both = system.in_foreground("app-shop-2.scope");
    both.foreground
        .extend(system.game_in_foreground().foreground);
    both.background.retain(|it| !both.foreground.contains(it));
    apply(system.root(), &both, Parts::ALL).unwrap();
    let half = (512 << 20).to_string();
    let quarter = (256 << 20).to_string();
    assert_eq!(system.app("app-shop-2.scope", "memory.low"), quarter);
    assert_eq!(system.read("sys/fs/cgroup/user.slice/memory.low"), half);
    release(system.root()).unwrap();
}

#[test]
fn helpers_and_ancestors_of_the_foreground_app_are_not_background() {
    let system = System::new();
    system.cgroup("app-gnome-game-9.scope", "io memory");
    system.cgroup("app-shop-2.scope/part", "io memory");
    let background = |foreground: &str| -> Vec<String> {
        let background = system.in_foreground(foreground).background.into_iter();
        background
            .map(|it| it.path().rsplit('/').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        background("app-game-1.scope"),
        ["app-mail-3.scope", "app-shop-2.scope"]
    );
    let others = [
        "app-game-1.scope",
        "app-gnome-game-9.scope",
        "app-mail-3.scope",
    ];
    assert_eq!(background("app-shop-2.scope/part"), others);
}

#[test]
fn background_apps_give_up_the_cpu_unless_they_have_a_weight() {
    let system = System::new();
    let knob = |app: &str, name: &str| format!("sys/fs/cgroup/{APPS}/{app}/{name}");
    for (app, weight) in [("app-shop-2.scope", "100\n"), ("app-mail-3.scope", "20\n")] {
        system.write(&knob(app, "cpu.weight"), weight);
        system.write(&knob(app, "cpu.idle"), "0\n");
    }
    let mut applied = AppliedPolicy::begin(system.root(), Parts::ALL).unwrap();
    applied
        .change(&system.game_in_foreground(), Pace::Settled)
        .unwrap();
    assert_eq!(system.app("app-shop-2.scope", "cpu.idle"), "1");
    assert_eq!(system.app("app-mail-3.scope", "cpu.idle"), "0");
    // As the kernel shows it then, which is no weight of its own.
    system.write(&knob("app-shop-2.scope", "cpu.weight"), "0\n");
    assert!(
        applied
            .steps(&system.game_in_foreground(), Pace::Settled)
            .unwrap()
            .is_empty()
    );
    applied
        .change(&system.in_foreground("app-shop-2.scope"), Pace::Settled)
        .unwrap();
    assert_eq!(system.app("app-shop-2.scope", "cpu.idle"), "0");
    applied.release().unwrap();
}

#[test]
fn a_visible_app_has_its_weight_and_is_not_background() {
    let system = System::new();
    let before = system.list("visible");
    let path = |name: &str| format!("/{APPS}/{name}");
    let cgroup = |name: &str| Cgroup::resolve(system.root(), &path(name)).unwrap();
    let visible = vec![Visible {
        cgroup: cgroup("app-shop-2.scope"),
        percent: 28,
    }];
    let order = Order {
        foreground: vec![cgroup("app-game-1.scope")],
        visible,
        background: Vec::new(),
    };
    let roles = order.roles(system.root()).unwrap();
    assert_eq!(roles.background, [cgroup("app-mail-3.scope")]);
    apply(system.root(), &roles, Parts::ALL).unwrap();
    // 28 of 128.
    assert_eq!(
        system.list("visible"),
        format!("21 {}", path("app-shop-2.scope"))
    );
    let low = |name| system.app(name, "memory.low").parse::<u64>().unwrap() >> 20;
    assert_eq!(low("app-game-1.scope"), 400);
    assert_eq!(low("app-shop-2.scope"), 112);
    assert_eq!(
        system.read("sys/fs/cgroup/user.slice/memory.low"),
        (512 << 20).to_string()
    );
    assert_eq!(system.app("app-shop-2.scope", "memory.high"), "max");
    release(system.root()).unwrap();
    assert_eq!(system.list("visible"), before);
    // A module of before has no such list.
    fs::remove_file(
        system
            .root()
            .join("sys/block/mmcblk0/queue/iosched/visible"),
    )
    .unwrap();
    apply(system.root(), &roles, Parts::ALL).unwrap();
    assert_eq!(system.list("foreground"), path("app-game-1.scope"));
    release(system.root()).unwrap();
}

#[test]
fn a_visible_app_that_cannot_be_served_does_not_prevent_the_rest() {
    for (controllers, low, share) in [
        ("io", 512, "21"),
        ("memory", 400, "none"),
        ("", 512, "none"),
    ] {
        let system = System::new();
        system.cgroup("app-shop-2.scope", controllers);
        let path = |name: &str| format!("/{APPS}/{name}");
        let cgroup = |name: &str| Cgroup::resolve(system.root(), &path(name)).unwrap();
        let order = Order {
            foreground: vec![cgroup("app-game-1.scope")],
            visible: vec![Visible {
                cgroup: cgroup("app-shop-2.scope"),
                percent: 28,
            }],
            background: Vec::new(),
        };
        let roles = order.roles(system.root()).unwrap();
        apply(system.root(), &roles, Parts::ALL).unwrap();
        assert_eq!(system.list("foreground"), path("app-game-1.scope"));
        let list = system.list("visible");
        assert_eq!(list.split(' ').next(), Some(share), "{controllers}");
        let active = system.app("app-game-1.scope", "memory.low");
        assert_eq!(active, (low << 20).to_string(), "{controllers}");
    }
}

/// Users take controllers from their own cgroups as they like.
#[test]
fn an_app_without_controllers_is_left_out_and_lets_nobody_go() {
    for (controllers, limited, listed) in [("io", false, true), ("memory", true, false)] {
        let system = System::new();
        let mut applied = AppliedPolicy::begin(system.root(), Parts::ALL).unwrap();
        applied
            .change(&system.game_in_foreground(), Pace::Settled)
            .unwrap();
        applied.change(&Roles::default(), Pace::Settled).unwrap();
        system.cgroup("app-mail-3.scope", controllers);
        applied
            .change(&system.game_in_foreground(), Pace::Settled)
            .unwrap();
        let path = |name: &str| format!("/{APPS}/{name}");
        assert_eq!(system.list("foreground"), path("app-game-1.scope"));
        assert_ne!(system.app("app-game-1.scope", "memory.low"), "0");
        assert_ne!(system.app("app-shop-2.scope", "memory.high"), "max");
        let mail = system.app("app-mail-3.scope", "memory.high");
        assert_eq!(mail != "max", limited, "{controllers}");
        let background = system.list("background");
        assert_eq!(background.contains("mail"), listed, "{background}");
        applied.release().unwrap();
    }
}

/// A user's own cgroups, which the kernel allows any name.
#[test]
fn a_cgroup_whose_name_root_would_take_for_another_is_not_accepted() {
    let system = System::new();
    let too_long = format!("app-{}", "x".repeat(250)).repeat(5);
    for name in [
        "app-x [",
        "app-[user.slice]",
        "app-a b",
        "app-\u{7}",
        "app-\u{1b}[2J",
        "app-\u{202e}",
        &too_long,
    ] {
        assert!(Cgroup::resolve(system.root(), &format!("/{APPS}/{name}")).is_err());
        assert!(serde_json::from_value::<Cgroup>(format!("/{name}").into()).is_err());
        if name.len() < 255 {
            system.cgroup(name, "io memory");
        }
    }
    let roles = system.game_in_foreground();
    assert_eq!(roles.background.len(), 2, "{:?}", roles.background);
}

/// More apps than a list holds, and a path that takes half of one.
#[test]
fn however_many_apps_a_user_has_a_change_stays_small() {
    let system = System::new();
    for number in 0..1200 {
        system.cgroup(&format!("app-many-{number}.scope"), "io memory");
    }
    let roles = system.game_in_foreground();
    assert!(roles.background.len() <= 64, "{}", roles.background.len());
    let made = apply(system.root(), &roles, Parts::ALL).unwrap();
    assert!(made.len() < 80, "{}", made.len());
    release(system.root()).unwrap();
}
