//! Images of a device's flash without the data (`kernel/simflash/ftl/image.c`).

use super::arena::enter;
use super::{Flash, raw};
use std::ffi::CStr;

/// State of a device's flash. It can be loaded into a new device of the same shape, here or in a
/// kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image(Vec<u64>);

impl Image {
    /// The image as the kernel module reads it.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }
}

impl Flash {
    /// Takes an image of the device.
    ///
    /// # Errors
    /// A sentence of the core: the device must be idle, and no page may be remapped.
    pub fn image(&self) -> Result<Image, String> {
        // SAFETY: the device lives as long as `self`.
        let bytes = unsafe { raw::ftl_image_bytes(self.ftl.as_ptr()) };
        let mut words = vec![0; bytes / size_of::<u64>()];
        // SAFETY: the memory is as large as the core said, and aligned to 8 bytes.
        let said =
            unsafe { raw::ftl_image_save(self.ftl.as_ptr(), words.as_mut_ptr().cast(), bytes) };
        sentence(said).map(|()| Image(words))
    }

    /// Loads an image into a device that was not used yet.
    ///
    /// # Errors
    /// A sentence of the core, such as that the image is of another device. The device is not
    /// changed.
    pub fn load(&mut self, image: &Image) -> Result<(), String> {
        let bytes = size_of_val(image.0.as_slice());
        let _memory = enter(self.arena.as_deref_mut());
        // SAFETY: the image is read only, as far as it is long, and aligned to 8 bytes.
        let said =
            unsafe { raw::ftl_image_load(self.ftl.as_ptr(), image.0.as_ptr().cast(), bytes) };
        sentence(said)
    }
}

fn sentence(said: *const std::ffi::c_char) -> Result<(), String> {
    if said.is_null() {
        return Ok(());
    }
    // SAFETY: it is not null, and a static string.
    let said = unsafe { CStr::from_ptr(said) };
    Err(said.to_string_lossy().into_owned())
}
