//! `frontrow launch bench`: an app's cold start with and without loading, and the loss of a warm
//! start.

use super::profile_name;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::{json, print_text};
use crate::progress::left;
use ::launch::WorkingSet;
use ::launch::profile::{Measured, Profile, Store, Timing};
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
    /// Save the kind that is clearly fastest in the profile, so that the app starts that way
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
        cold_round(&profile, &name, &args.command, &stop, &mut cold)?;
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
        keep(&mut profile, &cold, &cold_spread);
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

/// Measures cold starts of an app that ends by itself, and keeps the kind that gains. `tries` is the
/// number of starts of each kind.
///
/// # Errors
/// The app failed or could not be started, or a signal interrupted.
pub fn measure(
    profile: &mut Profile,
    name: &str,
    command: &[OsString],
    tries: u32,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let mut cold: [Vec<Duration>; 3] = Default::default();
    for _ in 0..tries {
        cold_round(profile, name, command, stop, &mut cold)?;
    }
    let spreads = cold.each_ref().map(|it| spread(it));
    keep(profile, &cold.map(median), &spreads);
    Ok(())
}

/// One cold start of each kind. They alternate, so that drift affects all kinds alike.
fn cold_round(
    profile: &Profile,
    name: &str,
    command: &[OsString],
    stop: &AtomicBool,
    times: &mut [Vec<Duration>; 3],
) -> Result<(), Failure> {
    for (kind, times) in COLD.iter().zip(times) {
        make_cold(profile)?;
        times.push(start(kind, name, command)?);
        go_on(stop)?;
    }
    Ok(())
}

/// Saves the medians of [`COLD`] in the profile, and the kind that is clearly faster than by demand.
/// Loading costs memory, and a warm start some milliseconds, so without a gain nothing is loaded.
fn keep(profile: &mut Profile, medians: &[Duration; 3], spreads: &[Duration; 3]) {
    let [demand_us, before_us, beside_us] = medians.map(|it| it.as_micros() as u64);
    profile.measured = Some(Measured {
        demand_us,
        before_us,
        beside_us,
    });
    let gains = |kind: &usize| is_gain(medians, spreads, *kind);
    let fastest = (1..COLD.len())
        .filter(gains)
        .min_by_key(|&kind| medians[kind]);
    profile.timing = COLD[fastest.unwrap_or_default()].timing;
}

/// Whether starts of this kind are faster than by demand, by more than starts of one kind differ
/// among themselves.
fn is_gain(medians: &[Duration], spreads: &[Duration], kind: usize) -> bool {
    medians[kind] + spreads[0].max(spreads[kind]) < medians[0]
}

/// A sentence on what was measured, and what follows from it.
pub fn whether_it_gains(profile: &Profile) -> String {
    let Some(measured) = profile.measured else {
        return "Whether loading gains was not measured: `frontrow launch bench --keep` does it."
            .to_owned();
    };
    let ms = |us: u64| us as f64 / 1e3;
    let decided = match profile.timing {
        Timing::Never => "does not gain clearly, so nothing is loaded",
        Timing::Before => "gains most before the start, and is done then",
        Timing::Beside => "gains most beside the start, and is done then",
    };
    format!(
        "Cold starts took {:.1} ms by demand, {:.1} loaded before and {:.1} beside: loading {decided}.",
        ms(measured.demand_us),
        ms(measured.before_us),
        ms(measured.beside_us)
    )
}

/// Name in JSON.
pub fn timing_name(timing: Timing) -> &'static str {
    match timing {
        Timing::Before => "before",
        Timing::Beside => "beside",
        Timing::Never => "never",
    }
}

/// Medians of cold starts; null if they were not measured.
pub fn measured_as_json(profile: &Profile) -> serde_json::Value {
    let ms = |us: u64| us as f64 / 1e3;
    let values = |measured: Measured| {
        json!({
            "demand_ms": ms(measured.demand_us),
            "before_ms": ms(measured.before_us),
            "beside_ms": ms(measured.beside_us),
        })
    };
    profile.measured.map_or(serde_json::Value::Null, values)
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
    fn what_does_not_gain_clearly_is_not_loaded() {
        let ms = Duration::from_millis;
        let mut profile = Profile {
            command: "app".to_owned(),
            recorded_s: 0,
            runs: 1,
            timing: Timing::default(),
            measured: None,
            files: Vec::new(),
            metadata: Vec::new(),
        };
        let mut kept = |medians: [u64; 3], spreads: [u64; 3]| {
            keep(&mut profile, &medians.map(ms), &spreads.map(ms));
            (profile.timing, whether_it_gains(&profile))
        };
        let (timing, said) = kept([800, 500, 490], [20, 20, 20]);
        assert_eq!(timing, Timing::Beside);
        assert!(
            said.contains("800.0 ms by demand, 500.0 loaded before"),
            "{said}"
        );
        // The faster one is unclear, so the other gains most.
        assert_eq!(kept([800, 500, 490], [20, 20, 400]).0, Timing::Before);
        let (timing, said) = kept([800, 790, 805], [20, 5, 5]);
        assert_eq!(timing, Timing::Never);
        assert!(said.contains("nothing is loaded"), "{said}");
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
