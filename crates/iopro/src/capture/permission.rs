//! Capabilities that tracing programs take, and the reason of a refusal.

use super::Error;
use std::fs;

/// Capabilities that loading takes: the first two together, or the last one alone.
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;
const CAP_SYS_ADMIN: u64 = 1 << 21;

/// The error for a kernel that refused a program with EPERM.
pub fn why_refused() -> Error {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !may_load(&status) {
        return Error::NoPermission;
    }
    let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    Error::Refused {
        reason: reason(&lockdown),
    }
}

fn may_load(status: &str) -> bool {
    let line = status.lines().find_map(|it| it.strip_prefix("CapEff:"));
    let effective = line.and_then(|it| u64::from_str_radix(it.trim(), 16).ok());
    effective.is_some_and(|it| {
        it & CAP_SYS_ADMIN != 0 || it & (CAP_BPF | CAP_PERFMON) == CAP_BPF | CAP_PERFMON
    })
}

fn reason(lockdown: &str) -> &'static str {
    match lockdown.contains("[confidentiality]") {
        true => "it is locked down for confidentiality",
        false => "a container, a sandbox or a security module forbids them",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_of_a_container_is_told_apart_from_a_user() {
        assert!(may_load("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(may_load("CapEff:\t000000c000000000\n"));
        assert!(!may_load("CapEff:\t0000000000000000\n"));
        assert!(!may_load("CapEff:\t0000008000000000\n"));
        assert!(!may_load(""));
    }

    #[test]
    fn lockdown_is_named() {
        assert!(reason("none integrity [confidentiality]").contains("locked down"));
        assert!(reason("[none] integrity confidentiality").contains("sandbox"));
        assert!(reason("").contains("sandbox"));
    }
}
