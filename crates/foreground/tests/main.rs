//! The crate as its users see it, on pretended machines, displays and compositors.

mod android;
mod applied;
mod arbiter;
mod compositor;
mod cosmic;
mod desk;
mod desktops;
mod server;
mod system;
mod undone;
mod wayland;
mod x11;
