//! A block device as the other crates need it: identity and queue.
