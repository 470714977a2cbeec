//! Parser of a call in strace's output: `NAME(ARGUMENT, …) = RESULT <SECONDS>`.

use super::super::{decimal, seconds};
use smallvec::SmallVec;

/// A call, split into its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Parts<'a>,
    pub(super) result: Outcome<'a>,
    pub(super) took_ns: u64,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome<'a> {
    /// A number; with the path of the file if it is a descriptor and strace names it (`-y`).
    Number(i64, Name<'a>),
    /// An error of the call.
    Failed,
    /// strace does not know the result and prints `?`.
    Unknown,
}

/// Parses a call without the thread and the time before it.
///
/// # Errors
/// A sentence that names the missing part.
pub(super) fn parse(text: &str) -> Result<Call<'_>, String> {
    let open = text
        .bytes()
        .position(|it| it == b'(')
        .ok_or("it has no call")?;
    let (name, rest) = (&text[..open], &text[open + 1..]);
    let is_name = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
    if name.is_empty() || !name.bytes().all(is_name) {
        return Err(format!("'{name}' is no name of a call"));
    }
    if let (false, Some(result)) = (needs_arguments(name), last_result(rest)) {
        let (result, took_ns) = duration(result.trim_ascii())?;
        if let Ok(result) = outcome(result) {
            return Ok(Call {
                name,
                arguments: Parts::new(),
                result,
                took_ns,
            });
        }
    }
    let (arguments, rest) = parts(rest, b')')?;
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix('=').ok_or("it has no result")?;
    let (result, took_ns) = duration(rest.trim_ascii())?;
    Ok(Call {
        name,
        arguments,
        result: outcome(result)?,
        took_ns,
    })
}

/// The text after the last `) = `, which is the result of a call whose arguments are of no interest.
fn last_result(text: &str) -> Option<&str> {
    let at = memchr::memrchr(b'=', text.as_bytes())?;
    let before = text[..at].strip_suffix(' ')?.trim_ascii_end();
    before.ends_with(')').then(|| &text[at + 1..])
}

/// Whether arguments of a call matter: it moves data, or changes names or what descriptors mean. Of all
/// others only the name and the result are looked at.
fn needs_arguments(name: &str) -> bool {
    !matches!(
        name,
        "access"
            | "arch_prctl"
            | "brk"
            | "clock_gettime"
            | "clock_nanosleep"
            | "epoll_ctl"
            | "epoll_pwait"
            | "epoll_wait"
            | "exit"
            | "exit_group"
            | "faccessat"
            | "faccessat2"
            | "fstat"
            | "fstat64"
            | "fstatfs"
            | "futex"
            | "getcwd"
            | "getdents64"
            | "getpid"
            | "getrandom"
            | "getrlimit"
            | "getsockname"
            | "getsockopt"
            | "gettid"
            | "lstat"
            | "madvise"
            | "mprotect"
            | "nanosleep"
            | "newfstatat"
            | "poll"
            | "ppoll"
            | "prctl"
            | "prlimit64"
            | "readlink"
            | "readlinkat"
            | "recvfrom"
            | "recvmsg"
            | "rseq"
            | "rt_sigaction"
            | "rt_sigprocmask"
            | "rt_sigreturn"
            | "sched_yield"
            | "select"
            | "sendmsg"
            | "sendto"
            | "set_robust_list"
            | "set_tid_address"
            | "setsockopt"
            | "stat"
            | "stat64"
            | "statfs"
            | "statx"
            | "uname"
            | "wait4"
    )
}

/// Parts of a text. Few calls have more arguments than have room here without an allocation.
pub(super) type Parts<'a> = SmallVec<[&'a str; 6]>;

/// Bytes at which [`parts`] has something to do.
const SPECIAL: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"\"/<([{)]},";
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = true;
        at += 1;
    }
    table
};

/// Splits text up to the bracket that closes it at commas that are in no bracket, string or name of
/// a file. Returns the parts and the text after the bracket.
///
/// # Errors
/// A sentence that says what has no end.
pub(super) fn parts(text: &str, closing: u8) -> Result<(Parts<'_>, &str), String> {
    let bytes = text.as_bytes();
    let (mut parts, mut begin, mut at) = (Parts::new(), 0, 0);
    // The closing bracket of each open one.
    let mut open: Vec<u8> = Vec::new();
    while at < bytes.len() {
        if !SPECIAL[usize::from(bytes[at])] {
            at += 1;
            continue;
        }
        match bytes[at] {
            b'"' => at = end_of_string(bytes, at).ok_or("a string of it has no end")?,
            b'/' if bytes[at..].starts_with(b"/*") => {
                at += text[at..].find("*/").ok_or("a remark in it has no end")? + 1;
            }
            b'<' if is_name(&bytes[..at]) => {
                at = end_of_name(bytes, at).ok_or("a name in it has no end")?;
            }
            b'(' => open.push(b')'),
            b'[' => open.push(b']'),
            b'{' => open.push(b'}'),
            last if last == closing && open.is_empty() => {
                let last = text[begin..at].trim_ascii();
                if !last.is_empty() || !parts.is_empty() {
                    parts.push(last);
                }
                return Ok((parts, &text[at + 1..]));
            }
            b',' if open.is_empty() => {
                parts.push(text[begin..at].trim_ascii());
                begin = at + 1;
            }
            closing @ (b')' | b']' | b'}') if open.pop() != Some(closing) => {
                return Err("its brackets do not match".to_owned());
            }
            _ => {}
        }
        at += 1;
    }
    Err("it has no end".to_owned())
}

/// Index of the closing quote of the string that begins at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = at + 1;
    // strace cuts strings after 32 characters, many of which are escapes.
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Whether a `<` after `before` opens the name of a descriptor's file.
fn is_name(before: &[u8]) -> bool {
    before.ends_with(b"AT_FDCWD") || before.last().is_some_and(u8::is_ascii_digit)
}

/// Index of the `>` that closes the name that begins at `at`. Names of sockets have arrows in them.
fn end_of_name(bytes: &[u8], at: usize) -> Option<usize> {
    let first = at + memchr::memchr(b'>', &bytes[at..])?;
    let name = &bytes[at + 1..first];
    let is_socket = !name.starts_with(b"/") && name.windows(2).any(|it| it == b":[");
    if !is_socket || bytes[first - 1] == b']' {
        return Some(first);
    }
    let end = bytes[first..].windows(2).position(|it| it == b"]>")?;
    Some(first + end + 1)
}

/// Splits off the duration in nanoseconds, as in `RESULT <0.000012>`; 0 without one.
fn duration(text: &str) -> Result<(&str, u64), String> {
    let Some(inner) = text.strip_suffix('>') else {
        return Ok((text, 0));
    };
    let Some(open) = memchr::memrchr(b'<', inner.as_bytes()) else {
        return Ok((text, 0));
    };
    let (result, took) = (&inner[..open], &inner[open + 1..]);
    match seconds(took) {
        Some(took_ns) => Ok((result.trim_ascii_end(), took_ns)),
        // The angle brackets hold the name of a file.
        None => Ok((text, 0)),
    }
}

fn outcome(text: &str) -> Result<Outcome<'_>, String> {
    if text.starts_with('?') {
        return Ok(Outcome::Unknown);
    }
    let end = text.bytes().position(|it| it == b' ' || it == b'<');
    let end = end.unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let value = match number.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).map(|it| it as i64),
        None => match decimal(number) {
            Some(value) => Ok(value as i64),
            None => number.parse(),
        },
    };
    let value = value.map_err(|_| format!("'{number}' is no result"))?;
    if value < 0 {
        return Ok(Outcome::Failed);
    }
    Ok(Outcome::Number(value, named(rest)))
}

/// The name that `-y` gives a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name<'a> {
    /// It has none: strace ran without `-y`.
    None,
    /// Path of a file, as strace escapes it.
    Path(&'a str),
    /// A socket, a pipe or another thing that is no file.
    NoFile,
}

/// The path in `</path>`.
fn named(text: &str) -> Name<'_> {
    let Some(name) = text.strip_prefix('<') else {
        return Name::None;
    };
    match name.starts_with('/') {
        true => Name::Path(&name[..memchr::memchr(b'>', name.as_bytes()).unwrap_or(name.len())]),
        false => Name::NoFile,
    }
}

impl Name<'_> {
    /// The path, if it is one.
    pub(super) fn path(self) -> Option<Vec<u8>> {
        match self {
            Name::Path(path) => Some(unescape(path)),
            Name::None | Name::NoFile => None,
        }
    }
}

impl<'a> Call<'a> {
    /// The text of an argument.
    ///
    /// # Errors
    /// The call has fewer arguments.
    pub(super) fn argument(&self, index: usize) -> Result<&'a str, String> {
        let argument = self.arguments.get(index).copied();
        argument.ok_or_else(|| format!("{} has too few arguments", self.name))
    }

    /// The value of a numeric argument.
    ///
    /// # Errors
    /// The argument is not a number.
    pub(super) fn number(&self, index: usize) -> Result<u64, String> {
        let text = self.argument(index)?;
        number_in(text).ok_or_else(|| format!("'{text}' is no number"))
    }

    /// The offset that an argument points to, as in `[4096]` and `[4096] => [8192]`; None for NULL.
    ///
    /// # Errors
    /// The argument is neither of these.
    pub(super) fn pointed(&self, index: usize) -> Result<Option<u64>, String> {
        let text = self.argument(index)?;
        if text == "NULL" {
            return Ok(None);
        }
        let inner = text.strip_prefix('[').and_then(|it| it.split_once(']'));
        let number = inner.and_then(|(number, _)| number_in(number));
        number
            .map(Some)
            .ok_or_else(|| format!("'{text}' is no place in a file"))
    }

    /// The value of a string argument.
    ///
    /// # Errors
    /// The argument is not a string, or strace has cut it short.
    pub(super) fn path(&self, index: usize) -> Result<Vec<u8>, String> {
        let text = self.argument(index)?;
        let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        match inner {
            Some(path) if text.len() > 1 => Ok(unescape(path)),
            _ => Err(format!("{text} is no whole path")),
        }
    }

    /// The descriptor in an argument, and the path of its file where strace names it. The
    /// descriptor is None for `AT_FDCWD`.
    ///
    /// # Errors
    /// The argument is neither of the two.
    pub(super) fn descriptor(&self, index: usize) -> Result<(Option<i32>, Name<'a>), String> {
        descriptor(self.argument(index)?)
    }
}

/// The descriptor in a text such as `3</path>`, as [`Call::descriptor`].
///
/// # Errors
/// As there.
pub(super) fn descriptor(text: &str) -> Result<(Option<i32>, Name<'_>), String> {
    let end = text.bytes().position(|it| it == b'<').unwrap_or(text.len());
    let (number, name) = text.split_at(end);
    let number = match number {
        "AT_FDCWD" => None,
        digits => {
            let parsed = digits.parse();
            Some(parsed.map_err(|_| format!("'{digits}' is no descriptor"))?)
        }
    };
    Ok((number, named(name)))
}

/// A number in decimal or hexadecimal digits.
pub(super) fn number_in(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => decimal(text),
    }
}

/// Decodes a C string, with escapes such as `\n`, `\"`, `\303` and `\x2f`.
fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        at += 1;
        if byte != b'\\' || at == bytes.len() {
            plain.push(byte);
            continue;
        }
        let escape = bytes[at];
        at += 1;
        let (base, digits) = match escape {
            b'0'..=b'7' => {
                at -= 1;
                (8, 3)
            }
            b'x' => (16, 2),
            other => {
                plain.push(match other {
                    b'a' => 7,
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'v' => 11,
                    itself => itself,
                });
                continue;
            }
        };
        let mut value: u32 = 0;
        let end = (at + digits).min(bytes.len());
        while at < end {
            let Some(digit) = char::from(bytes[at]).to_digit(base) else {
                break;
            };
            value = value * base + digit;
            at += 1;
        }
        plain.push(value as u8);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arguments_end_where_strace_means_it() {
        let text =
            "openat(AT_FDCWD</a,b(c>, \"x\\\"),y\", O_RDONLY|O_CLOEXEC) = 3</a,b(c/x> <0.000012>";
        let call = parse(text).unwrap();
        assert_eq!(call.name, "openat");
        assert_eq!(
            call.arguments.as_slice(),
            ["AT_FDCWD</a,b(c>", "\"x\\\"),y\"", "O_RDONLY|O_CLOEXEC"]
        );
        let named = Name::Path("/a,b(c/x");
        assert_eq!(call.result, Outcome::Number(3, named));
        assert_eq!(call.took_ns, 12_000);
        assert_eq!(call.path(1).unwrap(), b"x\"),y");
        assert_eq!(call.descriptor(0).unwrap(), (None, Name::Path("/a,b(c")));
    }

    #[test]
    fn sockets_structures_and_errors_are_passed_over() {
        for (text, result) in [
            (
                "read(5<TCP:[10.0.0.1:1->10.0.0.2:2]>, \"a>b\"..., 10) = 3",
                Outcome::Number(3, Name::None),
            ),
            (
                "fstat(3</x>, {st_mode=S_IFREG|0644, st_size=(1), ...}) = 0 <0.1>",
                Outcome::Number(0, Name::None),
            ),
            (
                "execve(\"/bin/x\", [\"x\", \"]\"], 0x7f /* 5 vars, ) */) = 0",
                Outcome::Number(0, Name::None),
            ),
            (
                "mmap(NULL, 8192) = 0x7f0000000000",
                Outcome::Number(0x7f00_0000_0000, Name::None),
            ),
            (
                "open(\"x\", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000010>",
                Outcome::Failed,
            ),
            ("exit_group(0) = ?", Outcome::Unknown),
            ("sync() = 0", Outcome::Number(0, Name::None)),
        ] {
            assert_eq!(parse(text).unwrap().result, result, "{text}");
        }
    }

    #[test]
    fn what_is_no_call_is_refused() {
        for text in [
            "",
            "read",
            "(3) = 0",
            "read(3",
            "read(3, \"x) = 0",
            "read(3]) = 0",
            "read(3) 0",
            "read(3) = x",
            "re ad(3) = 0",
            "read(3</x = 0",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    fn escape(bytes: &[u8]) -> String {
        bytes.iter().map(|it| format!("\\{it:03o}")).collect()
    }

    proptest! {
        #[test]
        fn any_path_is_read_back(path in prop::collection::vec(1u8..=255, 0..40)) {
            let text = format!("unlink(\"{}\") = 0", escape(&path));
            prop_assert_eq!(parse(&text).unwrap().path(0).unwrap(), path);
        }

        #[test]
        fn no_text_makes_it_panic(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "read", "(", ")", " = ", "3", "<", ">", "\"", "\\", "[", "]", "{", "}", ",",
                    "/*", "*/", "AT_FDCWD", "é", ":[", "]>", "0x", "-1", "?", "\\x", "\\7", "<0.1>",
                ]),
                0..40,
            )
        ) {
            if let Ok(call) = parse(&words.concat()) {
                for index in 0..4 {
                    let _ = (call.path(index), call.descriptor(index), call.number(index));
                }
            }
        }
    }
}
