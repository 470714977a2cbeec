//! Reading of ELF files.

use object::read::elf::{Dyn, FileHeader};
use object::{Endianness, Object, ObjectSection};

type Header = object::elf::FileHeader64<Endianness>;

/// The content of the section `name`.
pub fn section(file: &[u8], name: &str) -> Option<Vec<u8>> {
    let parsed = object::File::parse(file).ok()?;
    let section = parsed.section_by_name(name)?;
    section.data().ok().map(<[u8]>::to_vec)
}

/// The path of the dynamic loader the program asks for; None when it is static.
pub fn interpreter(file: &[u8]) -> Option<String> {
    let header = Header::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, file).ok()?;
    let found = segments.iter().find_map(|segment| {
        object::read::elf::ProgramHeader::interpreter(segment, endian, file).ok()?
    })?;
    Some(String::from_utf8_lossy(found).into_owned())
}

/// The names of the shared libraries the file needs.
pub fn needed(file: &[u8]) -> Vec<String> {
    needed_of(file).unwrap_or_default()
}

fn needed_of(file: &[u8]) -> Option<Vec<String>> {
    let header = Header::parse(file).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, file).ok()?;
    let (entries, strings) = sections.dynamic(endian, file).ok()??;
    let strings = sections.strings(endian, file, strings).ok()?;
    entries
        .iter()
        .filter(|entry| entry.tag(endian) == object::elf::DT_NEEDED)
        .map(|entry| {
            let name = entry.string(endian, strings).ok()?;
            Some(String::from_utf8_lossy(name).into_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_static_test_program_asks_for_no_loader() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(interpreter(&program), None);
        assert!(needed(&program).is_empty());
        assert!(section(&program, ".text").is_some_and(|text| !text.is_empty()));
    }

    #[test]
    fn what_is_no_elf_file_needs_nothing() {
        assert_eq!(interpreter(b"#!/bin/sh"), None);
        assert!(needed(b"").is_empty());
        assert_eq!(section(b"\x7fELF", ".text"), None);
    }
}
