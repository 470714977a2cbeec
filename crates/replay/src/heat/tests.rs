use super::*;
use crate::ahead::Steps;
use crate::history::History;

const SECOND_NS: u64 = 1_000_000_000;
const STEPS: Steps = Steps {
    step_ns: 5 * SECOND_NS,
    expire_ns: 30 * SECOND_NS,
};

fn access(second: u64, act: Act, first: u32, pages: u32) -> Access {
    Access {
        time_ns: second * SECOND_NS,
        act,
        kind: Kind::Other,
        first,
        pages,
    }
}

/// What is sent but for announcements.
fn commands(memory_pages: usize, accesses: &[Access]) -> Vec<(What, Heat)> {
    let sent = PageCache::new(memory_pages, STEPS).pass(accesses);
    let command = |it: &Sent| !matches!(it.what, What::SoonInvalid(_) | What::Prefetch(_));
    let sent = sent.into_iter().filter(command);
    sent.map(|it| (it.what, it.heat)).collect()
}

fn end() -> Access {
    access(1000, Act::Read, 0, 1)
}

#[test]
fn a_page_that_is_written_again_in_memory_is_written_once() {
    let writes: Vec<Access> = (1..20)
        .map(|second| access(second, Act::Write, 7, 1))
        .collect();
    let all = [writes, vec![end()]].concat();
    assert_eq!(
        commands(1000, &all),
        [
            (What::Write(7, 1), Heat::Warm),
            (What::Read(0, 1), Heat::Unknown)
        ]
    );
}

#[test]
fn what_is_written_each_half_minute_is_hot() {
    let writes: Vec<Access> = (0..6)
        .map(|round| access(1 + 40 * round, Act::Write, 7, 1))
        .collect();
    let heat: Vec<Heat> = commands(1000, &[writes, vec![end()]].concat())
        .into_iter()
        .map(|it| it.1)
        .collect();
    assert_eq!(heat[0], Heat::Unknown);
    assert!(heat[1..6].iter().all(|it| *it == Heat::Hot), "{heat:?}");
}

#[test]
fn little_memory_writes_dirty_pages_before_they_expire() {
    let mut accesses = vec![access(1, Act::Write, 7, 1)];
    accesses.extend((2..12).map(|second| access(second, Act::Read, second as u32 * 100, 10)));
    let first = |memory| commands(memory, &accesses).len();
    assert_eq!(first(1000), 10);
    assert_eq!(first(50), 11);
}

#[test]
fn pages_that_were_used_again_are_announced_when_they_leave_memory() {
    let accesses = [
        access(1, Act::Read, 0, 4),
        access(2, Act::Read, 0, 2),
        access(3, Act::Read, 100, 16),
        end(),
    ];
    let sent = PageCache::new(16, STEPS).pass(&accesses);
    let announced: Vec<Range> = sent
        .into_iter()
        .filter_map(|it| match it.what {
            What::Prefetch(ranges) => Some(ranges),
            _ => None,
        })
        .flatten()
        .collect();
    let expected = Range {
        src: 0,
        dst: 0,
        pages: 2,
    };
    assert_eq!(announced, [expected]);
}

#[test]
fn synchronizing_writes_what_is_dirty_and_deleting_does_not() {
    let accesses = [
        access(1, Act::Write, 10, 8),
        access(1, Act::Sync, 12, 4),
        access(2, Act::Delete, 10, 8),
        end(),
    ];
    let what: Vec<What> = commands(1000, &accesses)
        .into_iter()
        .map(|it| it.0)
        .collect();
    assert_eq!(
        what,
        [
            What::Write(12, 4),
            What::Flush,
            What::Discard(10, 8),
            What::Read(0, 1)
        ]
    );
}

/// A device of 256 MB with a past, and with RAM for reads.
fn small() -> (Config, Image) {
    let parameters = [
        ("capacity_mib", 256),
        ("spare_percent", 7),
        ("block_pages", 64),
        ("policy", 2),
        ("cache_kib", 128),
        ("read_cache_kib", 256),
        ("read_ns", 90_000),
        ("program_ns", 1_120_000),
        ("erase_ns", 3_000_000),
        ("link_mb_s", 200),
    ];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value));
    let config = Config::of_profile(&parameters.into()).unwrap();
    let history = History {
        filled_percent: 85,
        overwritten_percent: 50,
    };
    let none = AtomicBool::new(false);
    let aged = history.play(&config, 1, &mut |_, _| (), &none).unwrap();
    (config, aged.image)
}

#[test]
fn hot_data_apart_is_moved_less_and_the_host_writes_the_same() {
    let (config, image) = small();
    let accesses = phone(config.capacity_pages(), 60, 1);
    let sent = PageCache::new(4 * 256, STEPS).pass(&accesses);
    let none = AtomicBool::new(false);
    let of = |policy: Policy| {
        let config = config.with(&policy.parameters()).unwrap();
        play(&config, &image, policy, &sent, &none).unwrap()
    };
    let mixed = of(Policy::None);
    let all = Policy::ALL.map(of);
    for figures in &all {
        assert_eq!(
            figures.counters.host_write_pages,
            mixed.counters.host_write_pages
        );
        assert!(figures.read.is_some() && figures.commit.is_some());
        assert_eq!(figures.minutes.len(), 59);
    }
    let moved = all.each_ref().map(|it| it.counters.collected_pages);
    println!("{moved:?}");
    assert_eq!(moved[0], mixed.counters.collected_pages);
    assert!(moved[2..].iter().all(|it| *it < moved[0]), "{moved:?}");
    // Only an announced page is one that the host's memory does not have.
    assert!(all[4].counters.read_cache_hit_pages > all[0].counters.read_cache_hit_pages);
}
