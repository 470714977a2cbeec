use super::*;
use doctor::Machine;
use iopro::event::Dev;
use iopro::link::Use;
use iopro::report::{Accounted, Owner, Part, Waiting, Waits};
use iopro::wait::Class;

fn waits(process: &str, waits: u64, total_ns: u64, longest_ns: u64) -> Accounted {
    let owner = |process: u32, name: &str| Owner {
        process,
        thread: process,
        name: name.to_owned(),
        kernel: false,
    };
    Accounted {
        waiter: owner(5, process),
        call: Some("read".to_owned()),
        sync: false,
        class: Class::Service,
        cause: None,
        file: Some("/data/a".to_owned()),
        device: Some(Dev::new(8, 1)),
        other: None,
        waits,
        total_ns,
        longest_ns,
        parts: vec![Part {
            dev: Dev::new(8, 0),
            owner: Some(owner(7, "dd")),
            own: false,
            discards: false,
            ns: total_ns / 2,
        }],
    }
}

fn frame() -> Frame {
    let accounts = vec![
        waits("lasting", 2, 50_000_000, 25_000_000),
        waits("frequent", 30, 30_000_000, 1_000_000),
        waits("sudden", 1, 40_000_000, 40_000_000),
    ];
    let interval = Waits {
        at_ns: 1_000_000_000,
        duration_ns: 1_000_000_000,
        foreground: Waiting {
            total_ns: 0,
            classes: Vec::new(),
            top: Vec::new(),
            longest: None,
        },
        accounts,
        uses: [(Dev::new(8, 0), Use::default())].into(),
        under_way: Vec::new(),
        lost: Vec::new(),
    };
    Frame::of_recording(&Machine::default(), &interval, 100)
}

fn view() -> View {
    let mut view = View::default();
    view.add(frame());
    view
}

fn names(view: &View) -> Vec<String> {
    let lines = view.lines((24, 160), false);
    let words = lines.iter().map(|it| it.trim_start_matches("> "));
    let first = words.filter_map(|it| it.split(' ').next());
    let known = ["lasting", "frequent", "sudden"];
    let first = first.filter(|it| known.contains(it));
    first.map(str::to_owned).collect()
}

#[test]
fn keys_sort_and_quit() {
    let mut view = view();
    assert_eq!(names(&view), ["lasting", "sudden", "frequent"]);
    assert_eq!(view.press(b's'), Act::Draw);
    assert_eq!(view.press(b's'), Act::Draw);
    assert_eq!(names(&view), ["sudden", "lasting", "frequent"]);
    view.press(b's');
    assert_eq!(names(&view), ["frequent", "lasting", "sudden"]);
    assert_eq!(view.press(b'x'), Act::Nothing);
    assert_eq!(view.press(b'q'), Act::Quit);
}

#[test]
fn a_row_is_chosen_opened_and_followed() {
    let mut view = view();
    view.press(b'j');
    view.press(b'j');
    let marked = |view: &View| {
        let lines = view.lines((24, 160), false);
        let mut marked = lines.into_iter().filter(|it| it.starts_with("> "));
        marked.next()
    };
    assert!(marked(&view).unwrap().contains("sudden"));
    // The row stays chosen wherever the order puts it.
    view.press(b's');
    view.press(b's');
    assert!(marked(&view).unwrap().contains("sudden"));
    view.press(b'\n');
    let text = view.lines((24, 160), false).join("\n");
    assert!(
        text.contains("served dd") && text.contains("had nothing to do"),
        "{text}"
    );
    view.press(0x1b);
    view.press(b'f');
    assert_eq!(names(&view), ["sudden"]);
    view.press(b'a');
    assert_eq!(names(&view).len(), 3);
    let mut view = View::following(Some("frequent".to_owned()));
    view.add(frame());
    assert_eq!(names(&view), ["frequent"]);
}

#[test]
fn a_frozen_screen_stays_while_the_watching_goes_on() {
    let mut view = view();
    view.press(b'p');
    let before = view.text(160);
    let mut later = frame();
    later.rows.truncate(1);
    assert!(!view.add(later));
    assert_eq!(view.text(160), before);
    view.press(b'p');
    assert_ne!(view.text(160), before);
}

#[test]
fn lines_fit_any_terminal_and_have_colours_where_they_may() {
    let mut view = view();
    view.press(b'j');
    for key in [b'?', b'?', b'\n', 0x1b] {
        for size in [(1, 1), (2, 7), (24, 80), (60, 200)] {
            let lines = view.lines(size, false);
            assert_eq!(lines.len(), size.0);
            assert!(
                lines.iter().all(|it| it.chars().count() <= size.1),
                "{lines:?}"
            );
            assert!(lines.iter().all(|it| !it.contains('\x1b')));
        }
        view.press(key);
    }
    let lines = View::default().lines((24, 80), true);
    assert!(lines[23].starts_with("\x1b[7m"), "{lines:?}");
}
