//! The machine that a guest runs on.

use crate::Error;
use crate::emulator::Emulator;
use crate::kernel::Kernel;
use guest::outbox;
use rustix::thread::{CpuSet, sched_setaffinity};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Nothing that differs from run to run gets into the guest: no random numbers
/// of the host's, no random addresses. `loglevel=5` lets warnings onto the
/// console and little else, as each byte costs time.
const KERNEL_ARGUMENTS: &str = "loglevel=5 oops=panic panic=-1 mitigations=off nokaslr \
    norandmaps random.trust_bootloader=off random.trust_cpu=off cryptomgr.notests \
    initcall_blacklist=jent_mod_init,bpf_tcp_ca_kfunc_init,bpf_dummy_struct_ops_init,load_system_certificate_list";

/// A task that may be interrupted anywhere meets others in more places.
const HOST_CLOCK: &str = "preempt=full";

/// Recording is wanted for a lock that comes with it, not for what it records.
/// Without, QEMU's main loop may find the CPU idle before the instructions of
/// its last stretch are counted, and skip to the next timer from where that
/// stretch began: the clock is then late by its length, some 100 ns, now and
/// then on an idle host and often on a busy one.
const ICOUNT: &str = "shift=0,sleep=off,align=off,rr=record,rrfile=/dev/null";

/// A virtual machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'a> {
    /// QEMU for the kernel's architecture.
    pub emulator: &'a Emulator,
    /// The kernel to boot; it decides which architecture is emulated.
    pub kernel: &'a Kernel,
    /// Path of the initramfs.
    pub initramfs: &'a Path,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Seeds what the firmware gives the kernel as randomness.
    pub seed: u64,
    /// How time goes.
    pub clock: Clock,
    /// Destination of the console.
    pub console: Console<'a>,
    /// File of the memory that is shared with the host; None without outbox.
    pub outbox: Option<&'a Path>,
    /// Disks, and the files that are in them.
    pub disks: &'a [(&'a torture::Disk, &'a Path)],
    /// The host's CPU that it runs on; None for any.
    pub host_cpu: Option<CpuSet>,
}

impl Machine<'_> {
    fn emulated(&self) -> sys::arch::Machine {
        self.kernel.tree.arch.machine
    }

    /// Whether what it does is a function of what it is given.
    pub fn is_exact(&self) -> bool {
        self.clock == Clock::Instructions && self.disks.is_empty()
    }

    /// QEMU's arguments without those that name the host's files.
    pub fn without_paths(&self) -> String {
        let is_path = |it: &String| it.contains('/') && !it.contains("/dev/null");
        let all = arguments(self).into_iter().filter(|it| !is_path(it));
        all.collect::<Vec<_>>().join(" ")
    }
}

/// How time goes in a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// One CPU; an instruction takes a nanosecond and idle time is skipped. A guest behaves and is
    /// timed the same on any host.
    Instructions,
    /// This many CPUs and the host's clock: for races, never for figures.
    Host {
        /// Number of CPUs.
        cpus: u32,
    },
    /// The same, but only one CPU runs at a time: QEMU 7.2 may miss a change of code
    /// that another CPU is about to run, and then the guest hangs.
    HostInTurn {
        /// Number of CPUs.
        cpus: u32,
    },
}

/// Destinations of the console and of the second port.
#[derive(Clone, Copy, Debug)]
pub enum Console<'a> {
    /// Both go to files.
    Files {
        /// Path of the console's log.
        log: &'a Path,
        /// `record::Message` as JSON lines.
        messages: &'a Path,
    },
    /// The console is this terminal.
    Terminal,
}

/// A running guest; dropping it ends it.
#[derive(Debug)]
pub struct Guest {
    process: Child,
}

impl Guest {
    /// Starts `machine`; what QEMU itself complains about goes into `complaints`.
    pub fn start(machine: &Machine, complaints: File) -> Result<Guest, Error> {
        let mut command = command(machine);
        command.stderr(complaints).stdin(Stdio::null());
        die_with_parent(&mut command);
        if let Some(cpu) = machine.host_cpu {
            stay_on(&mut command, cpu);
        }
        // Ctrl-C is for the lab, which ends its guests itself.
        command.process_group(0);
        let process = command.spawn().map_err(no_qemu(machine))?;
        Ok(Guest { process })
    }

    /// Exit status of QEMU; None while it runs.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // It has ended already if either fails.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs `machine` on this terminal until it powers off.
pub fn interact(machine: &Machine) -> Result<ExitStatus, Error> {
    let mut command = command(machine);
    die_with_parent(&mut command);
    command.status().map_err(no_qemu(machine))
}

fn command(machine: &Machine) -> Command {
    let mut command = machine.emulator.command();
    command.args(arguments(machine));
    command
}

fn no_qemu(machine: &Machine) -> impl FnOnce(io::Error) -> Error {
    let sys::arch::Machine {
        program, package, ..
    } = machine.emulated();
    move |source| Error::NoTool {
        tool: program.to_owned(),
        package,
        source,
    }
}

/// A guest without a lab would run on unseen.
fn die_with_parent(command: &mut Command) {
    let set = || {
        // SAFETY: prctl with these arguments only sets a flag of the process.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: only an async-signal-safe system call is made after the fork.
    unsafe { command.pre_exec(set) };
}

fn stay_on(command: &mut Command, cpu: CpuSet) {
    // A guest that may run anywhere is only slower.
    let set = move || sched_setaffinity(None, &cpu).or(Ok(()));
    // SAFETY: only an async-signal-safe system call is made after the fork.
    unsafe { command.pre_exec(set) };
}

fn arguments(machine: &Machine) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "-nodefaults",
        "-no-user-config",
        "-no-reboot",
        "-display",
        "none",
    ]
    .iter()
    .chain(machine.emulated().arguments)
    .map(|&argument| argument.to_owned())
    .collect();
    let mut add = |name: &str, value: String| arguments.extend([name.to_owned(), value]);
    add("-m", format!("{}M", machine.memory_mib));
    add("-seed", machine.seed.to_string());
    add("-kernel", machine.kernel.image.display().to_string());
    add("-initrd", machine.initramfs.display().to_string());
    add("-append", kernel_arguments(machine));
    match machine.clock {
        Clock::Instructions => {
            add("-accel", "tcg".to_owned());
            add("-smp", "1".to_owned());
            add("-icount", ICOUNT.to_owned());
            add("-rtc", "base=2026-01-01T00:00:00,clock=vm".to_owned());
        }
        Clock::Host { cpus } => {
            add("-accel", "tcg,thread=multi".to_owned());
            add("-smp", cpus.to_string());
        }
        Clock::HostInTurn { cpus } => {
            add("-accel", "tcg,thread=single".to_owned());
            add("-smp", cpus.to_string());
        }
    }
    if let Some(outbox) = machine.outbox {
        let memory = format!(
            "memory-backend-file,id=outbox,share=on,size={},mem-path={}",
            outbox::BYTES,
            outbox.display()
        );
        add("-object", memory);
        add("-device", "ivshmem-plain,memdev=outbox".to_owned());
    }
    for (index, (disk, file)) in machine.disks.iter().enumerate() {
        // A flush is the guest's to wait for, and not to make the host's disk busy with.
        let drive = format!(
            "if=none,id=disk{index},format=raw,cache=unsafe,throttling.bps-total={},file={}",
            torture::BYTES_PER_S,
            file.display()
        );
        add("-drive", drive);
        for controller in disk.controllers {
            add("-device", (*controller).to_owned());
        }
        add("-device", format!("{},drive=disk{index}", disk.device));
    }
    match machine.console {
        // Files take every byte at once; a pipe could be full, and then the
        // guest would see a port that is slower at one time than at another.
        Console::Files { log, messages } => {
            add("-serial", format!("file:{}", log.display()));
            add(
                "-chardev",
                format!("file,id=port,path={}", messages.display()),
            );
        }
        Console::Terminal => {
            add("-serial", "mon:stdio".to_owned());
            add("-chardev", "null,id=port".to_owned());
        }
    }
    match machine.emulated().port_device {
        Some(device) => add("-device", format!("{device},chardev=port")),
        None => add("-serial", "chardev:port".to_owned()),
    }
    arguments
}

fn kernel_arguments(machine: &Machine) -> String {
    let emulated = machine.emulated();
    let clock = match machine.clock {
        Clock::Instructions => emulated.exact.to_owned(),
        Clock::Host { .. } | Clock::HostInTurn { .. } => {
            format!("{HOST_CLOCK} {}", emulated.host_clock)
        }
    };
    format!("console={} {KERNEL_ARGUMENTS} {clock}", emulated.console)
}
