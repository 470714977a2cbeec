//! `frontrow launch bench`: an app's cold start with and without loading, and the loss of a warm
//! start.

use super::profile_name;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::{json, print_text};
use crate::progress::left;
use ::launch::WorkingSet;
use ::launch::profile::{Profile, Store, Timing};
use ::launch::residency::{drop_caches, forget};
use serde_json::json;
use std::ffi::OsString;
use std::io;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[derive(clap::Args)]
pub struct Bench {
    /// Name of the profile [default: the program's name]
    #[arg(long)]
    name: Option<String>,
    /// Number of starts of each kind
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Save the fastest kind in the profile, so that the app starts that way
    #[arg(long)]
    keep: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The app, with arguments that make it end by itself
    #[arg(
        value_name = "APP",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

/// Kind of start: the argument of `--timing`; none for a start without Frontrow.
struct Kind {
    timing: Timing,
    argument: Option<&'static str>,
    words: &'static str,
}

const DEMAND: Kind = Kind {
    timing: Timing::Never,
    argument: None,
    words: "by demand, without Frontrow",
};
const BEFORE: Kind = Kind {
    timing: Timing::Before,
    argument: Some("before"),
    words: "loaded, then started",
};
const BESIDE: Kind = Kind {
    timing: Timing::Beside,
    argument: Some("beside"),
    words: "loaded while it starts",
};

const COLD: [Kind; 3] = [DEMAND, BEFORE, BESIDE];
/// Kinds of a warm start, which loads nothing.
const WARM: [Kind; 2] = [DEMAND, BEFORE];

/// Runs the subcommand.
pub fn run(args: &Bench) -> Result<(), Failure> {
    let name = profile_name(args.name.as_deref(), &args.command)?;
    let store = Store::of_user()?;
    let mut profile = store.read(&name)?;
    let stop = catch_signals()?;
    let mut cold: [Vec<Duration>; 3] = Default::default();
    let mut warm: [Vec<Duration>; 2] = Default::default();
    let began = Instant::now();
    for run in 0..args.runs {
        let left = left(began.elapsed(), u64::from(run), u64::from(args.runs));
        eprintln!("[{}/{}] {name}{left}", run + 1, args.runs);
        // Alternate, so that drift affects all kinds alike.
        for (kind, times) in COLD.iter().zip(&mut cold) {
            make_cold(&profile)?;
            times.push(start(kind, &name, &args.command)?);
            go_on(&stop)?;
        }
        for (kind, times) in WARM.iter().zip(&mut warm) {
            times.push(start(kind, &name, &args.command)?);
            go_on(&stop)?;
        }
    }
    let (cold_spread, warm_spread) = (
        cold.each_ref().map(|it| spread(it)),
        warm.each_ref().map(|it| spread(it)),
    );
    let (cold, warm) = (cold.map(median), warm.map(median));
    if args.keep {
        let fastest = (0..COLD.len()).min_by_key(|&kind| cold[kind]);
        profile.timing = COLD[fastest.unwrap_or_default()].timing;
        store.write(&name, &profile)?;
    }
    match args.json {
        true => print_text(&json(&as_json(&cold, &warm))?),
        false => print_text(
            &(in_words("cold", &COLD, &cold, &cold_spread)
                + &in_words("warm", &WARM, &warm, &warm_spread)),
        ),
    }
}

fn go_on(stop: &AtomicBool) -> Result<(), Failure> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Failure::new(Exit::Interrupted, "interrupted")),
        false => Ok(()),
    }
}

/// Makes the next start cold. Root drops the page cache and unused inodes; other users evict the
/// files of the profile.
fn make_cold(profile: &Profile) -> Result<(), Failure> {
    if drop_caches().is_ok() {
        return Ok(());
    }
    let set = WorkingSet::open(&profile.files);
    let failed = |error: io::Error| {
        let sentence = format_args!("cannot take the app out of memory: {error}");
        Failure::new(Exit::Internal, sentence)
    };
    set.files
        .iter()
        .try_for_each(|opened| forget(&opened.file))
        .map_err(failed)
}

fn start(kind: &Kind, name: &str, command: &[OsString]) -> Result<Duration, Failure> {
    let failed = |error: io::Error| {
        let sentence = format_args!("cannot start the app: {error}");
        Failure::new((&error).into(), sentence)
    };
    let mut launch = Command::new(match kind.argument {
        Some(_) => "/proc/self/exe".as_ref(),
        None => command[0].as_os_str(),
    });
    if let Some(timing) = kind.argument {
        launch.args(["launch", "--timing", timing, "--name", name, "--"]);
        launch.arg(&command[0]);
    }
    launch
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let begun = Instant::now();
    let status = launch.status().map_err(failed)?;
    let elapsed = begun.elapsed();
    match status.success() {
        true => Ok(elapsed),
        false => Err(Failure::new(
            Exit::Usage,
            format_args!("the app failed ({status}): give arguments with which it does not"),
        )),
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Width of the middle half of the times.
fn spread(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    let quarter = times.len() / 4;
    times[times.len() - 1 - quarter] - times[quarter]
}

/// Text: compares all kinds with the first. A difference within the spread of one kind's starts is
/// not reported.
fn in_words(cache: &str, kinds: &[Kind], medians: &[Duration], spreads: &[Duration]) -> String {
    let mut text = format!("{cache} start, median\n");
    let mut has_unclear = false;
    for ((kind, time), spread) in kinds.iter().zip(medians).zip(spreads) {
        let change = time.as_secs_f64() / medians[0].as_secs_f64() - 1.0;
        let differs = time.abs_diff(medians[0]) > spreads[0].max(*spread);
        let is_unclear = kind.argument.is_some() && !differs;
        has_unclear |= is_unclear;
        text += &format!(
            "{:>9.1} ms {:>+6.1} %  {}{}\n",
            time.as_secs_f64() * 1e3,
            change * 100.0,
            kind.words,
            if is_unclear { " (unclear)" } else { "" }
        );
    }
    if has_unclear {
        text +=
            "unclear: starts of one kind differ as much; end other programs, or give more --runs\n";
    }
    text
}

fn as_json(cold: &[Duration; 3], warm: &[Duration; 2]) -> serde_json::Value {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    json!({
        "demand_ms": ms(cold[0]),
        "before_ms": ms(cold[1]),
        "beside_ms": ms(cold[2]),
        "warm_demand_ms": ms(warm[0]),
        "warm_loaded_ms": ms(warm[1]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(spread_ms: u64) -> String {
        let ms = Duration::from_millis;
        let (medians, spreads) = ([ms(800), ms(500), ms(700)], [ms(spread_ms); 3]);
        in_words("cold", &COLD, &medians, &spreads)
    }

    #[test]
    fn a_difference_within_the_spread_is_unclear() {
        let quiet = text(20);
        assert!(quiet.contains("-37.5 %  loaded, then started\n"), "{quiet}");
        assert!(!quiet.contains("unclear"), "{quiet}");
        let busy = text(200);
        assert!(
            busy.contains("-12.5 %  loaded while it starts (unclear)"),
            "{busy}"
        );
        assert!(busy.contains("-37.5 %  loaded, then started\n"), "{busy}");
        assert!(busy.contains("end other programs"), "{busy}");
    }

    #[test]
    fn the_spread_leaves_out_the_ends() {
        let times = [100, 101, 102, 103, 900]
            .map(Duration::from_millis)
            .to_vec();
        assert_eq!(spread(&times), Duration::from_millis(2));
        assert_eq!(spread(&[Duration::from_millis(7)]), Duration::ZERO);
    }
}
