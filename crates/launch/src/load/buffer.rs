//! Where reads go whose data nobody wants.

use std::ffi::c_void;
use std::io;
use std::ptr;

/// Memory of its own, page-aligned.
pub struct Map {
    address: *mut c_void,
    bytes: usize,
}

impl Map {
    /// Memory that reads may write to. Many at once make noise of it.
    pub fn scratch(bytes: usize) -> io::Result<Map> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping where the kernel finds room.
        match unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) } {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            address => Ok(Map { address, bytes }),
        }
    }

    /// Its begin.
    pub fn pointer(&self) -> *mut u8 {
        self.address.cast()
    }

    /// Keeps the memory for ever: somebody may still write to it.
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
