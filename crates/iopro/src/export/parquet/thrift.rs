//! Thrift's compact protocol, as far as Parquet's metadata need it: structs whose fields are
//! written in the order of their numbers.

/// The type of a field or of a list's elements.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A list of so many elements has its length behind its header.
const LONG_LIST: usize = 15;

/// A field's number is told by its distance from the one before, in four bits.
const FARTHEST: u8 = 15;

/// A struct that is being written.
#[derive(Default)]
pub struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    /// Adds an `i32`: a number, or a value of an enumeration.
    pub fn i32(self, field: u8, number: i32) -> Struct {
        self.number(field, I32, number.into())
    }

    /// Adds an `i64`.
    pub fn i64(self, field: u8, number: i64) -> Struct {
        self.number(field, I64, number)
    }

    fn number(mut self, field: u8, kind: u8, number: i64) -> Struct {
        self.header(field, kind);
        varint(&mut self.bytes, zigzag(number));
        self
    }

    /// Adds a string.
    pub fn text(mut self, field: u8, text: &str) -> Struct {
        self.header(field, BINARY);
        binary(&mut self.bytes, text);
        self
    }

    /// Adds a struct.
    pub fn nested(mut self, field: u8, nested: Struct) -> Struct {
        self.header(field, STRUCT);
        self.bytes.extend(nested.end());
        self
    }

    /// Adds a list of structs, each of them ended.
    pub fn structs(self, field: u8, structs: &[Vec<u8>]) -> Struct {
        self.list(field, STRUCT, structs.len(), &structs.concat())
    }

    /// Adds a list of values of an enumeration.
    pub fn i32s(self, field: u8, numbers: &[i32]) -> Struct {
        let mut elements = Vec::new();
        for number in numbers {
            varint(&mut elements, zigzag((*number).into()));
        }
        self.list(field, I32, numbers.len(), &elements)
    }

    /// Adds a list of one string.
    pub fn text_list(self, field: u8, text: &str) -> Struct {
        let mut element = Vec::new();
        binary(&mut element, text);
        self.list(field, BINARY, 1, &element)
    }

    fn list(mut self, field: u8, kind: u8, length: usize, elements: &[u8]) -> Struct {
        self.header(field, LIST);
        self.bytes.push((length.min(LONG_LIST) as u8) << 4 | kind);
        if length >= LONG_LIST {
            varint(&mut self.bytes, length as u64);
        }
        self.bytes.extend_from_slice(elements);
        self
    }

    fn header(&mut self, field: u8, kind: u8) {
        let distance = field - self.last;
        debug_assert!((1..=FARTHEST).contains(&distance), "in order");
        self.bytes.push(distance << 4 | kind);
        self.last = field;
    }

    /// Its bytes.
    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn binary(bytes: &mut Vec<u8>, text: &str) {
    varint(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

/// Small numbers of either sign are short.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

/// Seven bits a byte, the lowest first; all but the last have their highest bit set.
pub fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
