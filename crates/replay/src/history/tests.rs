use super::*;
use std::collections::BTreeMap;

const HISTORY: History = History {
    filled_percent: 80,
    overwritten_percent: 200,
};

fn config(capacity_mib: u64, spare_percent: u64) -> Config {
    let parameters = [
        ("capacity_mib", capacity_mib),
        ("spare_percent", spare_percent),
        ("channels", 4),
        ("dies_per_channel", 1),
        ("block_pages", 64),
        ("row_pages", 4),
        ("cache_kib", 128),
        ("queue_depth", 2),
        ("request_kib", 512),
        ("read_ns", 90_000),
        ("program_ns", 1_120_000),
        ("erase_ns", 3_000_000),
        ("channel_mb_s", 200),
        ("link_mb_s", 200),
        ("write_command_ns", 340_000),
    ];
    let named = parameters.map(|(name, value)| (name.to_owned(), value));
    Config::of_profile(&BTreeMap::from(named)).unwrap()
}

fn play(config: &Config, seed: u64) -> Aged {
    let never = AtomicBool::new(false);
    HISTORY.play(config, seed, &mut |_, _| (), &never).unwrap()
}

#[test]
fn the_same_seed_gives_the_same_image() {
    let config = config(64, 7);
    assert_eq!(play(&config, 1).image, play(&config, 1).image);
    assert_ne!(play(&config, 1).image, play(&config, 2).image);
}

#[test]
fn a_device_is_as_full_as_asked_for_and_collects() {
    let config = config(64, 7);
    let aged = play(&config, 3);
    let mut flash = Flash::new(&config).unwrap();
    flash.load(&aged.image).unwrap();
    assert_eq!(flash.broken_invariant(), None);
    let mapped = flash.all_words().iter().filter(|word| **word != 0).count();
    assert_eq!(mapped, 64 * 256 * 80 / 100);
    let amplification = aged.counters.write_amplification().unwrap();
    assert!(aged.counters.collected_pages > 0, "{:?}", aged.counters);
    assert!((1.05..4.0).contains(&amplification), "{amplification}");
}

#[test]
fn an_image_is_of_one_shape() {
    let image = play(&config(64, 7), 1).image;
    let mut other = Flash::new(&config(64, 12)).unwrap();
    let said = other.load(&image).unwrap_err();
    assert!(said.contains("another device"), "{said}");
}

#[test]
fn who_stops_it_hears_so() {
    let stop = AtomicBool::new(true);
    let ended = HISTORY.play(&config(64, 7), 1, &mut |_, _| (), &stop);
    assert!(matches!(ended, Err(Error::Interrupted)));
}

#[test]
fn free_pages_are_given_out_once_and_come_back() {
    let mut phone = Phone::new(&config(64, 7), 80, 9).unwrap();
    let mut taken = Vec::new();
    for pages in [100, 7, 3000, 1, 900] {
        taken.push(phone.allocate(pages));
    }
    let mut all: Vec<u32> = taken
        .iter()
        .flatten()
        .flat_map(|&(first, pages)| first..first + pages)
        .collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4008);
    for (first, pages) in taken.into_iter().flatten() {
        phone.give_back(first, pages);
    }
    assert_eq!(phone.free, BTreeMap::from([(0, 64 * 256)]));
}

#[test]
fn sizes_of_files_spread_around_their_median() {
    let mut phone = Phone::new(&config(4096, 7), 80, 9).unwrap();
    let mut sizes: Vec<u32> = (0..2001).map(|_| phone.file_pages()).collect();
    sizes.sort_unstable();
    assert!((200..330).contains(&sizes[1000]), "{}", sizes[1000]);
    // One standard deviation is a factor of four.
    assert!((40..100).contains(&sizes[317]), "{}", sizes[317]);
    assert!((750..1500).contains(&sizes[1683]), "{}", sizes[1683]);
}
