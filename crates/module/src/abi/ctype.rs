//! BTF types as C text.

use crate::abi::Error;
use btf_rs::{Btf, BtfType, FuncProto, Struct, Type};
use std::collections::BTreeSet;

/// Pointers, arrays and qualifiers in one declaration; more is a cycle in damaged BTF.
const CHAIN_MAX: usize = 64;

/// Functions that take functions; more is a cycle too.
const NESTING_MAX: usize = 8;

/// Writes declarations, and remembers which names they use.
pub struct Printer<'a> {
    btf: &'a Btf,
    /// Tags behind pointers, such as `struct request_queue`: a forward declaration is enough.
    pub pointed: BTreeSet<String>,
    /// Types whose size is used: their declaration has to come first.
    pub held: BTreeSet<String>,
    /// Parameter lists that the current one is inside of.
    nesting: usize,
}

impl<'a> Printer<'a> {
    pub fn new(btf: &'a Btf) -> Self {
        Self {
            btf,
            pointed: BTreeSet::new(),
            held: BTreeSet::new(),
            nesting: 0,
        }
    }

    /// `struct NAME { … }` with its members' names, and how to check its layout.
    pub fn structure(&mut self, name: &str, body: &Struct) -> Result<String, Error> {
        let mut members = String::new();
        let mut checks = String::new();
        for member in &body.members {
            let member_name = self.name_of(member)?;
            if member_name.is_empty() {
                return Err(Error::Private {
                    holder: format!("struct {name}"),
                    found: "a nameless member".into(),
                });
            }
            let bits = member.bitfield_size().unwrap_or_default();
            let declared = self.declare(type_id(member)?, &member_name)?;
            if bits > 0 {
                members += &format!("\t{declared} : {bits};\n");
                continue;
            }
            members += &format!("\t{declared};\n");
            let offset_bytes = member.bit_offset() / 8;
            checks += &format!(
                "static_assert(offsetof(struct {name}, {member_name}) == {offset_bytes});\n"
            );
        }
        let size_bytes = body.size();
        Ok(format!(
            "struct {name} {{\n{members}}} __no_randomize_layout;\n\
             static_assert(sizeof(struct {name}) == {size_bytes});\n{checks}"
        ))
    }

    /// `int function(struct request_queue *q, …)`.
    pub fn prototype(&mut self, function: &str, proto: &FuncProto) -> Result<String, Error> {
        let parameters = self.parameters(proto, true)?;
        self.declare(proto.return_type_id(), &format!("{function}({parameters})"))
    }

    /// `int (struct request_queue *, …)`: the signature alone, to compare.
    pub fn signature(&mut self, proto: &FuncProto) -> Result<String, Error> {
        let parameters = self.parameters(proto, false)?;
        self.declare(proto.return_type_id(), &format!("({parameters})"))
    }

    /// C's declaration of `declarator` as the type with id `outermost`, built from the inside outwards.
    fn declare(&mut self, outermost: u32, declarator: &str) -> Result<String, Error> {
        let mut declarator = declarator.to_owned();
        let mut qualifiers = String::new();
        let mut behind_pointer = false;
        let mut id = outermost;
        for _ in 0..CHAIN_MAX {
            let btf_type = self.resolve(id)?;
            match &btf_type {
                Type::Ptr(pointer) => {
                    declarator = format!("*{qualifiers}{declarator}");
                    qualifiers.clear();
                    behind_pointer = true;
                    id = pointer.get_type_id().unwrap_or_default();
                }
                Type::Const(inner) => {
                    qualifiers += "const ";
                    id = inner.get_type_id().unwrap_or_default();
                }
                Type::Volatile(inner) => {
                    qualifiers += "volatile ";
                    id = inner.get_type_id().unwrap_or_default();
                }
                Type::Restrict(_) | Type::TypeTag(_) => {
                    id = btf_type
                        .as_btf_type()
                        .and_then(BtfType::get_type_id)
                        .unwrap_or_default();
                }
                Type::Array(array) => {
                    declarator = format!("{}[{}]", grouped(&declarator), array.len());
                    behind_pointer = false;
                    id = type_id(array)?;
                }
                Type::FuncProto(proto) => {
                    let parameters = self.parameters(proto, false)?;
                    declarator = format!("{}({parameters})", grouped(&declarator));
                    behind_pointer = false;
                    id = proto.return_type_id();
                }
                _ => {
                    let base = self.base(&btf_type, behind_pointer)?;
                    let space = if declarator.is_empty() { "" } else { " " };
                    return Ok(format!("{qualifiers}{base}{space}{declarator}"));
                }
            }
        }
        Err(cycle())
    }

    fn parameters(&mut self, proto: &FuncProto, named: bool) -> Result<String, Error> {
        if proto.parameters.is_empty() {
            return Ok("void".into());
        }
        if self.nesting == NESTING_MAX {
            return Err(cycle());
        }
        self.nesting += 1;
        let parameters = self.parameter_list(proto, named);
        self.nesting -= 1;
        parameters
    }

    fn parameter_list(&mut self, proto: &FuncProto, named: bool) -> Result<String, Error> {
        let mut parameters = Vec::new();
        for parameter in &proto.parameters {
            if parameter.is_variadic() {
                parameters.push("...".into());
                continue;
            }
            let name = if named {
                self.name_of(parameter)?
            } else {
                String::new()
            };
            parameters.push(self.declare(type_id(parameter)?, &name)?);
        }
        Ok(parameters.join(", "))
    }

    /// The name of a type that has one.
    fn base(&mut self, btf_type: &Type, behind_pointer: bool) -> Result<String, Error> {
        let keyword = match btf_type {
            Type::Void => return Ok("void".into()),
            Type::Int(int) => return self.name_of(int),
            Type::Typedef(typedef) => {
                let name = self.name_of(typedef)?;
                self.held.insert(name.clone());
                return Ok(name);
            }
            Type::Struct(_) => "struct",
            Type::Union(_) => "union",
            Type::Fwd(forward) if forward.is_union() => "union",
            Type::Fwd(_) => "struct",
            Type::Enum(_) | Type::Enum64(_) => "enum",
            other => {
                return Err(Error::Damaged(format!(
                    "a declaration ends in a {}",
                    other.name()
                )));
            }
        };
        let name = match btf_type.as_btf_type() {
            Some(named) => self.name_of(named)?,
            None => String::new(),
        };
        let tag = format!("{keyword} {name}");
        // An enum cannot be declared ahead in C.
        if behind_pointer && keyword != "enum" && !name.is_empty() {
            self.pointed.insert(tag.clone());
        } else {
            self.held.insert(tag.clone());
        }
        Ok(tag)
    }

    fn resolve(&self, id: u32) -> Result<Type, Error> {
        Ok(self.btf.resolve_type_by_id(id)?)
    }

    fn name_of(&self, named: &dyn BtfType) -> Result<String, Error> {
        Ok(self.btf.resolve_name(named)?)
    }
}

/// `[…]` and `(…)` bind tighter than `*`.
fn grouped(declarator: &str) -> String {
    if declarator.starts_with('*') {
        format!("({declarator})")
    } else {
        declarator.to_owned()
    }
}

fn cycle() -> Error {
    Error::Damaged("a type refers to itself".into())
}

fn type_id(btf_type: &dyn BtfType) -> Result<u32, Error> {
    btf_type
        .get_type_id()
        .ok_or_else(|| Error::Damaged("a type refers to nothing".into()))
}
