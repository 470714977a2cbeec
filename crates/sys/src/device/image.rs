//! Loading of an aged state into a simflash device (`kernel/simflash/simflash_ioctl.h`).

use crate::device::janus::{VERSION, request};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// `SIMFLASH_REASON_BYTES`: size of the text that says why an image is refused.
const REASON_BYTES: usize = 128;

/// `struct simflash_image`, the argument of the ioctl.
#[repr(C)]
struct Image {
    version: u32,
    unused: u32,
    image: u64,
    bytes: u64,
    reason: [u8; REASON_BYTES],
}

const IOC_IMAGE: libc::c_ulong = request::<Image>(9);

/// Loads the state in `image` into `device`, whose data are lost.
///
/// # Errors
/// The device's error, with its reason for an image that it refuses. An image of another device, or
/// a damaged one, changes nothing.
pub fn load_image(device: &File, image: &[u8]) -> io::Result<()> {
    let mut arg = Image {
        version: VERSION,
        unused: 0,
        image: image.as_ptr() as u64,
        bytes: image.len() as u64,
        reason: [0; REASON_BYTES],
    };
    // SAFETY: the device reads and writes one `struct simflash_image`, and reads the image, which
    // lives until the call returns.
    match unsafe { libc::ioctl(device.as_raw_fd(), IOC_IMAGE as _, &mut arg) } {
        0 => Ok(()),
        _ => Err(refusal(io::Error::last_os_error(), &arg.reason)),
    }
}

fn refusal(error: io::Error, reason: &[u8]) -> io::Error {
    let reason = reason.split(|byte| *byte == 0).next().unwrap_or_default();
    match reason.is_empty() {
        true => error,
        false => io::Error::new(error.kind(), String::from_utf8_lossy(reason).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_that_of_the_header() {
        // _IOWR(0xf5, 9, 152 bytes).
        assert_eq!(IOC_IMAGE, 0xc098_f509);
    }

    #[test]
    fn a_reason_takes_the_place_of_the_number() {
        let mut reason = [0; REASON_BYTES];
        let error = || io::Error::from_raw_os_error(libc::EINVAL);
        assert_eq!(refusal(error(), &reason).raw_os_error(), Some(libc::EINVAL));
        reason[..4].copy_from_slice(b"why.");
        assert_eq!(refusal(error(), &reason).to_string(), "why.");
    }
}
