//! The six apps of the dissertation's table 7, by the data that they leave on flash.
//!
//! Table 7 gives their use but not the bytes that they write. The sizes here are those of the apps
//! on a phone of 32 GB, in thousandths of its capacity. Frequencies are chosen so that chat and
//! mail change databases most, and the web changes caches most.

/// Data of an app, and its use in a session of ten minutes.
#[derive(Clone, Copy, Debug)]
pub struct App {
    /// Name of the app and of its directory.
    pub name: &'static str,
    /// Size of the package, which each update replaces, in thousandths of the capacity.
    pub package_permille: u64,
    /// Final size of the database, in thousandths of the capacity.
    pub database_permille: u64,
    /// Final size of the cache of network data, in thousandths of the capacity.
    pub cache_permille: u64,
    /// Number of transactions in a session.
    pub transactions: u64,
    /// Number of files that a session adds to the cache.
    pub cached: u64,
}

/// The apps in the order of table 7.
pub const APPS: [App; 6] = [
    app("chrome", 5, 3, 16, 6, 10),
    app("messenger", 3, 6, 6, 14, 3),
    app("gmail", 3, 6, 5, 12, 3),
    app("facebook", 5, 5, 12, 8, 8),
    app("twitter", 4, 5, 10, 8, 7),
    app("game", 20, 2, 5, 5, 2),
];

const fn app(
    name: &'static str,
    package_permille: u64,
    database_permille: u64,
    cache_permille: u64,
    transactions: u64,
    cached: u64,
) -> App {
    App {
        name,
        package_permille,
        database_permille,
        cache_permille,
        transactions,
        cached,
    }
}
