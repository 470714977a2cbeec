//! Compares what the recorder reads and writes of the programs' memory with the type information in
//! the object of the programs.

use super::*;
use crate::capture::ring::{POSITION_BYTES, TAIL_AT};
use crate::event::What;
use crate::wire::{decode, records, unfinished};
use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::btf::{Btf, HasSize};
use std::collections::BTreeMap;

/// The offset of each member of a structure of the programs, in bytes, and the structure's size.
fn structure(name: &str) -> (BTreeMap<String, usize>, usize) {
    let btf = Btf::from_raw("iopro", TYPED).unwrap().unwrap();
    let found: Struct<'_> = btf.type_by_name(name).unwrap();
    let members = found.iter().map(|member| {
        let MemberAttr::Normal { offset } = member.attr else {
            panic!("{name} has a bit field");
        };
        let name = member.name.unwrap().to_str().unwrap();
        (name.to_owned(), offset as usize / 8)
    });
    (members.collect(), found.size())
}

#[test]
fn the_settings_have_the_offsets_and_the_size_that_the_programs_read() {
    let layout = Layout {
        cpus: 1,
        segments: 0x0102_0304,
        segment_bytes: 1 << 16,
    };
    let bytes = settings(layout);
    let (members, size) = structure("settings");
    assert_eq!(bytes.len(), size);
    let names: Vec<&str> = members.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["call_kinds", "page_shift", "segment_shift", "segments"]
    );
    let number = |name: &str| {
        let at = members[name];
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    };
    assert_eq!(number("segments"), 0x0102_0304);
    assert_eq!(number("segment_shift"), 16);
    assert_eq!(1usize << number("page_shift"), rustix::param::page_size());
    let read = members["call_kinds"] + libc::SYS_read as usize;
    assert_eq!(bytes[read], CallKind::Read as u8);
    // The kinds end where the next member begins.
    assert_eq!(members["segments"] - members["call_kinds"], CALL_NUMBERS);
}

#[test]
fn each_map_that_is_set_up_exists() {
    let mut object = ObjectBuilder::default().open_memory(TYPED).unwrap();
    let layout = layout(2);
    set_up(&mut object, layout).unwrap();
    let mut found = BTreeMap::new();
    for map in object.maps_mut() {
        found.insert(
            map.name().to_string_lossy().into_owned(),
            map.initial_value().map(<[u8]>::len),
        );
    }
    for name in ["positions", "segments", "cpus", "threads", "stacks"] {
        assert!(found.contains_key(name), "{name}");
    }
    assert_eq!(found[SETTINGS], Some(structure("settings").1));
}

#[test]
fn the_recorder_reads_the_programs_memory_where_its_members_are() {
    let (cpu, _) = structure("cpu");
    assert_eq!(cpu["lost"], 0);
    assert_eq!(cpu["nesting"], LostKind::ALL.len() * 8);
    let (position, size) = structure("position");
    assert_eq!((position["head"], position["tail"]), (0, TAIL_AT));
    assert_eq!(size, POSITION_BYTES);
}

#[test]
fn a_call_in_progress_is_read_from_the_state_of_its_thread() {
    let (members, size) = structure("thread");
    let mut state = vec![0; size];
    let mut put = |name: &str, value: &[u8]| {
        let at = members[name];
        state[at..at + value.len()].copy_from_slice(value);
    };
    put("call_begin_ns", &1000u64.to_le_bytes());
    put("call_offset", &4096u64.to_le_bytes());
    put("call_size", &512u64.to_le_bytes());
    put("call_file", &12u64.to_le_bytes());
    put("call_fd", &5i32.to_le_bytes());
    put("call_has", &7u32.to_le_bytes());
    put("call_flags", &2u16.to_le_bytes());
    put("call", &[CallKind::Fsync as u8]);
    put("tid", &42u32.to_le_bytes());
    let ring = unfinished(2000, &state).unwrap();
    let (event, _) = decode(records(&ring).next().unwrap(), 0).unwrap();
    let What::CallExit(exit) = event.what else {
        panic!("{event:?}");
    };
    assert_eq!((event.thread, exit.begin_ns), (42, 1000));
    assert_eq!((exit.call.kind, exit.call.fd), (CallKind::Fsync, Some(5)));
    assert_eq!(exit.call.offset_bytes, Some(4096));
    assert_eq!(exit.call.size_bytes, Some(512));
    assert_eq!(exit.call.file.map(|file| file.inode), Some(12));
    assert_eq!(exit.call.flags.0, 2);
}
