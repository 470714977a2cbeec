//! Whether type information from a file is the running kernel's.

use super::{Error, btf_section};
use btf_rs::{Btf, Type};
use std::collections::HashSet;

/// Checks that BTF is of the kernel whose `/proc/kallsyms` is `symbols`. The BTF's functions are
/// taken from a kernel's symbols, so all have to be there. (Of Debian's 6.12.117 and 6.12.118 each
/// has a hundred that the other lacks.)
///
/// # Errors
/// [`Error::OtherKernel`], [`Error::NoSymbols`], or that `kernel` has no BTF that can be read.
pub fn check_running(kernel: &[u8], symbols: &str) -> Result<(), Error> {
    let known: HashSet<&str> = symbols.lines().filter_map(function).collect();
    if known.is_empty() {
        return Err(Error::NoSymbols);
    }
    let btf = Btf::from_bytes(&btf_section(kernel)?)?;
    let mut lacking = 0;
    let mut example = None;
    let (first, last) = btf.base().type_id_range();
    for id in first..=last {
        let Type::Func(found) = btf.resolve_type_by_id(id)? else {
            continue;
        };
        let name = btf.resolve_name(&found)?;
        if !known.contains(name.as_str()) {
            lacking += 1;
            example.get_or_insert(name);
        }
    }
    match example {
        Some(example) => Err(Error::OtherKernel { lacking, example }),
        None => Ok(()),
    }
}

/// The name of the function in a line, without what the compiler added (`.isra.0`).
fn function(line: &str) -> Option<&str> {
    let mut fields = line.split_ascii_whitespace();
    let is_code = matches!(fields.nth(1)?, "t" | "T" | "w" | "W");
    let name = fields.next().filter(|_| is_code)?;
    name.split('.').next()
}
