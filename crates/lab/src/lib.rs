//! Guest image, QEMU, running experiments.
//!
//! [`run()`] boots one guest for each policy and seed of an experiment: a stock
//! distribution kernel with instruction counting as its clock, on the emulated
//! flash device, with this very program as its init ([`guest`]). The same
//! inputs and seeds give the same result to the byte, on any host.

mod cache;

mod cpio;
mod debian;
mod debug_kernel;
mod elf;
mod emulator;
mod error;
mod exec;
mod foreign;
mod host_cpu;
mod image;
mod kept;
mod kernel;
mod messages;
mod modules;
mod past;
mod powercut;
mod qemu;
mod run;
mod session;
mod shell;
mod sources;
mod tool;
mod toolchain;
mod tools;
mod torture;

pub use cache::Cache;
pub use error::{Error, GuestFailure};
pub use exec::{CommandOutput, Exec, exec};
pub use kept::Keep;
pub use kernel::{Image as KernelImage, Kernel, images as kernel_images};
pub use past::Ageing;
pub use powercut::{PowerCut, record_stream};
pub use run::{Name, Request, Watcher, prepare, run, run_shard};
pub use shell::{Shell, shell};
pub use sources::Sources;
pub use torture::{Torture, torture};
