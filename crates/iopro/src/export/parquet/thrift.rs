//! Thrift's compact protocol, as far as Parquet's metadata need it: structs whose fields are
//! written in ascending order.

/// Types of fields and of list elements in the compact protocol.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// A list of this many elements or more has its length after its header.
const LONG_LIST: usize = 15;

/// Largest distance to the previous field's number; the header has four bits for it.
const FARTHEST: u8 = 15;

/// A struct that is being encoded.
#[derive(Default)]
pub struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

impl Struct {
    /// Adds a field of type `i32`: a number, or a value of an enumeration.
    pub fn i32(self, field: u8, number: i32) -> Struct {
        self.number(field, I32, number.into())
    }

    /// Adds a field of type `i64`.
    pub fn i64(self, field: u8, number: i64) -> Struct {
        self.number(field, I64, number)
    }

    fn number(mut self, field: u8, kind: u8, number: i64) -> Struct {
        self.header(field, kind);
        varint(&mut self.bytes, zigzag(number));
        self
    }

    /// Adds a field of type string.
    pub fn text(self, field: u8, text: &str) -> Struct {
        self.bytes(field, text.as_bytes())
    }

    /// Adds a field of type binary.
    pub fn bytes(mut self, field: u8, bytes: &[u8]) -> Struct {
        self.header(field, BINARY);
        binary(&mut self.bytes, bytes);
        self
    }

    /// Adds a field of type struct.
    pub fn nested(mut self, field: u8, nested: Struct) -> Struct {
        self.header(field, STRUCT);
        self.bytes.extend(nested.end());
        self
    }

    /// Adds a field with a list of structs, which are the results of [`Struct::end`].
    pub fn structs(self, field: u8, structs: &[Vec<u8>]) -> Struct {
        self.list(field, STRUCT, structs.len(), &structs.concat())
    }

    /// Adds a field with a list of `i32`, such as values of an enumeration.
    pub fn i32s(self, field: u8, numbers: &[i32]) -> Struct {
        let mut elements = Vec::new();
        for number in numbers {
            varint(&mut elements, zigzag((*number).into()));
        }
        self.list(field, I32, numbers.len(), &elements)
    }

    /// Adds a field with a list of one string.
    pub fn text_list(self, field: u8, text: &str) -> Struct {
        let mut element = Vec::new();
        binary(&mut element, text.as_bytes());
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

    /// The encoded struct, with the stop byte at its end.
    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn binary(bytes: &mut Vec<u8>, value: &[u8]) {
    varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

/// Zigzag encoding: numbers close to 0 become small, whatever their sign.
fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

/// Appends a varint (LEB128): seven bits a byte, the lowest first; all bytes but the last have
/// their highest bit set.
pub fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}
