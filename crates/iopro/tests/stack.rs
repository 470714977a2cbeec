//! Checks that the programs fit the kernel's stack, whichever clang compiled them.

use std::collections::HashMap;

use object::read::elf::ElfFile64;
use object::{
    Object, ObjectSection, ObjectSymbol, Relocation, RelocationTarget, SectionIndex, SymbolKind,
};

/// All functions in a row may have 512 bytes (MAX_BPF_STACK). Clang versions differ by what they
/// spill, so that some of it is to be left.
const STACK_BYTES: u32 = 512 - 64;
/// What the verifier of 6.1 rounds each function up to (check_max_stack_depth() of verifier.c).
const ROUNDED_BYTES: u32 = 32;
const INSTRUCTION_BYTES: u64 = 8;

const STACK_POINTER: u8 = 10;
const CALL: u8 = 0x85;
const CALL_OF_FUNCTION: u8 = 1;
const LOAD_IMMEDIATE: u8 = 0x18;
const ADD_IMMEDIATE: u8 = 0x07;
const MOVE: u8 = 0xbf;
const CLASS: u8 = 0x07;
const CLASS_LOAD: u8 = 0x01;
const CLASS_STORE: u8 = 0x02;
const CLASS_STORE_REGISTER: u8 = 0x03;

/// Where a function begins.
type Place = (SectionIndex, u64);

struct Function {
    name: String,
    stack_bytes: u32,
    /// What it calls, or hands to a helper as what to call.
    calls: Vec<Place>,
}

struct Instruction {
    code: u8,
    to: u8,
    from: u8,
    offset: i16,
    immediate: i32,
}

impl Instruction {
    fn new(bytes: &[u8]) -> Self {
        Self {
            code: bytes[0],
            to: bytes[1] & 0xf,
            from: bytes[1] >> 4,
            offset: i16::from_le_bytes([bytes[2], bytes[3]]),
            immediate: i32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
        }
    }

    /// How far down it reaches the stack, directly.
    fn depth_bytes(&self) -> u32 {
        let base = match self.code & CLASS {
            CLASS_LOAD if self.code != LOAD_IMMEDIATE => self.from,
            CLASS_STORE | CLASS_STORE_REGISTER => self.to,
            _ => return 0,
        };
        if base == STACK_POINTER {
            u32::from(self.offset.min(0).unsigned_abs())
        } else {
            0
        }
    }
}

/// The begin of what the instruction at `at` calls or takes the address of.
fn called(
    instruction: &Instruction,
    (section, at): Place,
    relocated: Option<Place>,
) -> Option<Place> {
    let immediate = i64::from(instruction.immediate);
    let added = match instruction.code {
        CALL if instruction.from == CALL_OF_FUNCTION => (immediate + 1) * INSTRUCTION_BYTES as i64,
        LOAD_IMMEDIATE if relocated.is_some() => immediate,
        _ => return None,
    };
    let (section, from) = relocated.unwrap_or((section, at));
    Some((section, from.checked_add_signed(added)?))
}

fn functions(bytes: &[u8]) -> HashMap<Place, Function> {
    let object: ElfFile64 = ElfFile64::parse(bytes).unwrap();
    let symbols = object.symbols();
    symbols
        .filter(|symbol| symbol.kind() == SymbolKind::Text)
        .map(|symbol| {
            let place = (symbol.section_index().unwrap(), symbol.address());
            let name = symbol.name().unwrap().to_string();
            (place, function(&object, place, symbol.size(), name))
        })
        .collect()
}

fn function(object: &ElfFile64, place: Place, bytes: u64, name: String) -> Function {
    let (section, begin) = place;
    let code = object.section_by_index(section).unwrap();
    let data = code.data().unwrap();
    let relocations = relocations(object, &code);
    let mut stack_bytes = 0;
    let mut calls = Vec::new();
    let mut copy = None;
    for at in (begin..begin + bytes).step_by(INSTRUCTION_BYTES as usize) {
        let instruction = Instruction::new(&data[at as usize..]);
        let depth_bytes = match instruction.code {
            ADD_IMMEDIATE if copy == Some(instruction.to) => {
                instruction.immediate.min(0).unsigned_abs()
            }
            _ => instruction.depth_bytes(),
        };
        stack_bytes = depth_bytes.max(stack_bytes);
        let copies = instruction.code == MOVE && instruction.from == STACK_POINTER;
        copy = copies.then_some(instruction.to);
        let relocated = relocations.get(&at).copied();
        calls.extend(called(&instruction, (section, at), relocated));
    }
    Function {
        name,
        stack_bytes,
        calls,
    }
}

/// What instructions of the section refer to, by where they are.
fn relocations<'a>(object: &ElfFile64<'a>, code: &impl ObjectSection<'a>) -> HashMap<u64, Place> {
    let place_of = |relocation: Relocation| {
        let RelocationTarget::Symbol(index) = relocation.target() else {
            return None;
        };
        let target = object.symbol_by_index(index).unwrap();
        Some((target.section_index()?, target.address()))
    };
    code.relocations()
        .filter_map(|(at, relocation)| Some((at, place_of(relocation)?)))
        .collect()
}

/// The most that the function at `place` and what it calls have on the stack, and who that is.
fn deepest(functions: &HashMap<Place, Function>, place: Place) -> (u32, String) {
    let Some(function) = functions.get(&place) else {
        return (0, String::new());
    };
    let (below, names) = function
        .calls
        .iter()
        .map(|&called| deepest(functions, called))
        .max()
        .unwrap_or_default();
    let own = function.stack_bytes.max(1).next_multiple_of(ROUNDED_BYTES);
    (own + below, format!("{} {own}, {names}", function.name))
}

fn fits(object: &[u8]) {
    let functions = functions(object);
    let (bytes, names) = functions
        .keys()
        .map(|&place| deepest(&functions, place))
        .max()
        .unwrap();
    assert!(
        names.contains("walk_step"),
        "what is called back is missing: {names}"
    );
    assert!(
        bytes <= STACK_BYTES,
        "{bytes} bytes of stack are used, {STACK_BYTES} may be: {names}"
    );
}

#[test]
fn programs_with_types_fit_the_stack() {
    fits(include_bytes!(env!("IOPRO_BPF_TYPED")));
}

#[test]
fn programs_without_types_fit_the_stack() {
    fits(include_bytes!(env!("IOPRO_BPF_UNTYPED")));
}
