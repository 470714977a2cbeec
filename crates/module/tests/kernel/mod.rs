//! A kernel's BTF, written from C-like text: enough of the format for declarations.

use std::collections::HashMap;

const KIND_INT: u32 = 1;
const KIND_PTR: u32 = 2;
const KIND_ARRAY: u32 = 3;
const KIND_STRUCT: u32 = 4;
const KIND_ENUM: u32 = 6;
const KIND_FWD: u32 = 7;
const KIND_TYPEDEF: u32 = 8;
const KIND_CONST: u32 = 10;
const KIND_FUNC: u32 = 12;
const KIND_FUNC_PROTO: u32 = 13;

/// What an unsupported type costs: sizes only matter for offsets, and one is enough.
const WORD_BYTES: u32 = 8;

/// Collects types; each gets the next id, from 1.
#[derive(Default)]
pub struct Kernel {
    types: Vec<u8>,
    strings: Vec<u8>,
    ids: HashMap<String, u32>,
    count: u32,
}

impl Kernel {
    pub fn new() -> Self {
        Self {
            strings: vec![0],
            ..Self::default()
        }
    }

    /// Adds `struct NAME` with members of `(name, type)`; a type with `(` in it is a pointer
    /// to such a function.
    pub fn structure(&mut self, name: &str, members: &[(String, String)]) {
        let ids: Vec<_> = members
            .iter()
            .map(|(member, text)| (self.string(member), self.type_of(text)))
            .collect();
        let size = u32::try_from(members.len()).unwrap() * WORD_BYTES;
        let name = self.string(name);
        self.begin(name, KIND_STRUCT, members.len(), size);
        for (index, (name, id)) in ids.into_iter().enumerate() {
            let offset_bits = u32::try_from(index).unwrap() * WORD_BYTES * 8;
            self.words(&[name, id, offset_bits]);
        }
    }

    /// Adds `enum NAME`; an empty name makes it nameless.
    pub fn enumeration(&mut self, name: &str, values: &[(&str, u32)]) {
        let values: Vec<_> = values
            .iter()
            .map(|(name, value)| (self.string(name), *value))
            .collect();
        let name_offset = self.string(name);
        let id = self.begin(name_offset, KIND_ENUM, values.len(), 4);
        for (name, value) in values {
            self.words(&[name, value]);
        }
        self.ids.insert(format!("enum {name}"), id);
    }

    /// Adds a function with the signature `text`.
    pub fn function(&mut self, name: &str, text: &str) {
        let proto = self.proto(text);
        let name = self.string(name);
        self.begin(name, KIND_FUNC, 1, proto);
    }

    /// The raw BTF (Documentation/bpf/btf.rst of the kernel, section 3).
    pub fn btf(&self) -> Vec<u8> {
        let type_bytes = u32::try_from(self.types.len()).unwrap();
        let string_bytes = u32::try_from(self.strings.len()).unwrap();
        let mut btf = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, type_bytes, type_bytes, string_bytes] {
            btf.extend(u32::to_le_bytes(word));
        }
        btf.extend(&self.types);
        btf.extend(&self.strings);
        btf
    }

    fn begin(&mut self, name: u32, kind: u32, length: usize, size_or_type: u32) -> u32 {
        let length = u32::try_from(length).unwrap();
        self.words(&[name, kind << 24 | length, size_or_type]);
        self.count += 1;
        self.count
    }

    fn words(&mut self, words: &[u32]) {
        for word in words {
            self.types.extend(word.to_le_bytes());
        }
    }

    fn string(&mut self, text: &str) -> u32 {
        if text.is_empty() {
            return 0;
        }
        let offset = u32::try_from(self.strings.len()).unwrap();
        self.strings.extend(text.bytes());
        self.strings.push(0);
        offset
    }

    fn type_of(&mut self, text: &str) -> u32 {
        let text = text.trim();
        if text == "void" {
            return 0;
        }
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.add_type(text);
        self.ids.insert(text.to_owned(), id);
        id
    }

    fn add_type(&mut self, text: &str) -> u32 {
        if text.contains('(') {
            let proto = self.proto(text);
            return self.begin(0, KIND_PTR, 0, proto);
        }
        if let Some(pointed) = text.strip_suffix('*') {
            let pointed = self.type_of(pointed);
            return self.begin(0, KIND_PTR, 0, pointed);
        }
        if let Some((element, count)) = text.strip_suffix(']').and_then(|it| it.split_once('[')) {
            let element = self.type_of(element);
            let index = self.type_of("unsigned int");
            let id = self.begin(0, KIND_ARRAY, 0, 0);
            self.words(&[element, index, count.parse().unwrap()]);
            return id;
        }
        if let Some(inner) = text.strip_prefix("const ") {
            let inner = self.type_of(inner);
            return self.begin(0, KIND_CONST, 0, inner);
        }
        if let Some(tag) = text.strip_prefix("struct ") {
            let name = self.string(tag);
            return self.begin(name, KIND_FWD, 0, 0);
        }
        if matches!(text, "int" | "unsigned int" | "char" | "unsigned long") {
            let name = self.string(text);
            let id = self.begin(name, KIND_INT, 0, 4);
            self.words(&[32]);
            return id;
        }
        let underlying = self.type_of("unsigned int");
        let name = self.string(text);
        self.begin(name, KIND_TYPEDEF, 0, underlying)
    }

    fn proto(&mut self, text: &str) -> u32 {
        let (returned, parameters) = text.split_once('(').unwrap();
        let returned = self.type_of(returned);
        let parameters = parameters.strip_suffix(')').unwrap();
        let ids: Vec<_> = parameters
            .split(',')
            .filter(|parameter| *parameter != "void")
            .map(|parameter| self.type_of(parameter))
            .collect();
        let id = self.begin(0, KIND_FUNC_PROTO, ids.len(), returned);
        for parameter in ids {
            self.words(&[0, parameter]);
        }
        id
    }
}
