//! Arguments of `record`: whose waits are reported, and for how long.

use crate::exit::{Exit, Failure};
use iopro::capture::What;
use module::abi::{btf_section, check_running};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::PathError;

#[derive(clap::Args)]
pub struct ScopeArgs {
    /// Process, until it ends
    #[arg(short, long, group = "what", value_name = "PID")]
    pid: Option<u32>,
    /// Cgroup, until Ctrl-C: a path below the hierarchy's root, such as user.slice
    #[arg(long, group = "what", value_name = "PATH")]
    cgroup: Option<PathBuf>,
    /// Whole system for this time, such as 30s or 5m; without a time until Ctrl-C
    #[arg(long, group = "what", value_name = "DURATION", num_args = 0..=1, value_parser = duration)]
    system: Option<Option<Duration>>,
    /// Type information of this kernel, for one that has none itself: BTF, a vmlinux or a vmlinuz.
    /// Only tracepoints are used then, which see less
    #[arg(long, value_name = "FILE")]
    btf: Option<PathBuf>,
    /// Command and its arguments, until it ends
    #[arg(last = true, group = "what")]
    command: Vec<String>,
}

impl ScopeArgs {
    /// Raw BTF of the running kernel, if its file is given.
    pub fn btf(&self) -> Result<Option<Vec<u8>>, Failure> {
        self.btf.as_deref().map(running_btf).transpose()
    }

    /// The chosen scope; the whole system if none was chosen.
    pub fn what(self) -> What {
        if let Some(pid) = self.pid {
            return What::Process(pid);
        }
        if let Some(path) = self.cgroup {
            return What::Cgroup(path);
        }
        match self.command.is_empty() {
            true => What::System(self.system.flatten()),
            false => What::Command(self.command),
        }
    }
}

/// The running kernel's BTF in a file that the user gave.
pub fn running_btf(path: &Path) -> Result<Vec<u8>, Failure> {
    let read = |path: &Path| fs::read(path).map_err(PathError::of("access", path));
    let file = read(path).map_err(|error| Failure::new((&error.source).into(), error))?;
    let symbols = read(Path::new("/proc/kallsyms")).unwrap_or_default();
    let symbols = String::from_utf8_lossy(&symbols);
    let wrong = |error| {
        let sentence = format!("{}: {error}", path.display());
        Failure::new(Exit::Unsupported, sentence)
    };
    // A boot image takes a while to unpack.
    let btf = btf_section(&file).map_err(wrong)?;
    check_running(&btf, &symbols).map_err(wrong)?;
    Ok(btf.into_owned())
}

/// Parses a time with its unit (s, m, h), or in seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "give a time such as 30s, 5m or 1h".to_owned();
    let digits = text.trim_end_matches(char::is_alphabetic);
    let seconds = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    let seconds = number.checked_mul(seconds).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        assert_eq!(duration("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("30"), Ok(Duration::from_secs(30)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        for wrong in ["", "s", "3 days", "1.5s", "-1s", "99999999999999999999h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
