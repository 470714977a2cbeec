use super::*;
use crate::stream::tests::{CONFIG, Writer};
use crate::stream::{Page, Record};
use replay::flash::OPERATION_COUNTERS;

/// The promise of a stream with the steps at which its commands were sent and ended.
fn of(records: &[(What, Step, Step)]) -> Promise {
    let pages: Vec<Page> = (0..10).map(Page::Word).collect();
    let mut writer = Writer::new(CONFIG);
    for (what, _, _) in records {
        let what = what.clone();
        writer.record(&Record { now_ns: 0, what }, &pages);
    }
    let stream = Stream::read(&writer.end(0, 0, [0; OPERATION_COUNTERS])).unwrap();
    let timeline = Timeline {
        steps: 100,
        submitted: records.iter().map(|it| it.1).collect(),
        completed: records.iter().map(|it| it.2).collect(),
        busy: Vec::new(),
    };
    Promise::of(&stream, &timeline)
}

/// Writes page 5 with a word; words are numbers of pages in the order of their first use.
fn write(word: u32, fua: bool) -> What {
    What::Write {
        lba: 5,
        pages: vec![word],
        stream: 0,
        fua,
    }
}

/// Contents that page 5 may have if the power is cut in `step`, from 0 to 4.
fn may_hold_in(promise: &Promise, step: Step) -> Vec<u64> {
    let moment = Moment {
        sent: step,
        acknowledged: step,
    };
    let holds = |word: &u64| {
        let mut words = vec![0; CONFIG[0] as usize];
        words[5] = *word;
        promise.broken(moment, &words).is_none()
    };
    (0..5).filter(holds).collect()
}

#[test]
fn what_was_not_flushed_is_there_or_not() {
    let promise = of(&[(write(1, false), 1, 2), (write(2, false), 3, 4)]);
    assert_eq!(may_hold_in(&promise, 0), [0]);
    assert_eq!(may_hold_in(&promise, 2), [0, 1]);
    assert_eq!(may_hold_in(&promise, 9), [0, 1, 2]);
}

#[test]
fn a_flush_makes_certain_what_had_ended_when_it_was_sent() {
    let promise = of(&[
        (write(1, false), 1, 2),
        (write(2, false), 3, 6),
        (What::Flush, 4, 7),
    ]);
    assert_eq!(may_hold_in(&promise, 7), [0, 1, 2]);
    assert_eq!(may_hold_in(&promise, 8), [1, 2]);
}

#[test]
fn fua_makes_certain_what_it_wrote() {
    let promise = of(&[(write(1, true), 1, 3), (write(2, false), 4, 5)]);
    assert_eq!(may_hold_in(&promise, 3), [0, 1]);
    assert_eq!(may_hold_in(&promise, 6), [1, 2]);
}

#[test]
fn what_was_under_way_together_may_have_been_done_in_either_order() {
    let promise = of(&[(write(1, false), 1, 4), (write(2, true), 2, 3)]);
    assert_eq!(may_hold_in(&promise, 5), [1, 2]);
}

#[test]
fn a_discard_is_undone_or_not_until_the_page_is_written_again() {
    let promise = of(&[
        (write(1, true), 1, 2),
        (What::Discard(4, 3), 3, 4),
        (What::Flush, 5, 6),
        (write(2, true), 10, 11),
    ]);
    assert_eq!(may_hold_in(&promise, 9), [0, 1]);
    assert_eq!(may_hold_in(&promise, 12), [2]);
}

#[test]
fn a_flush_behind_a_discard_says_nothing_of_what_was_discarded() {
    let promise = of(&[
        (write(1, true), 1, 2),
        (write(2, false), 3, 4),
        (What::Discard(4, 3), 5, 6),
        (What::Flush, 7, 8),
    ]);
    assert_eq!(may_hold_in(&promise, 9), [0, 1, 2]);
}

#[test]
fn another_pages_data_are_wrong() {
    let promise = of(&[(write(1, false), 1, 2)]);
    let moment = Moment {
        sent: 9,
        acknowledged: 9,
    };
    let mut words = vec![0; CONFIG[0] as usize];
    words[6] = 1;
    assert_eq!(promise.broken(moment, &words), Some(6));
}
