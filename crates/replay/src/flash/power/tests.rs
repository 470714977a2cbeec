use super::*;
use crate::flash::Command;
use proptest::prelude::*;

/// A device of 1 MB with two dies, little spare flash and a small log. The numbers are in the order
/// of `ftl/parameters.h`.
const CONFIG: [u64; 47] = [
    256, 20, 2, 1, 16, 2, 16, 4, 0, 16, 0, 0, 0, 0, 3, 1, 8, 0, 0, 0, 16, 100, 0, 1024, 0, 0, 4, 1,
    0, 90_000, 0, 1_120_000, 0, 3_000_000, 0, 0, 0, 0, 0, 20_000, 20_000, 29_000, 34_000, 10_000,
    30_000, 5_000, 1_000,
];

/// `FTL_ARM` of `enum ftl_op`.
const ARM: u32 = 6;

/// First page of the copies of armed ranges.
const COPIES: u32 = 128;

#[derive(Clone, Debug)]
enum Step {
    Write {
        lba: u32,
        pages: u32,
        fua: bool,
    },
    Discard {
        lba: u32,
        pages: u32,
    },
    Flush,
    /// Arms a range and then writes its data to the destination.
    Copy {
        lba: u32,
        pages: u32,
    },
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let pages = || (0..COPIES - 16, 1..16_u32);
    prop_oneof![
        4 => (pages(), any::<bool>()).prop_map(|((lba, pages), fua)| Step::Write { lba, pages, fua }),
        1 => pages().prop_map(|(lba, pages)| Step::Discard { lba, pages }),
        1 => Just(Step::Flush),
        2 => pages().prop_map(|(lba, pages)| Step::Copy { lba, pages }),
        1 => (0..20_000_000_u64).prop_map(Step::Wait),
    ]
}

/// A device, its time, and the last word written to each page.
struct Host {
    flash: Flash,
    now_ns: u64,
    word: Vec<u64>,
    next_word: u64,
}

impl Host {
    fn new() -> Self {
        let config = Config::of_numbers(&CONFIG).unwrap();
        Host {
            flash: Flash::savable(&config).unwrap(),
            now_ns: 0,
            word: vec![0; CONFIG[0] as usize],
            next_word: 0,
        }
    }

    fn wait(&mut self) {
        while self.flash.take_done().is_none() {
            self.now_ns = self.flash.next_ns().expect("it is under way");
            self.flash.run(self.now_ns);
        }
    }

    fn write(&mut self, lba: u32, words: &[u64], fua: bool) {
        let pages = words.len() as u32;
        let word = |it: u32| words[(it - lba) as usize];
        let command = Command::Write { lba, pages, fua };
        self.flash.submit(command, self.now_ns, word).unwrap();
        self.wait();
        self.word[lba as usize..][..words.len()].copy_from_slice(words);
    }

    fn play(&mut self, steps: &[Step]) {
        for step in steps {
            match *step {
                Step::Write { lba, pages, fua } => {
                    let words: Vec<u64> = (1..=u64::from(pages))
                        .map(|it| self.next_word + it)
                        .collect();
                    self.next_word += u64::from(pages);
                    self.write(lba, &words, fua);
                }
                Step::Copy { lba, pages } => {
                    let dst = lba + COPIES;
                    let range = Range {
                        src: lba,
                        dst,
                        pages,
                    };
                    self.flash
                        .submit_control(ARM, &[range], self.now_ns)
                        .unwrap();
                    self.wait();
                    let words = self.word[lba as usize..][..pages as usize].to_vec();
                    self.write(dst, &words, false);
                }
                Step::Discard { lba, pages } => {
                    let command = Command::Discard { lba, pages };
                    self.flash.submit(command, self.now_ns, |_| 0).unwrap();
                    self.wait();
                    self.word[lba as usize..][..pages as usize].fill(0);
                }
                Step::Flush => {
                    self.flash
                        .submit(Command::Flush, self.now_ns, |_| 0)
                        .unwrap();
                    self.wait();
                }
                Step::Wait(ns) => {
                    self.now_ns += ns;
                    self.flash.run(self.now_ns);
                }
            }
        }
    }

    /// The device's content after a power cut at once.
    fn recovered(&mut self, seed: u64) -> (Vec<u64>, [u64; OPERATION_COUNTERS], (u64, u64)) {
        self.flash.cut_power(0, seed);
        assert!(self.flash.is_off());
        assert!(self.flash.power_on(self.now_ns));
        assert_eq!(self.flash.broken_invariant(), None);
        let counters = self.flash.operation_counters();
        (self.flash.all_words(), counters, self.flash.last_mount())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_device_that_is_put_back_does_the_same_again(
        before in prop::collection::vec(step(), 0..60),
        after in prop::collection::vec(step(), 0..30),
        seed: u64,
    ) {
        let mut host = Host::new();
        host.play(&before);
        let saved = host.flash.save().unwrap();
        let (now_ns, word, next_word) = (host.now_ns, host.word.clone(), host.next_word);
        let put_back = |host: &mut Host| {
            host.flash.restore(&saved);
            (host.now_ns, host.word, host.next_word) = (now_ns, word.clone(), next_word);
        };
        let cut_before = host.recovered(seed);
        put_back(&mut host);
        host.play(&after);
        let cut_after = host.recovered(seed);
        put_back(&mut host);
        prop_assert_eq!(host.recovered(seed), cut_before);
        put_back(&mut host);
        host.play(&after);
        prop_assert_eq!(host.recovered(seed), cut_after);
    }

    #[test]
    fn after_a_flush_a_cut_takes_nothing(steps in prop::collection::vec(step(), 0..60), seed: u64) {
        let mut host = Host::new();
        host.play(&steps);
        // A discard may be undone by the power cut.
        let written = host.word.clone();
        host.play(&[Step::Flush]);
        let (words, _, _) = host.recovered(seed);
        for (found, written) in words.iter().zip(&written) {
            prop_assert!(found == written || *written == 0);
        }
    }

    #[test]
    fn operations_are_counted_where_they_are_cut(steps in prop::collection::vec(step(), 8..40), seed: u64) {
        let mut host = Host::new();
        host.play(&[Step::Write { lba: 0, pages: 16, fua: true }]);
        let saved = host.flash.save().unwrap();
        let before = host.flash.operations();
        let (now_ns, word, next_word) = (host.now_ns, host.word.clone(), host.next_word);
        host.play(&steps);
        let count = host.flash.operations() - before;
        prop_assume!(count > 0);
        host.flash.restore(&saved);
        (host.now_ns, host.word, host.next_word) = (now_ns, word, next_word);
        host.flash.cut_power(count + 1, seed);
        host.play(&steps);
        prop_assert!(!host.flash.is_off());
    }
}
