//! `frontrow-lab exec`.

use super::ageing::Ageing;
use super::device;
use super::kernel::Choice;
use super::modules::Modules;
use super::tell_that_it_was_kept;
use crate::atomic_file;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::print_bytes;
use ::lab::{Cache, CommandOutput, Keep, Sources};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Run a command in a guest with the device mounted, and copy its output files
///
/// The working directory is the device's file system. Files in /out, `stdout` and `stderr` are
/// copied to the directory of --out. `frontrow` is in the guest; `--with frontrow-lab` adds the lab.
#[derive(clap::Args)]
pub struct Exec {
    #[command(flatten)]
    kernel: Choice,
    #[arg(long, default_value = "emmc", help = device::values_or_fresh())]
    device: String,
    /// A second device, /dev/simflash1, new and without a file system; values as for --device
    #[arg(long, value_name = "DEVICE")]
    second: Option<String>,
    /// Policy of the first device
    #[arg(long, default_value = "mq-deadline")]
    policy: String,
    #[command(flatten)]
    foreign: Modules,
    /// Additional programs, such as fio,blktrace,strace
    #[arg(long, value_delimiter = ',', value_name = "PROGRAM,…")]
    with: Vec<String>,
    /// Additional kernel modules, such as xfs,btrfs
    #[arg(long, value_delimiter = ',', value_name = "MODULE,…")]
    modules: Vec<String>,
    /// Number of CPUs, which take turns on the host's clock [default: one CPU with exact time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    cpus: Option<u32>,
    /// Seed; shifts the file system's layout
    #[arg(long, default_value = "1")]
    seed: u64,
    /// Memory of the guest
    #[arg(long, default_value = "1024", value_name = "MIB")]
    memory: u64,
    /// Give up after this time in the guest
    #[arg(long, default_value = "600", value_name = "SECONDS")]
    limit: u64,
    /// Keep what the guest leaves, and take what was kept if all that goes into it is the same
    #[arg(long)]
    keep: bool,
    /// Copy the command's output files to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Runs the subcommand, and prints the command's stdout and stderr.
pub fn run(args: Exec) -> Result<(), Failure> {
    if let Some(out) = &args.out {
        // Fail before the guest runs, not after.
        fs::create_dir_all(out).map_err(|error| Failure::unwritable(out, &error))?;
    }
    let policy = args.foreign.policy(&args.policy)?;
    args.foreign.refuse_unused(std::slice::from_ref(&policy))?;
    let (sources, cache) = (Sources::here(), Cache::of_user()?);
    let stop = catch_signals()?;
    let exec = ::lab::Exec {
        kernel: args.kernel.find(&cache)?,
        device: sources.device(&args.device)?,
        second: args.second.map(|it| sources.device(&it)).transpose()?,
        policy,
        programs: args.with,
        modules: args.modules,
        cpus: args.cpus,
        seed: args.seed,
        memory_mib: args.memory,
        limit_s: args.limit,
        command: args.command,
    };
    let ageing = Ageing::default();
    let keep = Keep::new(&cache, &tell_that_it_was_kept);
    let hear = |written, all| ageing.hear(written, all);
    let output = ::lab::exec(
        &cache,
        &sources,
        &exec,
        args.keep.then_some(&keep),
        &hear,
        &stop,
    )?;
    if let Some(out) = &args.out {
        save(out, &output)?;
    }
    print_output(&output)?;
    match output.status.as_str() {
        "0" => Ok(()),
        status => Err(Failure::new(
            Exit::Guest,
            format_args!("the command in the guest failed, its exit status is {status}"),
        )),
    }
}

fn save(out: &Path, output: &CommandOutput) -> Result<(), Failure> {
    for (name, content) in &output.files {
        let path = out.join(name);
        let dir = path.parent().unwrap_or(out);
        fs::create_dir_all(dir).map_err(|error| Failure::unwritable(dir, &error))?;
        atomic_file::write(&path, content)?;
    }
    Ok(())
}

fn print_output(output: &CommandOutput) -> Result<(), Failure> {
    for (name, content) in &output.files {
        match name.as_str() {
            "stdout" => print_bytes(content, io::stdout())?,
            "stderr" => print_bytes(content, io::stderr())?,
            _ => {}
        }
    }
    Ok(())
}
