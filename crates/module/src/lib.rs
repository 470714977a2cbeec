//! The scheduler module from user space: the kernel's declarations that it needs ([`abi`]), its
//! build ([`kmod`]), and what is done with it ([`sched`]).

pub mod abi;
pub mod kmod;
pub mod sched;
