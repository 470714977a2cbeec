//! `frontrow lab torture`.

use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::print_text;
use ::lab::{Cache, Kernel, Sources};
use ::torture::TRIALS;

#[derive(clap::Args)]
pub struct Torture {
    /// Only these trials instead of all
    trials: Vec<String>,
    /// 6.12, 6.1, 6.12-deb13, 7.2, 7.3, newest, rt, debug or kcsan (built once), or the path of an unpacked kernel or of its vmlinuz
    #[arg(long, default_value = "6.12")]
    kernel: String,
    /// Repeat what each trial repeats this many times as often
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Shifts what is random
    #[arg(long, default_value = "1")]
    seed: u64,
    /// List the trials instead
    #[arg(long)]
    list: bool,
}

/// Does what the command line says; which trial begins is told on stderr.
pub fn run(args: Torture) -> Result<(), Failure> {
    if args.list {
        let lines = TRIALS.iter();
        let lines = lines.map(|trial| format!("{:12} {}\n", trial.name, trial.title));
        return print_text(&lines.collect::<String>());
    }
    for name in &args.trials {
        ::torture::find(name).map_err(|sentence| Failure::new(Exit::Usage, sentence))?;
    }
    let all = || TRIALS.iter().map(|it| it.name.to_owned()).collect();
    let stop = catch_signals()?;
    let cache = Cache::of_user()?;
    let request = ::lab::Torture {
        kernel: Kernel::find(&cache, &args.kernel)?,
        trials: match args.trials.is_empty() {
            true => all(),
            false => args.trials,
        },
        rounds: args.rounds,
        seed: args.seed,
    };
    let release = request.kernel.release().to_owned();
    let begins = |name: &str| eprintln!("{release}: {name}");
    Ok(::lab::torture(
        &cache,
        &Sources::here(),
        &request,
        &begins,
        &stop,
    )?)
}
