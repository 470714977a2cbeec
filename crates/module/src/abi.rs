//! Makes `frontrow_abi.h`, the private block-layer declarations, from the
//! target kernel's BTF.
//!
//! A blk-mq I/O scheduler needs `struct elevator_type` and its neighbours, which
//! stand in `block/*.h` of the kernel's source and in no header package. Their
//! layout is in the kernel's type information (BTF), and it moves inside stable
//! series: so everything here is probed, and no kernel version is ever compared.
//!
//! [`generate`] takes any of: raw BTF (`/sys/kernel/btf/vmlinux`), an ELF file with
//! a `.BTF` section (a `vmlinux`, or the BTF-only one in some header packages), or a
//! compressed boot image (`/boot/vmlinuz-…`). BTF does not tell which functions modules may
//! call; `Module.symvers` of the kernel's headers does ([`Exports`]).

mod block;
mod ctype;
mod exports;
mod image;
mod running;

pub use exports::Exports;
pub use image::btf_section;
pub use running::check_running;

/// Why no header can be made for this kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is neither BTF nor an ELF file or boot image that holds it.
    #[error(
        "the file holds no BTF ({0}): pass /sys/kernel/btf/vmlinux, a vmlinux with a .BTF section, or a boot image of a kernel built with CONFIG_DEBUG_INFO_BTF"
    )]
    NoBtf(String),
    /// The BTF is damaged or of a newer format.
    #[error("the kernel's BTF cannot be read ({0}): check that the file is complete")]
    Damaged(String),
    /// It is not of the running kernel.
    #[error(
        "this type information is of another kernel: the running one lacks {lacking} of its functions, such as {example}. Give that of this very build (`uname -r -v`)"
    )]
    OtherKernel {
        /// Number of functions that are not in the running kernel.
        lacking: usize,
        /// One of them.
        example: String,
    },
    /// The running kernel's functions are not known.
    #[error(
        "this kernel does not list its functions in /proc/kallsyms, so it cannot be checked that the type information is its own: boot one built with CONFIG_KALLSYMS"
    )]
    NoSymbols,
    /// A declaration that the scheduler needs does not exist in this kernel.
    #[error("this kernel has no {0}, which the scheduler needs: it is not supported")]
    Missing(String),
    /// A function that the scheduler needs is not for modules in this kernel.
    #[error(
        "this kernel does not export the function {0} to modules, which the scheduler needs: it is not supported"
    )]
    NotExported(String),
    /// A function or operation changed in a way that is not known.
    #[error(
        "this kernel declares {name} as `{found}`, but only `{known}` is known: it is not supported"
    )]
    Signature {
        /// The function, or the operation as `struct.member`.
        name: String,
        /// Declaration in the BTF.
        found: String,
        /// Declarations that would be accepted.
        known: String,
    },
    /// A private structure contains a type whose declaration is not known to be public.
    #[error(
        "this kernel's {holder} contains `{found}`, whose declaration is not known to be in a public header: it is not supported"
    )]
    Private {
        /// The structure or function.
        holder: String,
        /// The type in question.
        found: String,
    },
}

impl From<btf_rs::Error> for Error {
    fn from(error: btf_rs::Error) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// The text of `frontrow_abi.h` for the kernel whose BTF `kernel` is or contains, and which
/// exports `exports` to modules; without these, every function counts as exported.
///
/// # Errors
/// [`Error`]: the BTF cannot be found or read, or it shows a kernel whose block
/// layer differs from all known ones.
pub fn generate(kernel: &[u8], exports: Option<&Exports>) -> Result<String, Error> {
    let section = btf_section(kernel)?;
    block::header(&btf_rs::Btf::from_bytes(&section)?, exports)
}
