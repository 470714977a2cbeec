//! Buffer for reads whose data are not used.

use std::ffi::c_void;
use std::io;
use std::ptr;

/// An anonymous, page-aligned mapping.
pub struct Map {
    address: *mut c_void,
    bytes: usize,
}

impl Map {
    /// Maps a buffer for reads. Concurrent reads overwrite each other in it.
    pub fn scratch(bytes: usize) -> io::Result<Map> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping where the kernel finds room.
        match unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) } {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            address => Ok(Map { address, bytes }),
        }
    }

    /// Address of its first byte.
    pub fn pointer(&self) -> *mut u8 {
        self.address.cast()
    }

    /// Keeps the mapping for ever: the kernel may still write to it.
    pub fn leak(&mut self) {
        self.bytes = 0;
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: our own mapping; whoever read into it is done.
            unsafe { libc::munmap(self.address, self.bytes) };
        }
    }
}
