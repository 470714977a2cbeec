use super::*;
use crate::trace::Operation;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A small device whose operations take time.
fn profile(queue_depth: u64) -> Config {
    profile_with(queue_depth, &[])
}

fn profile_with(queue_depth: u64, more: &[(&str, u64)]) -> Config {
    let parameters = [
        ("capacity_mib", 1),
        ("channels", 2),
        ("dies_per_channel", 1),
        ("block_pages", 16),
        ("row_pages", 4),
        ("cache_kib", 64),
        ("queue_depth", queue_depth),
        ("request_kib", 32),
        ("log_kib", 256),
        ("read_ns", 50_000),
        ("program_ns", 500_000),
        ("erase_ns", 3_000_000),
        ("channel_mb_s", 200),
        ("link_mb_s", 200),
        ("read_command_ns", 10_000),
        ("write_command_ns", 10_000),
    ];
    let parameters: BTreeMap<_, _> = parameters
        .iter()
        .chain(more)
        .map(|&(name, value)| (name.to_owned(), value))
        .collect();
    Config::of_profile(&parameters).unwrap()
}

const FILL: Fill = Fill {
    fill_percent: 80,
    spare_percent: 10,
};

fn replay(trace: &Trace, pace: Pace, loops: u32, depth: u64) -> Result<OnFlash, Error> {
    let stop = AtomicBool::new(false);
    on_flash(
        trace,
        pace,
        loops,
        &profile(depth),
        FILL,
        &mut |_| (),
        &stop,
    )
}

fn page(time_ns: u64, kind: Kind, first: u64, pages: u64, lane: u32) -> Operation {
    Operation {
        time_ns,
        kind,
        offset_bytes: first * 4096,
        size_bytes: if kind == Kind::Flush { 0 } else { pages * 4096 },
        lane,
    }
}

#[test]
fn a_device_that_is_written_in_order_copies_nothing_and_one_in_disorder_does() {
    let in_order: Vec<_> = (0..1024)
        .map(|at| page(at, Kind::Write, at, 1, 0))
        .collect();
    let in_disorder: Vec<_> = (0..1024)
        .map(|at| page(at, Kind::Write, at * 389 % 1024, 1, 0))
        .collect();
    let pace = Pace::Closed { depth: 1 };
    let in_order = replay(&Trace::new(in_order), pace, 8, 4).unwrap();
    let in_disorder = replay(&Trace::new(in_disorder), pace, 8, 4).unwrap();
    assert_eq!(in_order.counters.host_write_pages, 8192);
    assert_eq!(in_order.page_operations, 8192);
    // Collection also copies one block per die, where the two loops meet.
    let few = in_order.write_amplification.unwrap();
    assert!((0.99..1.05).contains(&few), "{few}");
    let more = in_disorder.write_amplification.unwrap();
    assert!(more > few, "{more}");
    assert!(in_disorder.counters.collected_pages > 0);
}

/// The device has two of the map's twenty pages in RAM, a write buffer of 1 MB, and 2 ms between
/// requests.
#[test]
fn what_the_map_and_the_write_buffer_cost_is_counted() {
    let operations = (0..2048).map(|at| {
        let kind = if at % 4 == 0 { Kind::Read } else { Kind::Write };
        page(at * 2_000_000, kind, at * 389 % 1024, 1, 0)
    });
    let trace = Trace::new(operations.collect());
    let small_map = [("map_cache_kib", 8), ("map_page_lbas", 64)];
    let buffer = [
        ("slc_mib", 1),
        ("slc_program_ns", 100_000),
        ("fold_after_ns", 500_000),
    ];
    let replay_with = |more: &[(&str, u64)]| {
        let (config, stop) = (profile_with(4, more), AtomicBool::new(false));
        on_flash(&trace, Pace::Open, 1, &config, FILL, &mut |_| (), &stop).unwrap()
    };
    let all_in_ram = replay_with(&[]);
    assert_eq!(all_in_ram.counters.map_pages, 0);
    assert_eq!(all_in_ram.counters.map_look_ups, 0);
    assert_eq!(all_in_ram.counters.buffered_pages, 0);

    let read = replay_with(&small_map);
    let counters = &read.counters;
    assert_eq!(counters.map_look_ups, 512);
    assert!((400..512).contains(&counters.map_misses), "{counters:?}");
    assert!(counters.map_pages > 1000, "{counters:?}");
    assert!(read.write_amplification > all_in_ram.write_amplification.map(|it| it + 0.5));

    let counters = replay_with(&buffer).counters;
    assert!((1500..=1536).contains(&counters.buffered_pages));
    assert!(counters.folded_pages > 1000, "{counters:?}");
    assert!(counters.collected_pages >= counters.folded_pages);
}

#[test]
fn the_filling_is_not_counted() {
    let read = Trace::new(vec![page(0, Kind::Read, 0, 600, 0)]);
    let done = replay(&read, Pace::Closed { depth: 1 }, 1, 4).unwrap();
    assert_eq!(done.counters.host_write_pages, 0);
    assert_eq!(done.write_amplification, None);
    assert_eq!(done.page_operations, 600);
    assert_eq!(done.capacity_bytes, 750 * 4096);
    let times = done.times.read.unwrap();
    assert_eq!((times.count, times.pages), (1, 600));
    assert_eq!(times.max_ns.max(done.virtual_ns), done.virtual_ns);
}

#[test]
fn an_open_loop_lasts_as_long_as_the_trace_and_a_closed_one_as_the_device() {
    let operations = vec![
        page(0, Kind::Read, 0, 1, 0),
        page(1_000_000_000, Kind::Read, 1, 1, 0),
    ];
    let trace = Trace::new(operations);
    let open = replay(&trace, Pace::Open, 1, 4).unwrap();
    assert!(open.virtual_ns > 1_000_000_000);
    let closed = replay(&trace, Pace::Closed { depth: 1 }, 1, 4).unwrap();
    assert!(closed.virtual_ns < 1_000_000);
}

#[test]
fn a_set_flag_ends_it() {
    let operations = (0..5000).map(|at| page(at, Kind::Write, at % 64, 1, 0));
    let stop = AtomicBool::new(true);
    let outcome = on_flash(
        &Trace::new(operations.collect()),
        Pace::Closed { depth: 1 },
        1,
        &profile(4),
        FILL,
        &mut |_| (),
        &stop,
    );
    assert!(matches!(outcome, Err(Error::Interrupted)));
}

#[test]
fn a_device_that_cannot_be_is_said_in_the_cores_words() {
    let mut parameters = BTreeMap::from([("channels".to_owned(), 65)]);
    let config = Config::of_profile(&parameters).unwrap();
    let Err(error) = Flash::new(&config) else {
        panic!("65 channels are refused");
    };
    assert!(error.to_string().contains("must be 1 to 64"), "{error}");
    parameters.insert("chanels".to_owned(), 1);
    let error = Config::of_profile(&parameters).unwrap_err();
    assert!(error.to_string().contains("chanels"), "{error}");
    let parameters = BTreeMap::from([("queue_depth".to_owned(), 1 << 40)]);
    assert!(Config::of_profile(&parameters).is_err());
}

fn traces() -> impl Strategy<Value = Trace> {
    let kind = prop::sample::select(vec![
        Kind::Read,
        Kind::Write,
        Kind::Write,
        Kind::Discard,
        Kind::Flush,
    ]);
    let operation = (0u64..50_000_000, kind, 0u64..600, 1u64..30, 0u32..3);
    prop::collection::vec(operation, 1..200).prop_map(|operations| {
        let operations = operations.into_iter();
        Trace::new(
            operations
                .map(|(time_ns, kind, first, pages, lane)| page(time_ns, kind, first, pages, lane))
                .collect(),
        )
    })
}

fn paces() -> impl Strategy<Value = Pace> {
    prop_oneof![
        (1u32..10).prop_map(|depth| Pace::Closed { depth }),
        Just(Pace::Open),
        (0u64..10_000_000).prop_map(|think_ns| Pace::Mixed { think_ns }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Reads, writes and discards overlap in time and place. Each page read has a possible content,
    /// each operation ends, and the same trace gives the same figures.
    #[test]
    fn any_trace_comes_to_its_end_with_the_right_data(
        trace in traces(), pace in paces(), depth in 1u64..9, loops in 1u32..3
    ) {
        let done = replay(&trace, pace, loops, depth).unwrap();
        let count = trace.operations().len() as u64 * u64::from(loops);
        prop_assert_eq!(done.operations, count);
        let ended: u64 = done.times.iter().map(|(_, times)| times.count).sum();
        prop_assert_eq!(ended, count);
        let again = replay(&trace, pace, loops, depth).unwrap();
        prop_assert_eq!(done.virtual_ns, again.virtual_ns);
        prop_assert_eq!(done.counters, again.counters);
    }
}
