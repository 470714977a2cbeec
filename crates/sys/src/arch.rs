//! The architectures that Frontrow runs on: what others call them, and the machine that the
//! lab emulates of each.

/// An architecture: a row of [`ALL`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arch {
    /// On the command line.
    pub name: &'static str,
    /// As Debian's packages have it.
    pub debian: &'static str,
    /// As the GNU tools have it: the prefix of cross compilers, and Debian's directory of
    /// libraries.
    pub gnu: &'static str,
    /// Debian's package with the compiler that makes what is for it elsewhere.
    pub cross_compiler: &'static str,
    /// As Rust has it.
    pub rust: &'static str,
    /// `ARCH` of the kernel's build, and libbpf's name.
    pub kernel: &'static str,
    /// The line of a kernel's configuration that tells it.
    pub config: &'static str,
    /// The dynamic loader's file.
    pub loader: &'static str,
    /// Directory of shared libraries in guests.
    pub libraries: &'static str,
    /// Suffix of cached files for this architecture; empty for x86-64.
    pub suffix: &'static str,
    /// Machine that QEMU emulates.
    pub machine: Machine,
}

/// A machine of QEMU's, and what its kernel has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// QEMU's program that emulates it, to be found in PATH.
    pub program: &'static str,
    /// QEMU's package in Debian.
    pub package: &'static str,
    /// Machine and CPU.
    pub arguments: &'static [&'static str],
    /// The console's device.
    pub console: &'static str,
    /// The port for messages as guests see it.
    pub port: &'static str,
    /// QEMU device of the port for messages; None if the machine has two serial ports.
    pub port_device: Option<&'static str>,
    /// Kernel arguments where instructions are the clock.
    pub exact: &'static str,
    /// Kernel arguments where the host's clock is the guest's.
    pub host_clock: &'static str,
}

/// PCs and servers.
pub const X86_64: Arch = Arch {
    name: "x86-64",
    debian: "amd64",
    gnu: "x86_64-linux-gnu",
    cross_compiler: "gcc-x86-64-linux-gnu",
    rust: "x86_64-unknown-linux-gnu",
    kernel: "x86",
    config: "CONFIG_X86_64=y",
    loader: "ld-linux-x86-64.so.2",
    libraries: "/lib/x86_64-linux-gnu",
    suffix: "",
    machine: Machine {
        program: "qemu-system-x86_64",
        package: "qemu-system-x86",
        // An AMD of 2003 as far as instructions go. It copies by loops of stores, where
        // newer models copy by an instruction whose every step is counted, which makes
        // a guest a third slower on the host; and it has no random numbers of its own,
        // which would be the host's.
        //
        // But for CMPXCHG16B, which leaves wrong flags in QEMU 7.2: `helper_cmpxchg16b_unlocked`
        // makes them by `env->cc_op`, which `disas_insn` has not brought up to date. An interrupt
        // that comes before the next instruction that sets flags puts them into its frame, and
        // returns to a kernel with its trap flag set, for one, in the middle of an allocation.
        // The kernel does without it.
        arguments: &["-machine", "q35,usb=off", "-cpu", "qemu64,-cx16"],
        console: "ttyS0",
        port: "/dev/ttyS1",
        port_device: None,
        // Calibrating the local APIC's timer takes as long on the host as all the rest
        // of booting; the HPET needs none.
        exact: "nolapic_timer",
        // A busy host may hold the guest back just while it counts the timer's ticks,
        // which is no reason for it to give up; nor to find out after two seconds that the
        // TSC is no good, and to change the code of its clock for that under both CPUs,
        // which a QEMU before 8.1 does not survive every time.
        host_clock: "no_timer_check tsc=unstable",
    },
};

/// Phones, boards and laptops.
pub const ARM64: Arch = Arch {
    name: "arm64",
    debian: "arm64",
    gnu: "aarch64-linux-gnu",
    cross_compiler: "gcc-aarch64-linux-gnu",
    rust: "aarch64-unknown-linux-gnu",
    kernel: "arm64",
    config: "CONFIG_ARM64=y",
    loader: "ld-linux-aarch64.so.1",
    libraries: "/lib/aarch64-linux-gnu",
    suffix: "-arm64",
    machine: Machine {
        program: "qemu-system-aarch64",
        package: "qemu-system-arm",
        // The CPU of a Raspberry Pi 5 and of many a phone. It has no random numbers of its own;
        // `max` has, and takes twice as long on the host, for it signs return addresses.
        arguments: &["-machine", "virt,gic-version=3", "-cpu", "cortex-a76"],
        console: "ttyAMA0",
        port: "/dev/ttyS0",
        // The machine has one port, a PL011.
        port_device: Some("pci-serial"),
        exact: "",
        host_clock: "",
    },
};

/// All there are.
pub static ALL: [Arch; 2] = [X86_64, ARM64];

/// Architecture of this program.
#[cfg(target_arch = "x86_64")]
pub const NATIVE: Arch = X86_64;
/// Architecture of this program.
#[cfg(target_arch = "aarch64")]
pub const NATIVE: Arch = ARM64;

impl Arch {
    /// The prefix of the tools that build for it here; nothing where they are the machine's own.
    pub fn cross_prefix(&self) -> String {
        match *self == NATIVE {
            true => String::new(),
            false => format!("{}-", self.gnu),
        }
    }

    /// A name of Debian's that has `{arch}` where the architecture is.
    pub fn in_name(&self, name: &str) -> String {
        name.replace("{arch}", self.debian)
    }

    /// Debian's package with the compiler that makes what is for it here.
    pub fn compiler_package(&self) -> &'static str {
        match *self == NATIVE {
            true => "gcc",
            false => self.cross_compiler,
        }
    }
}

/// The architecture of that name.
///
/// # Errors
/// A sentence with the names that there are.
pub fn named(name: &str) -> Result<&'static Arch, String> {
    let found = ALL.iter().find(|arch| arch.name == name);
    found.ok_or_else(|| format!("give one of {}", ALL.map(|it| it.name).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_known_by_its_name_and_no_other() {
        for arch in &ALL {
            assert_eq!(named(arch.name), Ok(arch));
        }
        let refused = named("riscv64").unwrap_err();
        assert!(refused.contains("x86-64, arm64"), "{refused}");
    }

    #[test]
    fn tools_of_this_machine_have_no_prefix() {
        assert_eq!(NATIVE.cross_prefix(), "");
        let others = ALL.iter().filter(|arch| **arch != NATIVE);
        for arch in others {
            assert_eq!(arch.cross_prefix(), format!("{}-", arch.gnu));
        }
    }
}
