//! Makes the private block-layer declarations from the target kernel's BTF.
