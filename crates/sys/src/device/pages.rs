//! Memory that is aligned for direct I/O.

use std::ops::{Deref, DerefMut};

/// Page size of the supported machines, to which direct I/O is aligned.
pub const PAGE_BYTES: usize = 4096;

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// A buffer of whole, aligned pages for direct I/O.
pub struct Pages(Vec<Page>);

impl Pages {
    /// A zeroed buffer of `bytes`, rounded up to whole pages.
    pub fn zeroed(bytes: usize) -> Self {
        Pages(vec![Page([0; PAGE_BYTES]); bytes.div_ceil(PAGE_BYTES)])
    }
}

impl Deref for Pages {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the vector's pages are contiguous, initialized bytes.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len() * PAGE_BYTES) }
    }
}

impl DerefMut for Pages {
    fn deref_mut(&mut self) -> &mut [u8] {
        let bytes = self.0.len() * PAGE_BYTES;
        // SAFETY: as above, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), bytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_aligned_for_direct_io() {
        assert_eq!(Pages::zeroed(1).as_ptr() as usize % PAGE_BYTES, 0);
    }
}
