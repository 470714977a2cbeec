//! The memory that the core asks its host for (`kernel/simflash/ftl/platform.h`).

use super::raw::PAGE_BYTES;
use std::ffi::c_void;

/// A page, aligned to its size; null if memory is short.
#[unsafe(no_mangle)]
extern "C" fn ftl_alloc_page() -> *mut c_void {
    // SAFETY: alignment and size are the same power of two.
    unsafe { libc::aligned_alloc(PAGE_BYTES, PAGE_BYTES) }
}

/// Gives a page back.
#[unsafe(no_mangle)]
unsafe extern "C" fn ftl_free_page(page: *mut c_void) {
    // SAFETY: the core gives back what `ftl_alloc_page` gave it, once.
    unsafe { libc::free(page) }
}

/// Zeroed memory; null if it is short.
#[unsafe(no_mangle)]
extern "C" fn ftl_alloc_array(count: usize, size: usize) -> *mut c_void {
    // SAFETY: calloc checks the product for overflow.
    unsafe { libc::calloc(count, size) }
}

/// Gives an array back; null is none.
#[unsafe(no_mangle)]
unsafe extern "C" fn ftl_free_array(array: *mut c_void) {
    // SAFETY: the core gives back what `ftl_alloc_array` gave it, once.
    unsafe { libc::free(array) }
}
