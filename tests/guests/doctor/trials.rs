//! `frontrow doctor --try` on known answers: whether the advice wins back what is lost, and whether
//! nothing is claimed where it can change nothing.

use super::known::{Case, PRELUDE, in_guest};
use serde_json::Value;

/// What is right of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Helps,
    NoDifference,
    /// Nothing is advised, so nothing is tried.
    Nothing,
}

/// A workload, and the trial that follows from it.
#[derive(Debug)]
pub struct Trial {
    pub name: &'static str,
    setup: &'static str,
    load: &'static str,
    pub right: Answer,
}

impl Trial {
    /// Of the advice for a known cause.
    fn of(name: &str, right: Answer) -> Trial {
        let row = Case::named(name).0[0];
        Trial {
            name: row.name,
            setup: row.setup,
            load: row.load,
            right,
        }
    }

    fn script(&self, place: usize) -> String {
        let Trial { setup, load, .. } = self;
        format!("{setup}\n( {load} ) & load=$!\nattempt {place}\n")
    }
}

/// Each cause whose advice can be tried on this kernel, and causes for which it can do nothing or
/// there is none.
pub fn all(kernel: &str) -> Vec<Trial> {
    // Before 6.2 no disk may have a dirty limit of its own.
    let throttled = match kernel {
        "6.1" => Answer::Nothing,
        _ => Answer::Helps,
    };
    let known = [
        Trial::of("dirty throttling", throttled),
        Trial::of("fsync behind writeback", Answer::Helps),
        Trial::of("change behind writeback", Answer::Nothing),
    ];
    known.into_iter().chain(WITHOUT_EFFECT).collect()
}

const WITHOUT_EFFECT: [Trial; 3] = [
    Trial {
        // It serves each request in 2 ms, however many it has: a scheduler has nothing to order.
        name: "a disk without a queue",
        setup: "own",
        load: "app mailer --directory=/own --rw=write --bs=${SYNC_KB}k --size=4m --fsync=1 --thinktime=${THINK_MS}ms & app loader --directory=/own --rw=write --bs=256k --size=64m --rate=8m",
        right: Answer::NoDifference,
    },
    Trial {
        name: "a load that ends before the trial",
        setup: "",
        load: "( hog dumper /mnt/big & app mailer --rw=write --bs=${SYNC_KB}k --size=4m --fsync=1 --thinktime=${THINK_MS}ms ) & until [ -s $pages ]; do sleep 0.1; done; stop mailer dumper",
        right: Answer::NoDifference,
    },
    Trial {
        name: "the scheduler is in force",
        setup: "echo frontrow > $scheduler",
        load: "hog dumper /mnt/big & app mailer --rw=write --bs=${SYNC_KB}k --size=4m --fsync=1 --thinktime=${THINK_MS}ms",
        right: Answer::Nothing,
    },
];

/// `attempt PLACE` watches and tries; `stop NAME` ends those that `as` and `app` have begun.
const ATTEMPT: &str = r#"
scheduler=/sys/block/simflash0/queue/scheduler
pages=/out/pages
stop() {
    for it in /proc/[0-9]*; do
        for name in "$@"; do [ "$(cat $it/comm)" = $name ] && kill -9 ${it#/proc/}; done
    done
}
attempt() {
    echo trial $1 > /dev/kmsg
    sleep 2
    blind=:
    [ $LEVEL = 2 ] && blind="mount -t tmpfs none /sys/kernel/btf"
    unshare -m sh -c "$blind; exec frontrow doctor --seconds 4 --try --pairs $PAIRS --window $WINDOW --seed $SEED --json" > $pages 2> /out/$1.error & doctor=$!
    wait $doctor
    mv $pages /out/$1.pages
    end
    frontrow sched disable simflash0 > /dev/null
    echo mq-deadline > $scheduler
}
frontrow sched disable simflash0 > /dev/null
echo mq-deadline > $scheduler
"#;

/// No trial takes as long, in the guest's seconds for each of a window's.
const LIMIT_S: u64 = 30;

/// How trials are made.
#[derive(Clone, Debug)]
pub struct How {
    pub kernel: String,
    pub level: u64,
    pub pairs: u64,
    pub window_s: u64,
}

/// What a trial found.
#[derive(Debug)]
pub struct Found {
    pub trial: String,
    pub seed: u64,
    /// Causes of the page's verdicts, the first first.
    pub causes: String,
    pub right: Answer,
    pub is_right: bool,
    /// Whether an effect is told, of whatever sign.
    pub is_effect: bool,
    /// Lost ms of each second without the change and with it, and the interval of the difference.
    pub lost_ms: Option<[f64; 4]>,
}

impl Found {
    /// Share of the lost time that the change wins back.
    pub fn won(&self) -> Option<f64> {
        let [without, with, ..] = self.lost_ms?;
        Some((without - with) / without.max(1e-9))
    }
}

/// Runs trials one after another in a guest.
pub fn run(trials: &[Trial], how: &How, seed: u64) -> Vec<Found> {
    let scripts = trials
        .iter()
        .enumerate()
        .map(|(place, it)| it.script(place));
    let How {
        level,
        pairs,
        window_s,
        kernel,
    } = how;
    let knobs = format!("LEVEL={level}; PAIRS={pairs}; WINDOW={window_s}\n");
    let scripts: String = scripts.collect();
    let script = format!("{knobs}{PRELUDE}{ATTEMPT}{scripts}");
    let limit_s = trials.len() as u64 * 2 * pairs * (window_s + LIMIT_S);
    let left = in_guest(
        &script,
        &["--policy", "frontrow"],
        kernel,
        seed,
        limit_s as usize,
    );
    let found = trials.iter().enumerate().map(|(place, trial)| {
        let said = left.text(&format!("{place}.error"));
        assert_eq!(said, "", "{}", trial.name);
        found(trial, seed, &left.text(&format!("{place}.pages")))
    });
    found.collect()
}

fn found(trial: &Trial, seed: u64, pages: &str) -> Found {
    let mut pages = serde_json::Deserializer::from_str(pages).into_iter::<Value>();
    let page = pages.next().unwrap().unwrap();
    let outcome = pages.next().unwrap().unwrap()["trial"]["outcome"].clone();
    let verdicts = page["verdicts"].as_array().unwrap().iter();
    let causes = verdicts.map(|it| {
        let share = it["share"].as_f64().unwrap() * 100.0;
        format!(
            "{} {share:.0} % ({})",
            it["cause"].as_str().unwrap(),
            it["who"].as_str().unwrap()
        )
    });
    let effect = outcome["effect"].as_str();
    let told = match effect {
        Some("helps") => Some(Answer::Helps),
        Some("no_difference") => Some(Answer::NoDifference),
        None => Some(Answer::Nothing),
        Some(_) => None,
    };
    Found {
        trial: trial.name.to_owned(),
        seed,
        causes: causes.collect::<Vec<_>>().join(", "),
        right: trial.right,
        is_right: told == Some(trial.right),
        is_effect: matches!(effect, Some("helps" | "harms")),
        lost_ms: effect.map(|_| lost_ms(&outcome)),
    }
}

fn lost_ms(outcome: &Value) -> [f64; 4] {
    let mean = |of: &str| {
        let windows = outcome[of].as_array().unwrap();
        let all: f64 = windows.iter().map(|it| it.as_f64().unwrap()).sum();
        all / windows.len() as f64
    };
    let interval = |place: usize| outcome["interval"][place].as_f64().unwrap();
    [mean("without"), mean("with"), interval(0), interval(1)].map(|it| it * 1000.0)
}

/// Prints a line of a table for each.
pub fn show(all: &[Found]) {
    for it in all {
        let figures = match (it.lost_ms, it.won()) {
            (Some([without, with, least, most]), Some(won)) => format!(
                "{without:.0} | {with:.0} | {least:.0} to {most:.0} | {:.0} %",
                won * 100.0
            ),
            _ => "- | - | - | -".to_owned(),
        };
        println!(
            "| {} | {} | {:?} | {} | {figures} | {} |",
            it.trial, it.seed, it.right, it.is_right, it.causes
        );
    }
}
