//! Guest image, QEMU, running experiments.
