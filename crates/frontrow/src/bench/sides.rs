//! `frontrow bench --with on,off`: the same runs with all of Frontrow on and off, in turns, so that what
//! else changes meanwhile changes both.

use super::compare::compare;
use super::place::Place;
use super::target::Target;
use super::{Options, json, of_rows, perform_one, print_text};
use crate::exit::Failure;
use crate::on;
use record::{ResultFile, Row};
use record::{Run, title};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// The machine itself: a benchmark is of no other.
const ROOT: &str = "/";

/// Measures both sides and prints the comparison, which ends with a sentence. Frontrow is on or off
/// afterwards as it was before.
pub(super) fn measure(
    directory: &Path,
    place: &Place,
    runs: &[Run],
    options: &Options,
    stop: &AtomicBool,
) -> Result<(), Failure> {
    let root = Path::new(ROOT);
    let was_on = on::is_on(root)?;
    let measured = in_turns(directory, place, runs, options, stop);
    let put_back = on::switch(root, was_on);
    let [off, on] = measured?;
    put_back?;
    let comparison = compare(&off, &on, false)?;
    match options.json {
        true => print_text(&json(&comparison)?),
        false => {
            let sentence = comparison.sentence("Frontrow is off", "it is on");
            print_text(&format!("{}{sentence}\n", comparison.render()))
        }
    }
}

/// The results without and with it. Whichever came first in a round comes last in the next.
fn in_turns(
    directory: &Path,
    place: &Place,
    runs: &[Run],
    options: &Options,
    stop: &AtomicBool,
) -> Result<[ResultFile; 2], Failure> {
    let [mut off, mut on] = [Side::default(), Side::default()];
    let rounds = options.least_rounds();
    for (round, seed) in (0..rounds).zip(options.seeds().all()) {
        let first = round % 2 == 1;
        for is_on in [first, !first] {
            on::switch(Path::new(ROOT), is_on)?;
            let target = Target::of(directory)?;
            let side = if is_on { &mut on } else { &mut off };
            for run in runs {
                let name = title::short(run.workload.name, run.load.name());
                let how = if is_on { "on" } else { "off" };
                eprintln!("[round {} of {rounds}] {name}, {how}", round + 1);
                side.rows
                    .extend(perform_one(place, run, &target, options, seed, stop)?);
            }
            side.target = Some(target);
        }
    }
    let result = |side: Side| match side.target {
        Some(target) => Ok(of_rows(side.rows, &target, options)),
        None => Target::of(directory).map(|target| of_rows(side.rows, &target, options)),
    };
    Ok([result(off)?, result(on)?])
}

#[derive(Default)]
struct Side {
    rows: Vec<Row>,
    target: Option<Target>,
}
