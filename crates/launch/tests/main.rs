//! Profiles and plans of what an app reads at its start, as those that use the crate see them.

mod layout;
mod pad;
mod profile;
