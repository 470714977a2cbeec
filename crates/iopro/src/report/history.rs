//! Calls on files and changes of names, as a replay needs them.

use super::{CallOnFile, NameChange};
use crate::store::Error;
use rusqlite::Connection;

/// Gives `each` the calls in the order of their ends.
pub fn calls_on_files(
    database: &Connection,
    each: &mut dyn FnMut(CallOnFile),
) -> Result<(), Error> {
    let mut statement = database.prepare(
        "SELECT task_id, syscalls.kind, file_id, coalesce(files.kind, ''), offset_bytes, result,
             begin_ns, end_ns, unfinished, direct, sync, from_file_id, size_bytes
         FROM syscalls LEFT JOIN files USING (file_id)
         WHERE syscalls.kind NOT IN ('kernel', 'unrecorded')
         ORDER BY end_ns, syscall_id",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let begin_ns: u64 = row.get(6)?;
        let end_ns: u64 = row.get(7)?;
        each(CallOnFile {
            task: row.get(0)?,
            kind: row.get(1)?,
            file: row.get(2)?,
            is_directory: row.get::<_, String>(3)? == "directory",
            offset_bytes: row.get(4)?,
            result: row.get(5)?,
            begin_ns,
            took_ns: end_ns.saturating_sub(begin_ns),
            unfinished: row.get(8)?,
            direct: row.get(9)?,
            sync: row.get(10)?,
            from: row.get(11)?,
            size_bytes: row.get(12)?,
        });
    }
    Ok(())
}

/// Changes of names in the order of `time_ns`.
pub fn name_changes(database: &Connection) -> Result<Vec<NameChange>, Error> {
    let mut statement = database.prepare(
        "SELECT file_id, time_ns, path, why,
             (SELECT task_id FROM syscalls
              WHERE kind IN ('unlink', 'unlinkat', 'rmdir', 'rename', 'renameat', 'renameat2')
                  AND begin_ns <= time_ns AND end_ns >= time_ns LIMIT 1),
             (SELECT kind LIKE 'rename%' FROM syscalls
              WHERE kind IN ('unlink', 'unlinkat', 'rmdir', 'rename', 'renameat', 'renameat2')
                  AND begin_ns <= time_ns AND end_ns >= time_ns LIMIT 1),
             (SELECT files.kind = 'directory' FROM files WHERE files.file_id = file_names.file_id)
         FROM file_names ORDER BY time_ns",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(NameChange {
            file: row.get(0)?,
            time_ns: row.get(1)?,
            path: row.get(2)?,
            why: row.get(3)?,
            task: row.get(4)?,
            by_rename: row.get::<_, Option<bool>>(5)?.unwrap_or(false),
            is_directory: row.get::<_, Option<bool>>(6)?.unwrap_or(false),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
