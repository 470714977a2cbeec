//! The scheduler module from user space: build, enable, disable, counters.
