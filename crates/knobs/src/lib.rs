//! Every change to a running system: set, reason, journal, restore.
