//! Help of the options that take a device.

use ::lab::Sources;

/// Values of the option.
pub(crate) fn values() -> String {
    let names = Sources::embedded().device_names();
    format!(
        "{}, or the path of a profile that ends in .toml",
        names.join(", ")
    )
}

/// The same, where a device's past may be left out.
pub(crate) fn values_or_fresh() -> String {
    values() + ". Append `:fresh` for a device that is not aged"
}
