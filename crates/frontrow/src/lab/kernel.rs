//! Which kernel guests boot, on the command line.

use ::lab::{Cache, Error, Kernel};
use arch::Arch;

#[derive(clap::Args)]
pub struct Choice {
    /// 6.12, 6.1, 6.12-deb13, 7.2, 7.3, newest, rt, 16k (arm64 with such pages), debug or kcsan (built once), or the path of an unpacked kernel or of its vmlinuz
    #[arg(long, default_value = "6.12")]
    kernel: String,
    /// What the kernel is for: x86-64 or arm64 [default: x86-64, or what the kernel at the path is for]
    #[arg(long, value_parser = arch::named)]
    arch: Option<&'static Arch>,
}

impl Choice {
    /// The kernel, fetched or built if it has to be.
    pub fn find(&self, cache: &Cache) -> Result<Kernel, Error> {
        Kernel::find(cache, &self.kernel, self.arch.copied())
    }
}
