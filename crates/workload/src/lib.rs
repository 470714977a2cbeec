//! M1-M5, scenarios, background loads and latency recording.
