//! The load `unpack`: an archive becomes small files, and `syncfs` makes all of them durable.

use crate::background::{Pattern, Script, Shared, succeeded, write_to};
use crate::load::make_directory;
use crate::sizes::Size;
use std::ffi::CStr;
use std::os::fd::AsRawFd;
use sys::device::PAGE_BYTES;

/// Size of all files of the archive.
const UNPACKED_BYTES: Size = Size {
    demo: 32 << 20,
    full: 256 << 20,
    least: 1 << 20,
    tiny: 256 << 10,
};

/// Largest file of an archive, in pages.
const UNPACKED_FILE_PAGES: u64 = 16;

pub(crate) const UNPACK: Pattern = Pattern {
    bytes: |sizes| sizes.pick(UNPACKED_BYTES),
    is_steady: true,
    has_an_end: false,
    make: |path, _, _, _| make_directory(path),
    perform: unpack_for_ever,
};

/// Writes small files until they have the archive's size, syncs them all at once, and removes
/// them.
fn unpack_for_ever(script: &mut Script, shared: &Shared) -> Result<(), i32> {
    loop {
        let (mut files, mut bytes) = (0, 0);
        while bytes < script.file_bytes {
            let file = script.open_in(FileName::of(files).as_c_str(), UNPACKED_FLAGS)?;
            let size = (1 + script.random.below(UNPACKED_FILE_PAGES)) * PAGE_BYTES as u64;
            bytes += write_to(&file, &script.data[..size as usize], 0, shared)?;
            files += 1;
        }
        // SAFETY: our own descriptor.
        succeeded(unsafe { libc::syncfs(script.file.as_raw_fd()) } as isize)?;
        for number in 0..files {
            script.unlink_in(FileName::of(number).as_c_str())?;
        }
    }
}

const UNPACKED_FLAGS: libc::c_int = libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC;

/// Decimal digits of a number, formatted without a heap.
struct FileName([u8; 11]);

impl FileName {
    fn of(mut number: u32) -> Self {
        let mut name = *b"0000000000\0";
        for digit in name[..10].iter_mut().rev() {
            *digit += (number % 10) as u8;
            number /= 10;
        }
        FileName(name)
    }

    fn as_c_str(&self) -> &CStr {
        // The last byte stays 0.
        CStr::from_bytes_until_nul(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_name_of_ten_digits() {
        assert_eq!(FileName::of(0).as_c_str(), c"0000000000");
        assert_eq!(FileName::of(u32::MAX).as_c_str(), c"4294967295");
    }
}
