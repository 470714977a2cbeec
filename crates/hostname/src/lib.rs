//! The machine's name, by which x11rb finds an X server's cookie. It takes the place of a
//! crate whose licence does not go with ours.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// What `uname -n` prints.
pub fn gethostname() -> OsString {
    let system = rustix::system::uname();
    OsStr::from_bytes(system.nodename().to_bytes()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_kernels_word() {
        let told = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        assert_eq!(gethostname().to_string_lossy(), told.trim_end());
    }
}
