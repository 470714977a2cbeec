//! Running the host's programs.

use crate::Error;
use std::process::{Command, Stdio};

/// Runs `command` of the Debian package `package` and gives its output; a
/// failure is an error with what it said.
pub fn output(command: &mut Command, package: &'static str) -> Result<String, Error> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let done = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::NoTool {
            tool: tool.clone(),
            package,
            source,
        })?;
    if !done.status.success() {
        return Err(Error::Tool {
            tool,
            output: said(&done.stderr),
        });
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// The first line of what `tool --version` prints.
pub fn version(tool: &str, package: &'static str) -> Result<String, Error> {
    let text = output(Command::new(tool).arg("--version"), package)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

/// Error output without apt's warnings.
fn said(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    text.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("W:"))
        .collect::<Vec<_>>()
        .join("; ")
}
