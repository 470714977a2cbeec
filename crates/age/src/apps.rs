//! The six apps of the dissertation's table 7, as what they leave on flash.
//!
//! Table 7 says what was done with them, and not how much they wrote. The sizes here are such as
//! these apps have on a phone of 32 GB, in thousandths of it; how often they write is chosen, so
//! that databases are changed most by chat and mail, and caches by the web.

/// What an app keeps and how it is used for ten minutes.
#[derive(Clone, Copy, Debug)]
pub struct App {
    /// Its name.
    pub name: &'static str,
    /// The package, replaced at each update, in thousandths of the capacity.
    pub package_permille: u64,
    /// The database when it has grown up.
    pub database_permille: u64,
    /// What is kept of the network.
    pub cache_permille: u64,
    /// Transactions a session.
    pub transactions: u64,
    /// Files cached a session.
    pub cached: u64,
}

/// In table 7's order.
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
