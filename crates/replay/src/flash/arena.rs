//! The memory of a device that can be saved and restored.
//!
//! All allocations of the core for such a device are in one mapping at fixed addresses. A copy of
//! the mapping thus is a copy of the device with valid pointers.

use super::raw::PAGE_BYTES;
use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;

/// Size of the mapping; untouched pages of it take no memory.
const RESERVED_BYTES: usize = 4 << 30;

/// Alignment of arrays; pages are aligned to their size.
const ALIGNMENT: usize = 64;

thread_local! {
    /// Arena for the core's allocations while it is called; null stands for the heap.
    static CURRENT: Cell<*mut Arena> = const { Cell::new(ptr::null_mut()) };
}

/// Memory of one device.
pub(super) struct Arena {
    base: *mut u8,
    used: usize,
    free_pages: Vec<*mut c_void>,
}

/// Saved content of an arena.
pub(super) struct Saved {
    bytes: Vec<u8>,
    free_pages: Vec<*mut c_void>,
}

// SAFETY: the pointers are into the arena's own memory, which moves with it from thread to thread.
unsafe impl Send for Arena {}

impl Arena {
    /// Maps an arena; `None` if there is no address space left.
    pub(super) fn new() -> Option<Box<Self>> {
        // SAFETY: a new mapping that nobody else knows of.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                RESERVED_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        (base != libc::MAP_FAILED).then(|| {
            Box::new(Arena {
                base: base.cast(),
                used: 0,
                free_pages: Vec::new(),
            })
        })
    }

    /// A copy of the arena's content.
    pub(super) fn save(&self) -> Saved {
        // SAFETY: so many bytes of the mapping were given out and may be read.
        let bytes = unsafe { std::slice::from_raw_parts(self.base, self.used) };
        Saved {
            bytes: bytes.to_vec(),
            free_pages: self.free_pages.clone(),
        }
    }

    /// Restores the content that was saved from this arena.
    pub(super) fn restore(&mut self, saved: &Saved) {
        // SAFETY: it was saved from this mapping, which never gets shorter; nobody holds a
        // reference into it, for the core's caller has `&mut` of the device.
        unsafe { ptr::copy_nonoverlapping(saved.bytes.as_ptr(), self.base, saved.bytes.len()) };
        self.used = saved.bytes.len();
        self.free_pages.clone_from(&saved.free_pages);
    }

    /// Allocates from the arena; null if it is full. The memory is not zeroed.
    fn take(&mut self, bytes: usize, alignment: usize) -> *mut c_void {
        let start = self.used.next_multiple_of(alignment);
        match start.checked_add(bytes) {
            Some(end) if end <= RESERVED_BYTES => self.used = end,
            _ => return ptr::null_mut(),
        }
        // SAFETY: the stretch is inside the mapping.
        unsafe { self.base.add(start).cast() }
    }

    fn page(&mut self) -> *mut c_void {
        match self.free_pages.pop() {
            Some(page) => page,
            None => self.take(PAGE_BYTES, PAGE_BYTES),
        }
    }

    fn array(&mut self, bytes: usize) -> *mut c_void {
        let array = self.take(bytes, ALIGNMENT);
        if !array.is_null() {
            // SAFETY: it was just given out, as long as that. It may have been used before the
            // arena was restored.
            unsafe { ptr::write_bytes(array.cast::<u8>(), 0, bytes) };
        }
        array
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the mapping is this arena's, and the device in it is gone.
        unsafe { libc::munmap(self.base.cast(), RESERVED_BYTES) };
    }
}

/// Directs the core's allocations in this thread to an arena while it lives.
pub(super) struct Entered<'a> {
    before: *mut Arena,
    /// Keeps the arena borrowed.
    arena: PhantomData<&'a mut Arena>,
}

/// Directs allocations to `arena`, or to the heap for None.
pub(super) fn enter(arena: Option<&mut Arena>) -> Entered<'_> {
    let arena = arena.map_or(ptr::null_mut(), ptr::from_mut);
    Entered {
        before: CURRENT.replace(arena),
        arena: PhantomData,
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

fn current<T>(act: impl FnOnce(Option<&mut Arena>) -> T) -> T {
    // SAFETY: `Entered` keeps it set only while the arena is borrowed, and the core, which is
    // what calls here, is the borrow's only user.
    act(unsafe { CURRENT.get().as_mut() })
}

/// Allocates a page, aligned to its size; null if memory is short.
#[unsafe(no_mangle)]
extern "C" fn ftl_alloc_page() -> *mut c_void {
    current(|arena| match arena {
        Some(arena) => arena.page(),
        // SAFETY: alignment and size are the same power of two.
        None => unsafe { libc::aligned_alloc(PAGE_BYTES, PAGE_BYTES) },
    })
}

/// Frees a page.
#[unsafe(no_mangle)]
unsafe extern "C" fn ftl_free_page(page: *mut c_void) {
    current(|arena| match arena {
        Some(arena) if !page.is_null() => arena.free_pages.push(page),
        Some(_) => {}
        // SAFETY: the core gives back what `ftl_alloc_page` gave it, once.
        None => unsafe { libc::free(page) },
    });
}

/// Allocates zeroed memory; null if memory is short.
#[unsafe(no_mangle)]
extern "C" fn ftl_alloc_array(count: usize, size: usize) -> *mut c_void {
    current(|arena| match arena {
        Some(arena) => match count.checked_mul(size) {
            Some(bytes) => arena.array(bytes),
            None => ptr::null_mut(),
        },
        // SAFETY: calloc checks the product for overflow.
        None => unsafe { libc::calloc(count, size) },
    })
}

/// Frees an array; null is allowed. Arrays of an arena are freed only by its restore or drop: the
/// core allocates them when a device is made or mounted.
#[unsafe(no_mangle)]
unsafe extern "C" fn ftl_free_array(array: *mut c_void) {
    current(|arena| {
        if arena.is_none() {
            // SAFETY: the core gives back what `ftl_alloc_array` gave it, once.
            unsafe { libc::free(array) };
        }
    });
}
