//! The memory of a device that can be saved and put back.
//!
//! All that the core allocates for such a device is in one stretch of memory, at addresses that
//! stay: so a copy of the stretch is a copy of the device, with all its pointers.

use super::raw::PAGE_BYTES;
use std::cell::Cell;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr;

/// Addresses that are set aside; what is not used costs nothing.
const RESERVED_BYTES: usize = 4 << 30;

/// Of arrays; a page has its own size.
const ALIGNMENT: usize = 64;

thread_local! {
    /// Where the core's allocations come from while it is called, null for the heap.
    static CURRENT: Cell<*mut Arena> = const { Cell::new(ptr::null_mut()) };
}

/// One device's memory.
pub(super) struct Arena {
    base: *mut u8,
    used: usize,
    free_pages: Vec<*mut c_void>,
}

/// What an arena held.
pub(super) struct Saved {
    bytes: Vec<u8>,
    free_pages: Vec<*mut c_void>,
}

// SAFETY: the pointers are into the arena's own memory, which moves with it from thread to thread.
unsafe impl Send for Arena {}

impl Arena {
    /// `None` if there are no addresses left.
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

    /// A copy of all that is in it.
    pub(super) fn save(&self) -> Saved {
        // SAFETY: so many bytes of the mapping were given out and may be read.
        let bytes = unsafe { std::slice::from_raw_parts(self.base, self.used) };
        Saved {
            bytes: bytes.to_vec(),
            free_pages: self.free_pages.clone(),
        }
    }

    /// Everything is again as it was when it was saved.
    pub(super) fn restore(&mut self, saved: &Saved) {
        // SAFETY: it was saved from this mapping, which never gets shorter; nobody holds a
        // reference into it, for the core's caller has `&mut` of the device.
        unsafe { ptr::copy_nonoverlapping(saved.bytes.as_ptr(), self.base, saved.bytes.len()) };
        self.used = saved.bytes.len();
        self.free_pages.clone_from(&saved.free_pages);
    }

    /// Null if it is full. What was there before is still in it.
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

/// The core's allocations of this thread come from an arena while this lives.
pub(super) struct Entered<'a> {
    before: *mut Arena,
    /// Nobody else has it meanwhile.
    arena: PhantomData<&'a mut Arena>,
}

/// Enters `arena`, or the heap.
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

/// A page, aligned to its size; null if memory is short.
#[unsafe(no_mangle)]
extern "C" fn ftl_alloc_page() -> *mut c_void {
    current(|arena| match arena {
        Some(arena) => arena.page(),
        // SAFETY: alignment and size are the same power of two.
        None => unsafe { libc::aligned_alloc(PAGE_BYTES, PAGE_BYTES) },
    })
}

/// Gives a page back.
#[unsafe(no_mangle)]
unsafe extern "C" fn ftl_free_page(page: *mut c_void) {
    current(|arena| match arena {
        Some(arena) if !page.is_null() => arena.free_pages.push(page),
        Some(_) => {}
        // SAFETY: the core gives back what `ftl_alloc_page` gave it, once.
        None => unsafe { libc::free(page) },
    });
}

/// Zeroed memory; null if it is short.
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

/// Gives an array back; null is none. An arena's come back when it is restored or dropped: the
/// core makes them when a device is made or mounted.
#[unsafe(no_mangle)]
unsafe extern "C" fn ftl_free_array(array: *mut c_void) {
    current(|arena| {
        if arena.is_none() {
            // SAFETY: the core gives back what `ftl_alloc_array` gave it, once.
            unsafe { libc::free(array) };
        }
    });
}
