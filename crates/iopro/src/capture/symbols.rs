//! Names of the kernel's functions by address.

use std::fs::File;
use std::io::{self, Read};

/// The kernel's functions, sorted by address.
#[derive(Debug, Default)]
pub struct Symbols {
    by_address: Vec<(u64, String)>,
}

impl Symbols {
    /// Opens the list of the running kernel's functions. What it shows depends on the capabilities at this
    /// time.
    pub fn open() -> io::Result<File> {
        File::open("/proc/kallsyms")
    }

    /// Functions in an open list; none if the kernel hides them.
    pub fn read(list: &mut File) -> Symbols {
        let mut text = String::new();
        // A list that cannot be read names no function.
        let _ = list.read_to_string(&mut text);
        Symbols::parse(&text)
    }

    fn parse(text: &str) -> Symbols {
        let mut by_address: Vec<_> = text.lines().filter_map(function).collect();
        by_address.sort_unstable();
        Symbols { by_address }
    }

    /// The function that contains `address`; `0x…` if there is none.
    pub fn name(&self, address: u64) -> String {
        let next = self
            .by_address
            .partition_point(|(begin, _)| *begin <= address);
        match next.checked_sub(1).and_then(|at| self.by_address.get(at)) {
            Some((_, name)) => name.clone(),
            None => format!("{address:#x}"),
        }
    }
}

fn function(line: &str) -> Option<(u64, String)> {
    let mut fields = line.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let is_code = matches!(fields.next()?, "t" | "T" | "w" | "W");
    // All addresses are 0 where the kernel hides them.
    (is_code && address != 0).then_some((address, fields.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_in_the_function_that_begins_before_it() {
        let symbols = Symbols::parse(
            "ffffffff81000010 T second\nffffffff81000000 t first\nffffffff81000014 d data\n\
             0000000000000000 T hidden\nffffffff82000000 t in_module\t[ext4]\n",
        );
        assert_eq!(symbols.name(0xffff_ffff_8100_0000), "first");
        assert_eq!(symbols.name(0xffff_ffff_8100_000f), "first");
        assert_eq!(symbols.name(0xffff_ffff_8100_0018), "second");
        assert_eq!(symbols.name(0xffff_ffff_8200_0001), "in_module");
        assert_eq!(symbols.name(0x10), "0x10");
    }
}
