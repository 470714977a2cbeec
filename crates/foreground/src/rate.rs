//! Limit of requests by user: each change of the foreground costs the kernel milliseconds, and one
//! daemon serves all users.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Shortest mean interval of a user's requests. A desktop may report each step of a moved window.
const EACH: Duration = Duration::from_millis(50);

/// Most requests in a burst.
const BURST: u32 = 40;

/// Most users that are remembered. Forgetting an idle user changes nothing.
const MOST_USERS: usize = 1024;

/// For each user, the time at which all past requests would have been served at the rate.
#[derive(Debug, Default)]
pub struct Rates {
    served_at: HashMap<u32, Instant>,
}

impl Rates {
    /// Whether this user's next request may be served now.
    pub fn allow(&mut self, user: u32, now: Instant) -> bool {
        if self.served_at.len() >= MOST_USERS {
            self.served_at.retain(|_, at| *at > now);
        }
        let at = self.served_at.entry(user).or_insert(now);
        let next = (*at).max(now) + EACH;
        let is_served = next <= now + EACH * BURST;
        if is_served {
            *at = next;
        }
        is_served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_asks_without_end_is_served_at_a_rate_and_others_are_too() {
        let mut rates = Rates::default();
        let begun = Instant::now();
        let allowed =
            |rates: &mut Rates, user, ms| rates.allow(user, begun + Duration::from_millis(ms));
        let served = (0..10_000)
            .filter(|ms| allowed(&mut rates, 1000, *ms))
            .count();
        assert!((200..=240).contains(&served), "{served} in ten seconds");
        assert!(allowed(&mut rates, 1001, 10_000));
        // After a pause, requests are served again.
        assert!(allowed(&mut rates, 1000, 10_100));
        for user in 0..5000 {
            allowed(&mut rates, user, 20_000 + 100 * u64::from(user));
        }
        assert!(rates.served_at.len() <= MOST_USERS);
    }
}
