//! Arguments that choose the guests' kernel.

use ::lab::{Cache, Error, Kernel};
use sys::arch::Arch;

#[derive(clap::Args)]
pub struct Choice {
    /// 6.12, 6.1, 6.12-deb13, 7.2, 7.3, newest, desktop, rt, 16k (arm64 with such pages), debug or kcsan (built once), or the path of an unpacked kernel or of its vmlinuz
    #[arg(long, default_value = "6.12")]
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
