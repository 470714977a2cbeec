//! Arguments of `record` and `top`: whose waits are reported, and for how long.

use iopro::capture::What;
use std::path::PathBuf;
use std::time::Duration;

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
    /// Command and its arguments, until it ends
    #[arg(last = true, group = "what")]
    command: Vec<String>,
}

impl ScopeArgs {
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
