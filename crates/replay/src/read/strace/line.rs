//! Parser of a line of strace's output: the thread, the time and the call.

use super::super::{decimal, seconds};

/// A line, parsed as far as that is possible without the lines before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Number of the thread; empty where strace follows only one.
    pub(super) thread: &'a str,
    pub(super) time: Time,
    pub(super) what: What<'a>,
}

/// The time before a call, by the option that made strace print it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// `-ttt`: nanoseconds since 1970.
    Absolute(u64),
    /// `-t` and `-tt`: nanoseconds since midnight.
    OfDay(u64),
    /// `-r`: nanoseconds since the line before.
    Relative(u64),
    /// No such option.
    None,
}

/// What the line tells of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What<'a> {
    /// A signal, an exit, or a message of strace itself.
    Remark,
    /// A whole call: `NAME(ARGUMENTS) = RESULT`.
    Call(&'a str),
    /// The begin of a call that another thread's line interrupted.
    Unfinished(&'a str),
    /// The rest of a call that was interrupted.
    Resumed { name: &'a str, text: &'a str },
}

const UNFINISHED: &str = "<unfinished ...>";
const RESUMED: &str = " resumed>";

/// Prefixes of strace's own messages, and of the frames that `-k` prints below a call.
const OWN: [&str; 5] = ["strace: ", "[ Process PID=", "Process ", "> ", "?? "];

/// The end of what strace says of a process that it follows from now on. Where both go to the same
/// terminal, it may come in the middle of the call that made the process.
const ATTACHED: &str = " attached";

/// The begin of a call that a message of strace's interrupts; None for any other line.
pub(super) fn before_message(line: &str) -> Option<&str> {
    let message = line.strip_suffix(ATTACHED)?;
    let (begun, number) = message.rsplit_once("Process ")?;
    let begun = begun.strip_suffix("strace: ").unwrap_or(begun);
    let is_number = !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit());
    (is_number && begun.contains('(')).then_some(begun)
}

/// Whether the line may go on where a message has interrupted it, and begins no call.
pub(super) fn is_rest(line: &str) -> bool {
    [",", ")", "=>", "}", UNFINISHED]
        .iter()
        .any(|it| line.starts_with(it))
}

/// A smaller time is one of `-r`, and not one since 1970. This is in 1973.
const EARLIEST_NS: u64 = 100_000_000 * 1_000_000_000;

/// Threads have no larger numbers (PID_MAX_LIMIT in include/linux/threads.h); times since 1970 are
/// larger.
const THREAD_LIMIT: u64 = 1 << 22;

/// # Errors
/// A sentence that says why it is not a line of strace.
pub(super) fn parse(line: &str) -> Result<Line<'_>, String> {
    let is_own = |line: &str| OWN.iter().any(|it| line.starts_with(it));
    if !line.starts_with(|it: char| it.is_ascii_digit()) && is_own(line) {
        return Ok(Line {
            thread: "",
            time: Time::None,
            what: What::Remark,
        });
    }
    let (thread, rest) = thread(line)?;
    let (time, rest) = time(rest)?;
    let rest = without_address(rest);
    Ok(Line {
        thread,
        time,
        what: what(rest)?,
    })
}

fn what(rest: &str) -> Result<What<'_>, String> {
    if rest.starts_with("+++ ") || rest.starts_with("--- ") {
        return Ok(What::Remark);
    }
    if let Some(resumed) = rest.strip_prefix("<... ") {
        let (name, text) = resumed
            .split_once(RESUMED)
            .ok_or("it goes on with nothing")?;
        // The call was interrupted a second time.
        return match text.trim_end().strip_suffix(UNFINISHED) {
            Some(_) => Err("a call goes on and does not end".to_owned()),
            None => Ok(What::Resumed { name, text }),
        };
    }
    Ok(match rest.strip_suffix(UNFINISHED) {
        Some(text) => What::Unfinished(text),
        None => What::Call(rest),
    })
}

/// Whether a line without a thread or a time is a call, which any text before a bracket is not.
pub(super) fn is_call(text: &str) -> bool {
    let name = text.split('(').next().unwrap_or_default();
    let is_name = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'_';
    let has_end = text.contains(" = ") || text.ends_with(UNFINISHED);
    has_end && name.len() < text.len() && !name.is_empty() && name.bytes().all(is_name)
}

/// Splits off the thread: `[pid  123] …`, `[pid 123<name>] …`, `123 …`, `123<name> …`, or nothing.
fn thread(line: &str) -> Result<(&str, &str), String> {
    if let Some(rest) = line.strip_prefix("[pid") {
        let (number, rest) = rest.split_once(']').ok_or("its [pid has no end")?;
        return Ok((number_of(number.trim())?, rest.trim_start()));
    }
    let Some((first, rest)) = first_word(line) else {
        return Ok(("", line));
    };
    if decimal(first).is_some_and(|it| it <= THREAD_LIMIT) {
        return Ok((first, rest.trim_ascii_start()));
    }
    // `-Y` adds the name of the thread, which may have blanks.
    if let Some((number, _)) = first.split_once('<')
        && number.bytes().all(|it| it.is_ascii_digit())
        && !number.is_empty()
    {
        let (_, rest) = line
            .split_once("> ")
            .ok_or("its name of a thread has no end")?;
        return Ok((number_of(number)?, rest.trim_start()));
    }
    match first.contains('(') || is_time(first) || first.starts_with(['[', '<', '+', '-']) {
        true => Ok(("", line)),
        false => Err(format!("'{first}' is no number of a thread")),
    }
}

/// The text before and after the first blank.
fn first_word(text: &str) -> Option<(&str, &str)> {
    let end = memchr::memchr(b' ', text.as_bytes())?;
    Some((&text[..end], &text[end + 1..]))
}

fn is_time(text: &str) -> bool {
    text.bytes()
        .all(|it| it.is_ascii_digit() || b".:".contains(&it))
}

/// The number of `123` and `123<name>`.
fn number_of(text: &str) -> Result<&str, String> {
    let number = text.split('<').next().unwrap_or_default();
    match number.bytes().all(|it| it.is_ascii_digit()) && !number.is_empty() && number.len() < 11 {
        true => Ok(number),
        false => Err(format!("'{text}' is no number of a thread")),
    }
}

/// Splits off the time. `-r` beside `-t` prints a second one in brackets, which says no more.
fn time(text: &str) -> Result<(Time, &str), String> {
    if !text.starts_with(|it: char| it.is_ascii_digit()) {
        return Ok((Time::None, text));
    }
    let (first, rest) = first_word(text).unwrap_or((text, ""));
    let known = match seconds(first) {
        Some(ns) if ns < EARLIEST_NS => Some(Time::Relative(ns)),
        Some(ns) => Some(Time::Absolute(ns)),
        None if !is_time(first) => return Ok((Time::None, text)),
        None => of_day(first).map(Time::OfDay),
    };
    let time = known.ok_or_else(|| format!("'{first}' is no time"))?;
    let rest = rest.trim_ascii_start();
    let rest = match rest.strip_prefix("(+") {
        Some(rest) => rest
            .split_once(')')
            .ok_or("its (+ has no end")?
            .1
            .trim_start(),
        None => rest,
    };
    Ok((time, rest))
}

/// `07:52:41.138257` → nanoseconds since midnight.
fn of_day(text: &str) -> Option<u64> {
    let (hours, rest) = text.split_once(':')?;
    let (minutes, rest) = rest.split_once(':')?;
    let (hours, minutes) = (decimal(hours)?, decimal(minutes)?);
    let seconds_ns = seconds(rest)?;
    let is_of_day = hours < 24 && minutes < 60 && seconds_ns < 61_000_000_000;
    is_of_day.then(|| (hours * 60 + minutes) * 60_000_000_000 + seconds_ns)
}

/// Without the instruction's address (`-i`) and the call's number (`-n`), in square brackets.
fn without_address(text: &str) -> &str {
    let mut rest = text;
    while let Some((inner, after)) = rest.strip_prefix('[').and_then(|it| it.split_once(']')) {
        if !inner
            .trim()
            .bytes()
            .all(|it| it.is_ascii_hexdigit() || it == b'?')
        {
            break;
        }
        rest = after.trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_strace_puts_before_a_call_is_told_apart() {
        let call = What::Call("close(3) = 0");
        for (line, thread, time) in [
            ("close(3) = 0", "", Time::None),
            ("12 close(3) = 0", "12", Time::None),
            ("[pid    12] close(3) = 0", "12", Time::None),
            (
                "[pid 12<my app>] 1700000000.5 close(3) = 0",
                "12",
                Time::Absolute(1_700_000_000_500_000_000),
            ),
            (
                "12<my app> 1700000000.5 close(3) = 0",
                "12",
                Time::Absolute(1_700_000_000_500_000_000),
            ),
            ("00:00:01 close(3) = 0", "", Time::OfDay(1_000_000_000)),
            (
                "12 01:00:00.000001 close(3) = 0",
                "12",
                Time::OfDay(3_600_000_001_000),
            ),
            ("0.000123 close(3) = 0", "", Time::Relative(123_000)),
            (
                "12      0.000123 close(3) = 0",
                "12",
                Time::Relative(123_000),
            ),
            (
                "01:00:00 (+     0.000000) close(3) = 0",
                "",
                Time::OfDay(3_600_000_000_000),
            ),
            ("[00007f1d9cdc8d71] close(3) = 0", "", Time::None),
            (
                "12 [   3] [00007f1d9cdc8d71] close(3) = 0",
                "12",
                Time::None,
            ),
        ] {
            let what = call.clone();
            assert_eq!(parse(line), Ok(Line { thread, time, what }), "{line}");
        }
        for line in [
            "25:00:00 close(3) = 0",
            "x 1.5 close(3) = 0",
            "1.2.3 close(3) = 0",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
