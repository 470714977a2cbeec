use super::*;
use crate::Operation;
use crate::history::History;

const LINUX: Steps = Steps {
    step_ns: 5 * SECOND_NS,
    expire_ns: 30 * SECOND_NS,
};

fn small() -> (Config, Image) {
    let parameters = [
        ("capacity_mib", 128),
        ("spare_percent", 7),
        ("block_pages", 64),
        ("policy", 2),
        ("read_ns", 90_000),
        ("program_ns", 1_120_000),
        ("erase_ns", 3_000_000),
        ("link_mb_s", 200),
        ("write_command_ns", 50_000),
        ("read_command_ns", 50_000),
    ];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value));
    let config = Config::of_profile(&parameters.into()).unwrap();
    let history = History {
        filled_percent: 80,
        overwritten_percent: 50,
    };
    let none = AtomicBool::new(false);
    let aged = history.play(&config, 1, &mut |_, _| (), &none).unwrap();
    (config, aged.image)
}

/// Writes one file of 4 MB at 32 s, which the host knows from 1 s on.
fn one_file() -> Vec<Event> {
    let write = |index: u32| Event {
        time_ns: 32 * SECOND_NS,
        command: Command::Write {
            lba: index * PIECE_PAGES,
            pages: PIECE_PAGES,
            fua: false,
        },
        dirty_since_ns: Some(SECOND_NS),
    };
    (0..8).map(write).collect()
}

fn silent(_: &View) -> Announced {
    Announced {
        expected_bytes: 0,
        reserve_bytes: None,
    }
}

#[test]
fn a_host_sees_dirty_data_until_it_is_written() {
    let (config, image) = small();
    let mut seen = Vec::new();
    let mut host = |view: &View| {
        let bytes: u64 = view.dirty.iter().map(|it| it.bytes).sum();
        seen.push((view.now_ns / SECOND_NS, bytes >> 20));
        silent(view)
    };
    let none = AtomicBool::new(false);
    let used = play(&config, &image, &one_file(), LINUX, &mut host, &none).unwrap();
    assert_eq!(seen[..3], [(0, 0), (5, 4), (10, 4)]);
    assert_eq!(used.counters.host_write_pages, 8 * u64::from(PIECE_PAGES));
    // Predictions with a horizon beyond the last event say nothing: only that of 0 s is left.
    assert_eq!(used.predictions.len(), 1);
    assert_eq!(used.predictions[0].came_bytes, 0);
}

#[test]
fn a_reserve_has_the_device_collect_and_none_has_it_rest() {
    let (config, image) = small();
    let collected = |more_bytes: Option<u64>| {
        let mut host = |view: &View| Announced {
            expected_bytes: 0,
            reserve_bytes: Some(more_bytes.map_or(0, |bytes| view.free_bytes + bytes)),
        };
        let none = AtomicBool::new(false);
        let used = play(&config, &image, &one_file(), LINUX, &mut host, &none).unwrap();
        used.counters.collected_pages
    };
    // A row may be on its way before the first announcement comes.
    assert!(collected(None) <= 4);
    assert!(collected(Some(1 << 20)) > 64);
}

#[test]
fn kernel_threads_of_a_trace_write_back_and_others_are_waited_for() {
    let operation = |time_s: u64, lane| Operation {
        time_ns: time_s * SECOND_NS,
        kind: Kind::Write,
        offset_bytes: 4096,
        size_bytes: 200 * 4096,
        lane,
    };
    let trace = Trace::new(vec![operation(0, 1), operation(50, 0)]);
    let names = vec!["kworker/u8:1".to_owned(), "app".to_owned()];
    let events = traced(&trace.with_names(names), 1000, LINUX);
    let told: Vec<_> = events
        .iter()
        .map(|it| (it.dirty_since_ns, it.written_pages()))
        .collect();
    let known = Some(20 * SECOND_NS);
    assert_eq!(told, [(None, 128), (None, 72), (known, 128), (known, 72)]);
}

#[test]
fn a_trace_larger_than_the_device_is_wrapped_around() {
    let operation = Operation {
        time_ns: 0,
        kind: Kind::Read,
        offset_bytes: 95 * 4096,
        size_bytes: 10 * 4096,
        lane: 0,
    };
    let events = traced(&Trace::new(vec![operation]), 100, LINUX);
    let commands: Vec<_> = events.iter().map(|it| it.command).collect();
    let read = |lba| Command::Read { lba, pages: 5 };
    assert_eq!(commands, [read(95), read(0)]);
}

#[test]
fn a_generated_phone_is_a_function_of_its_seed_and_fits_its_device() {
    let events = phone(32_768, 5, 7, LINUX);
    assert_eq!(events, phone(32_768, 5, 7, LINUX));
    assert_ne!(events, phone(32_768, 5, 8, LINUX));
    assert!(events.is_sorted_by_key(|it| it.time_ns));
    let (config, image) = small();
    let none = AtomicBool::new(false);
    let used = play(&config, &image, &events, LINUX, &mut silent, &none).unwrap();
    assert!(used.read.is_some() && used.commit.is_some() && used.writeback.is_some());
}
