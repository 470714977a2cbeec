//! `docs/schema.json`, and whether what a command printed is as it says. This knows as much of JSON
//! Schema as that file uses, and takes no word that it does not know.

use serde_json::{Map, Value};
use std::sync::LazyLock;

static WHOLE: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../../../../docs/schema.json")).unwrap());

/// Names of the commands that the schema describes.
pub fn commands() -> Vec<&'static str> {
    let commands = WHOLE["properties"].as_object().unwrap();
    commands.keys().map(String::as_str).collect()
}

/// Fails unless the value is what the schema says that `command` prints.
pub fn check(command: &str, value: &Value) {
    if let Some(fault) = fault(command, value) {
        panic!("not as docs/schema.json says: {fault}");
    }
}

/// What about the value is not as the schema says.
pub fn fault(command: &str, value: &Value) -> Option<String> {
    let schema = &WHOLE["properties"][command];
    assert!(schema.is_object(), "docs/schema.json has no {command:?}");
    fits(schema, value, command).err()
}

/// The same of each line, where a command prints one value a line, or of all of it.
pub fn check_text(command: &str, text: &[u8]) {
    let values = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let values: Vec<Value> = values.map(|it| it.unwrap()).collect();
    assert!(!values.is_empty(), "{command} printed nothing");
    for value in &values {
        check(command, value);
    }
}

fn fits(schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    let schema = schema.as_object().expect("a schema is an object");
    for (word, wanted) in schema {
        match word.as_str() {
            "$ref" => fits(definition(wanted), value, place)?,
            "type" => of_type(wanted, value, place)?,
            "const" if wanted == value => {}
            "enum" if wanted.as_array().unwrap().contains(value) => {}
            "const" | "enum" => return Err(format!("{place} is {value}, not {wanted}")),
            "minimum" if value.as_f64() >= wanted.as_f64() => {}
            "minimum" => return Err(format!("{place} is {value}, below {wanted}")),
            "anyOf" => any_of(wanted, value, place)?,
            "items" => items(wanted, value, place)?,
            "required" => required(wanted, value, place)?,
            "properties" => properties(wanted, value, place)?,
            "additionalProperties" => others(schema, wanted, value, place)?,
            "description" => {}
            unknown => panic!("docs/schema.json uses {unknown}, which this does not know"),
        }
    }
    Ok(())
}

fn definition(reference: &Value) -> &'static Value {
    let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
    WHOLE
        .pointer(pointer)
        .unwrap_or_else(|| panic!("no {reference} in docs/schema.json"))
}

fn of_type(wanted: &Value, value: &Value, place: &str) -> Result<(), String> {
    let is = match wanted.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        unknown => panic!("no type {unknown}"),
    };
    match is {
        true => Ok(()),
        false => Err(format!("{place} is no {wanted}: {value}")),
    }
}

fn any_of(all: &Value, value: &Value, place: &str) -> Result<(), String> {
    let mut faults = Vec::new();
    for one in all.as_array().unwrap() {
        match fits(one, value, place) {
            Ok(()) => return Ok(()),
            Err(fault) => faults.push(fault),
        }
    }
    Err(faults.join(", and "))
}

fn items(schema: &Value, value: &Value, place: &str) -> Result<(), String> {
    let mut each = value.as_array().into_iter().flatten().enumerate();
    each.try_for_each(|(number, item)| fits(schema, item, &format!("{place}[{number}]")))
}

fn required(names: &Value, value: &Value, place: &str) -> Result<(), String> {
    let mut names = names.as_array().unwrap().iter().filter_map(Value::as_str);
    match names.find(|name| value.get(name).is_none()) {
        Some(name) => Err(format!("{place} has no {name}")),
        None => Ok(()),
    }
}

fn properties(known: &Value, value: &Value, place: &str) -> Result<(), String> {
    let known = known.as_object().unwrap();
    known
        .iter()
        .try_for_each(|(name, schema)| match value.get(name) {
            Some(value) => fits(schema, value, &format!("{place}.{name}")),
            None => Ok(()),
        })
}

/// Properties that the schema does not name.
fn others(
    schema: &Map<String, Value>,
    wanted: &Value,
    value: &Value,
    place: &str,
) -> Result<(), String> {
    let is_named = |name: &str| {
        let named = schema.get("properties").and_then(Value::as_object);
        named.is_some_and(|it| it.contains_key(name))
    };
    let all = value.as_object().into_iter().flatten();
    for (name, value) in all.filter(|(name, _)| !is_named(name)) {
        match wanted {
            Value::Bool(true) => {}
            Value::Bool(false) => {
                return Err(format!("{place} has {name}, which is not described"));
            }
            schema => fits(schema, value, &format!("{place}.{name}"))?,
        }
    }
    Ok(())
}
