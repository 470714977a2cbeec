//! The scheduler's declarations made from pretended and real kernels, and policies set.

mod generate;
mod image;
mod kernel;
mod policy;
mod running;
