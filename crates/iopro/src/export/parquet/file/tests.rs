//! Tests that read the written files with Apache's own crate.

use super::*;
use ::parquet::basic::{ConvertedType, LogicalType, Repetition};
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::statistics::Statistics;
use ::parquet::record::Field;
use proptest::prelude::*;
use rusqlite::types::Value;
use std::fs::File;

/// One column of each kind, and more than a list has in its header.
const COLUMNS: [Column; 18] = [
    column("number", Kind::Integer, false),
    column("number_or_not", Kind::Integer, true),
    column("flag", Kind::Boolean, false),
    column("flag_or_not", Kind::Boolean, true),
    column("text", Kind::Text, false),
    column("text_or_not", Kind::Text, true),
    column("a", Kind::Integer, true),
    column("b", Kind::Integer, true),
    column("c", Kind::Integer, true),
    column("d", Kind::Integer, true),
    column("e", Kind::Integer, true),
    column("f", Kind::Integer, true),
    column("g", Kind::Integer, true),
    column("h", Kind::Integer, true),
    column("i", Kind::Integer, true),
    column("j", Kind::Integer, true),
    column("k", Kind::Integer, true),
    column("l", Kind::Real, true),
];

const fn column(name: &'static str, kind: Kind, nullable: bool) -> Column {
    Column {
        name,
        kind,
        nullable,
        doc: &[],
    }
}

/// Tables of one column, of two, of six and of all.
static TABLES: [Table; 4] = [table(1), table(2), table(6), table(COLUMNS.len())];

const fn table(columns: usize) -> Table {
    Table {
        of: crate::tables::Of::All,
        name: "some",
        doc: &[],
        columns: COLUMNS.split_at(columns).0,
        indices: &[],
    }
}

fn write(table: &'static Table, rows: &[Vec<Value>], rows_per_group: u64) -> File {
    let mut writer = Writer::new(tempfile::tempfile().unwrap(), table).unwrap();
    writer.rows_per_group = rows_per_group;
    for row in rows {
        let cells: Vec<ValueRef> = row.iter().map(ValueRef::from).collect();
        writer.row(&cells).unwrap();
    }
    writer.finish().unwrap()
}

fn read(file: File) -> (SerializedFileReader<File>, Vec<Vec<Value>>) {
    let reader = SerializedFileReader::new(file).unwrap();
    let rows = reader.get_row_iter(None).unwrap();
    let cells = rows.map(|row| {
        let row = row.unwrap();
        row.get_column_iter()
            .map(|(_, field)| cell(field))
            .collect()
    });
    let cells = cells.collect();
    (reader, cells)
}

fn cell(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => Value::Integer((*value).into()),
        Field::Long(number) => Value::Integer(*number),
        Field::Double(number) => Value::Real(*number),
        Field::Str(text) => Value::Text(text.clone()),
        other => panic!("{other}"),
    }
}

fn any_cell(column: &Column) -> BoxedStrategy<Value> {
    let value = match column.kind {
        Kind::Boolean => any::<bool>()
            .prop_map(|it| Value::Integer(it.into()))
            .boxed(),
        Kind::Real => any::<f64>().prop_map(Value::Real).boxed(),
        Kind::Text => any::<String>().prop_map(Value::Text).boxed(),
        Kind::Integer => prop_oneof![
            any::<i64>(),
            Just(i64::MIN),
            Just(i64::MAX),
            Just(-1),
            0..10_i64
        ]
        .prop_map(Value::Integer)
        .boxed(),
    };
    match column.nullable {
        true => prop_oneof![Just(Value::Null), value].boxed(),
        false => value,
    }
}

fn any_rows() -> impl Strategy<Value = (&'static Table, Vec<Vec<Value>>)> {
    prop::sample::select(TABLES.each_ref().to_vec()).prop_flat_map(|table| {
        let cells: Vec<_> = table.columns.iter().map(any_cell).collect();
        (Just(table), prop::collection::vec(cells, 0..40))
    })
}

type Bounds = Option<(Vec<u8>, Vec<u8>)>;

fn bounds(statistics: &Statistics) -> Bounds {
    let (least, most) = (statistics.min_bytes_opt()?, statistics.max_bytes_opt()?);
    Some((least.to_owned(), most.to_owned()))
}

/// The smallest and the largest value, which texts beyond 64 bytes lack.
fn expected_bounds(column: &Column, cells: &[&Value]) -> Bounds {
    let integers = cells.iter().filter_map(|it| match it {
        Value::Integer(number) => Some(*number),
        _ => None,
    });
    let texts = cells.iter().filter_map(|it| match it {
        Value::Text(text) => Some(text.as_bytes()),
        _ => None,
    });
    match column.kind {
        Kind::Boolean | Kind::Real => None,
        Kind::Integer => {
            let (least, most) = (integers.clone().min()?, integers.max()?);
            Some((least.to_le_bytes().into(), most.to_le_bytes().into()))
        }
        Kind::Text => {
            let (least, most) = (texts.clone().min()?, texts.max()?);
            let is_short = least.len().max(most.len()) <= LONGEST_BOUND;
            is_short.then(|| (least.to_owned(), most.to_owned()))
        }
    }
}

proptest! {
    #[test]
    fn what_was_written_is_read_back((table, rows) in any_rows(), rows_per_group in 1..50_u64) {
        let (reader, found) = read(write(table, &rows, rows_per_group));
        prop_assert_eq!(found, rows.as_slice());
        let metadata = reader.metadata();
        prop_assert_eq!(metadata.file_metadata().num_rows() as usize, rows.len());
        for (column, place) in table.columns.iter().zip(0..) {
            let groups = rows.chunks(rows_per_group as usize).zip(metadata.row_groups());
            for (group, metadata) in groups {
                let cells: Vec<&Value> = group.iter().map(|row| &row[place]).collect();
                let found = metadata.column(place).statistics().unwrap();
                prop_assert_eq!(bounds(found), expected_bounds(column, &cells));
                let nulls = cells.iter().filter(|it| ***it == Value::Null).count();
                prop_assert_eq!(found.null_count_opt(), Some(nulls as u64));
            }
        }
        prop_assert_eq!(metadata.num_row_groups() as u64, (rows.len() as u64).div_ceil(rows_per_group));
    }
}

#[test]
fn columns_have_their_names_and_types() {
    let (reader, rows) = read(write(&TABLES[3], &[], 1));
    assert_eq!(rows.len(), 0);
    let schema = reader.metadata().file_metadata().schema_descr();
    assert_eq!(schema.name(), "some");
    assert_eq!(schema.num_columns(), COLUMNS.len());
    for (column, found) in COLUMNS.iter().zip(schema.columns()) {
        assert_eq!(found.name(), column.name);
        let optional = found.self_type().get_basic_info().repetition() == Repetition::OPTIONAL;
        assert_eq!(optional, column.nullable, "{}", column.name);
        let is_text = column.kind == Kind::Text;
        let logical = found.logical_type_ref() == Some(&LogicalType::String);
        let converted = found.converted_type() == ConvertedType::UTF8;
        assert_eq!((logical, converted), (is_text, is_text), "{}", column.name);
    }
}

#[test]
fn many_rows_and_long_texts_are_divided_into_groups() {
    let number = |number| vec![Value::Integer(number)];
    let many: Vec<_> = (0..3 * ROWS_PER_GROUP as i64 + 5).map(number).collect();
    let (reader, rows) = read(write(&TABLES[0], &many, ROWS_PER_GROUP));
    assert!(rows == many);
    assert_eq!(reader.num_row_groups(), 4);

    let mut row = vec![Value::Null; COLUMNS.len()];
    row[0] = Value::Integer(0);
    row[2] = Value::Integer(1);
    row[4] = Value::Text("long ".repeat(BYTES_PER_GROUP / 10));
    let long = vec![row; 5];
    let (reader, rows) = read(write(&TABLES[3], &long, ROWS_PER_GROUP));
    assert!(rows == long);
    assert_eq!(reader.num_row_groups(), 3);
}

#[test]
fn a_cell_that_its_column_has_no_room_for_is_refused() {
    for (place, cell) in [(0, ValueRef::Null), (1, ValueRef::Text(b"no number"))] {
        let mut cells = [ValueRef::Integer(1); 2];
        cells[place] = cell;
        let mut writer = Writer::new(Vec::new(), &TABLES[1]).unwrap();
        let refused = writer.row(&cells).unwrap_err().to_string();
        assert!(refused.contains(COLUMNS[place].name), "{refused}");
    }
}
