//! Parser of a line of strace's output: the thread, the time and the call.

use super::super::seconds;

/// A line, parsed as far as that is possible without the lines before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A signal, an exit, or a message of strace itself.
    Remark,
    /// A whole call: `NAME(ARGUMENTS) = RESULT`.
    Call {
        thread: &'a str,
        time_ns: u64,
        text: &'a str,
    },
    /// The begin of a call that another thread's line interrupted.
    Unfinished {
        thread: &'a str,
        time_ns: u64,
        text: &'a str,
    },
    /// The rest of a call that was interrupted.
    Resumed {
        thread: &'a str,
        name: &'a str,
        text: &'a str,
    },
}

const UNFINISHED: &str = "<unfinished ...>";
const RESUMED: &str = " resumed>";

/// Prefixes of strace's own messages.
const OWN: [&str; 2] = ["strace: ", "[ Process PID="];

/// A smaller time is not one of `-ttt`: `-r` and `-t` print less. This is in 1973.
const EARLIEST_NS: u64 = 100_000_000 * 1_000_000_000;

/// # Errors
/// A sentence that says why it is not a line of strace.
pub(super) fn parse(line: &str) -> Result<Line<'_>, String> {
    if OWN.iter().any(|it| line.starts_with(it)) {
        return Ok(Line::Remark);
    }
    let (thread, rest) = thread(line)?;
    let (time, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let time_ns = seconds(time).filter(|it| time.contains('.') && *it >= EARLIEST_NS);
    let time_ns = time_ns.ok_or("it has no time since 1970: record with strace -f -ttt -T -y")?;
    let rest = rest.trim_start();
    if rest.starts_with("+++ ") || rest.starts_with("--- ") {
        return Ok(Line::Remark);
    }
    if let Some(resumed) = rest.strip_prefix("<... ") {
        let (name, text) = resumed
            .split_once(RESUMED)
            .ok_or("it goes on with nothing")?;
        // The call was interrupted a second time.
        return match text.trim_end().strip_suffix(UNFINISHED) {
            Some(_) => Err("a call goes on and does not end".to_owned()),
            None => Ok(Line::Resumed { thread, name, text }),
        };
    }
    Ok(match rest.strip_suffix(UNFINISHED) {
        Some(text) => Line::Unfinished {
            thread,
            time_ns,
            text,
        },
        None => Line::Call {
            thread,
            time_ns,
            text: rest,
        },
    })
}

/// Splits off the thread: `[pid  123] …`, `123 …`, or nothing.
fn thread(line: &str) -> Result<(&str, &str), String> {
    if let Some(rest) = line.strip_prefix("[pid") {
        let (number, rest) = rest.split_once(']').ok_or("its [pid has no end")?;
        return Ok((digits(number.trim())?, rest.trim_start()));
    }
    match line.split_once(' ') {
        Some((first, rest)) if !first.is_empty() && !first.contains('.') => {
            Ok((digits(first)?, rest.trim_start()))
        }
        _ => Ok(("", line)),
    }
}

fn digits(text: &str) -> Result<&str, String> {
    match text.bytes().all(|it| it.is_ascii_digit()) && !text.is_empty() && text.len() < 11 {
        true => Ok(text),
        false => Err(format!("'{text}' is no number of a thread")),
    }
}
