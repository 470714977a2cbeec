//! Whatever happens, and wherever it is killed, the knobs return to what they were.

use crate::desk::{Desk, Event, NAMES, five_apps, relative};
use foreground::{AppliedPolicy, Pace, Parts, Step};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn event() -> impl Strategy<Value = Event> {
    let app = || 0..NAMES.len();
    prop_oneof![
        4 => prop::collection::vec(app(), 0..3).prop_map(Event::Focus),
        1 => app().prop_map(Event::Command),
        1 => (app(), app(), 1..=100u8).prop_map(|(app, seen, percent)| Event::Split(app, seen, percent)),
        1 => Just(Event::Release),
        2 => app().prop_map(Event::End),
        2 => app().prop_map(Event::Start),
        1 => (app(), 1..400u64).prop_map(|(app, mib)| Event::Grow(app, mib)),
        2 => (0..3000u64).prop_map(Event::Wait),
        1 => Just(Event::Kill),
    ]
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
        let before = relative(five_apps().root());
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
        let before = relative(five_apps().root());
        let (last, first) = fronts.split_last().unwrap();
        for killed_after in 0.. {
            let system = five_apps();
            let root = system.root();
            let mut applied = AppliedPolicy::begin(root, Parts::ALL).unwrap();
            for foreground in first {
                applied.change(&system.in_foreground(NAMES[*foreground]), Pace::Settled).unwrap();
            }
            let steps = applied.steps(&system.in_foreground(NAMES[*last]), Pace::Settled).unwrap();
            for step in steps.iter().take(killed_after) {
                applied.take(step).unwrap();
            }
            if let Some(step) = steps.get(killed_after).filter(|_| torn) {
                let held = relative(root);
                applied.take(step).unwrap();
                undo_by_hand(root, step, &held);
            }
            drop(applied);
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
    let before = relative(five_apps().root());
    let mut desk = Desk::new();
    for change in 0..20 * 60 {
        let foreground = NAMES[change % NAMES.len()];
        if change % 7 == 3 {
            // It ends in mid-switch: the focus is told after its end.
            desk.happens(&Event::Start(change % NAMES.len()));
            desk.system.remove(foreground);
        }
        desk.focus(&[foreground]);
        desk.happens(&Event::Start(change % NAMES.len()));
        desk.now += Duration::from_millis(50);
    }
    let journal = desk.system.read("run/frontrowd/foreground.jsonl");
    assert!(journal.lines().count() < 20, "{journal}");
    assert_eq!(desk.knobs_in_the_end(), before);
}
