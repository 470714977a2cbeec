//! VCD, for GTKWave and others: one line per layer. Its value is the number of calls, waits or
//! requests in progress.

use super::{Error, cannot_write};
use crate::report::LANES;
use crate::store::Store;
use std::io::Write;
use std::path::Path;
use vcd::{IdCode, TimescaleUnit, Value, VarType};

/// Bits of a line; no queue holds more at once.
const WIDTH: u32 = 16;

/// Writes the lines of all layers to `output`.
pub fn write(store: &Store, output: &Path) -> Result<(), Error> {
    let failed = cannot_write(output);
    let mut writer = vcd::Writer::new(super::create(output)?);
    let lines = header(&mut writer).map_err(&failed)?;
    let mut statement = store.database().prepare(&changes())?;
    let mut rows = statement.query([])?;
    let mut levels = vec![0i64; LANES.len()];
    let mut now = None;
    while let Some(row) = rows.next()? {
        let (time, lane, change): (u64, usize, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if now != Some(time) {
            writer.timestamp(time).map_err(&failed)?;
            now = Some(time);
        }
        levels[lane] += change;
        writer
            .change_vector(lines[lane], bits(levels[lane]))
            .map_err(&failed)?;
    }
    writer.flush().map_err(&failed)?;
    writer.writer().flush().map_err(&failed)
}

fn header(writer: &mut vcd::Writer<impl Write>) -> std::io::Result<Vec<IdCode>> {
    writer.version("frontrow iopro")?;
    writer.timescale(1, TimescaleUnit::NS)?;
    writer.add_module("storage")?;
    let lines = LANES.iter().map(|(name, _)| {
        // GTKWave takes a slash for the end of a scope.
        let name = name.replace(|it: char| !it.is_ascii_alphanumeric(), "_");
        writer.add_var(VarType::Wire, WIDTH, &name, None)
    });
    let lines = lines.collect::<std::io::Result<Vec<IdCode>>>()?;
    writer.upscope()?;
    writer.enddefinitions()?;
    writer.timestamp(0)?;
    for line in &lines {
        writer.change_vector(*line, bits(0))?;
    }
    Ok(lines)
}

/// The SQL query of all changes of lines: time, lane, and +1 or -1.
fn changes() -> String {
    let lanes = (0..LANES.len()).map(|lane| {
        format!(
            "SELECT start, {lane} AS lane, 1 AS change FROM lane_{lane}
             UNION ALL SELECT max(over, start), {lane}, -1 FROM lane_{lane}",
        )
    });
    let tables = LANES
        .iter()
        .enumerate()
        .map(|(lane, (_, query))| format!("lane_{lane} (start, over) AS ({query})"));
    format!(
        "WITH {} SELECT start, lane, sum(change) FROM ({})
         GROUP BY start, lane HAVING sum(change) <> 0 ORDER BY start, lane",
        tables.collect::<Vec<_>>().join(", "),
        lanes.collect::<Vec<_>>().join(" UNION ALL ")
    )
}

fn bits(level: i64) -> impl Iterator<Item = Value> {
    let level = level.clamp(0, (1 << WIDTH) - 1);
    (0..WIDTH).rev().map(move |bit| match level >> bit & 1 {
        0 => Value::V0,
        _ => Value::V1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_lines_are_one_word_without_a_slash() {
        let mut written = Vec::new();
        header(&mut vcd::Writer::new(&mut written)).unwrap();
        let written = String::from_utf8(written).unwrap();
        let names = written.lines().filter(|line| line.starts_with("$var"));
        let names: Vec<&str> = names.filter_map(|line| line.split(' ').nth(4)).collect();
        assert_eq!(names.len(), LANES.len());
        let is_word = |name: &&str| {
            name.bytes()
                .all(|it| it == b'_' || it.is_ascii_alphanumeric())
        };
        assert!(names.iter().all(is_word), "{names:?}");
    }
}
