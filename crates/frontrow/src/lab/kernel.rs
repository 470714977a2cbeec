//! Arguments that choose the guests' kernel.

use ::lab::{Cache, Error, Kernel};
use sys::arch::Arch;

#[derive(clap::Args)]
pub struct Choice {
    #[arg(long, default_value = "6.12", help = format!(
        "{}, or the path of an unpacked kernel or of its vmlinuz",
        Kernel::names()
    ))]
    kernel: String,
    /// Architecture of the kernel: x86-64 or arm64 [default: x86-64, or that of the kernel at the
    /// path]
    #[arg(long, value_parser = sys::arch::named)]
    arch: Option<&'static Arch>,
}

impl Choice {
    /// Finds the kernel; fetches or builds it if necessary.
    pub fn find(&self, cache: &Cache) -> Result<Kernel, Error> {
        Kernel::find(cache, &self.kernel, self.arch.copied())
    }
}
