//! `frontrow lab exec`.

use super::ageing::Ageing;
use super::kernel::Choice;
use crate::bench::catch_signals;
use crate::exit::{Exit, Failure};
use crate::print::print_bytes;
use crate::whole;
use ::lab::{Cache, Left, Sources};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub struct Exec {
    #[command(flatten)]
    kernel: Choice,
    /// emmc, emmc-serial, ufs, zero, or the path of a profile that ends in .toml; `:fresh` behind it: new, not aged
    #[arg(long, default_value = "emmc")]
    device: String,
    /// A second device, /dev/simflash1, new and without a file system: named as for --device
    #[arg(long, value_name = "DEVICE")]
    second: Option<String>,
    /// The policy that the first device runs under
    #[arg(long, default_value = "mq-deadline")]
    policy: String,
    /// More programs, such as fio,blktrace,strace
    #[arg(long, value_delimiter = ',', value_name = "PROGRAM,…")]
    with: Vec<String>,
    /// More modules of the kernel's own, such as xfs,btrfs
    #[arg(long, value_delimiter = ',', value_name = "MODULE,…")]
    modules: Vec<String>,
    /// CPUs that take turns, with the host's clock [default: one CPU with exact time]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    cpus: Option<u32>,
    /// Shifts the file system's layout
    #[arg(long, default_value = "1")]
    seed: u64,
    /// The guest's memory
    #[arg(long, default_value = "1024", value_name = "MIB")]
    memory: u64,
    /// Give up after so many seconds of the guest's time
    #[arg(long, default_value = "600", value_name = "SECONDS")]
    limit: u64,
    /// Put what the command leaves into this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// The command and its arguments
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// Does what the command line says; what the command printed is printed.
pub fn run(args: Exec) -> Result<(), Failure> {
    if let Some(out) = &args.out {
        // Better now than after minutes.
        fs::create_dir_all(out).map_err(|error| Failure::unwritable(out, &error))?;
    }
    let (sources, cache) = (Sources::here(), Cache::of_user()?);
    let stop = catch_signals()?;
    let exec = ::lab::Exec {
        kernel: args.kernel.find(&cache)?,
        device: sources.device(&args.device)?,
        second: args.second.map(|it| sources.device(&it)).transpose()?,
        policy: args.policy,
        programs: args.with,
        modules: args.modules,
        cpus: args.cpus,
        seed: args.seed,
        memory_mib: args.memory,
        limit_s: args.limit,
        command: args.command,
    };
    let ageing = Ageing::default();
    let hear = |written, all| ageing.hear(written, all);
    let left = ::lab::exec(&cache, &sources, &exec, &hear, &stop)?;
    if let Some(out) = &args.out {
        keep(out, &left)?;
    }
    pass_on(&left)?;
    match left.status.as_str() {
        "0" => Ok(()),
        status => Err(Failure::new(
            Exit::Guest,
            format_args!("the command in the guest failed, its exit status is {status}"),
        )),
    }
}

fn keep(out: &Path, left: &Left) -> Result<(), Failure> {
    for (name, content) in &left.files {
        let path = out.join(name);
        let dir = path.parent().unwrap_or(out);
        fs::create_dir_all(dir).map_err(|error| Failure::unwritable(dir, &error))?;
        whole::write(&path, content)?;
    }
    Ok(())
}

fn pass_on(left: &Left) -> Result<(), Failure> {
    for (name, content) in &left.files {
        match name.as_str() {
            "stdout" => print_bytes(content, io::stdout())?,
            "stderr" => print_bytes(content, io::stderr())?,
            _ => {}
        }
    }
    Ok(())
}
