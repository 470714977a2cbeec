//! `frontrow-lab run --shard`, and `frontrow-lab join`.

use super::Output;
use crate::atomic_file;
use crate::exit::{Exit, Failure};
use crate::print::json as json_of;
use record::shard::{self, Apart};
use record::{Shard, ShardFile};
use std::fs;
use std::path::{Path, PathBuf};

/// Make one result of all shards of a campaign
///
/// It is to the byte the result of the same run without --shard. Shards of different campaigns are
/// refused, and so are shards that are missing or whose guests failed.
#[derive(clap::Args)]
pub struct Join {
    /// Directories that `frontrow-lab run --shard` wrote to with --out
    #[arg(required = true, value_name = "DIR")]
    directories: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// Makes the result of the shards in these directories.
pub fn join(args: Join) -> Result<(), Failure> {
    let mut files = Vec::new();
    for directory in &args.directories {
        files.extend(files_of(directory)?);
    }
    let result = shard::join(files)?;
    args.output.make_directory()?;
    args.output.deliver(&result)
}

/// Shards' files in a directory, in the order of their names.
fn files_of(directory: &Path) -> Result<Vec<(String, ShardFile)>, Failure> {
    let unreadable = |error| Failure::unreadable(directory, &error);
    let entries = fs::read_dir(directory).map_err(unreadable)?;
    let entries: Result<Vec<_>, _> = entries.collect();
    let mut paths: Vec<PathBuf> = entries
        .map_err(unreadable)?
        .into_iter()
        .filter(|it| Shard::is_file_name(&it.file_name().to_string_lossy()))
        .map(|it| it.path())
        .collect();
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> Result<(String, ShardFile), Failure> {
    let text = fs::read(path).map_err(|error| Failure::unreadable(path, &error))?;
    let shown = path.display();
    let file = serde_json::from_slice(&text).map_err(|error| {
        let sentence = format_args!("{shown} is no shard of an experiment: {error}; run it again");
        Failure::new(Exit::Usage, sentence)
    })?;
    Ok((shown.to_string(), file))
}

/// Writes the file of a shard, and tells of guests that failed.
pub(super) fn finish(out: &Path, file: &ShardFile) -> Result<(), Failure> {
    let path = out.join(file.shard.file_name());
    atomic_file::write(&path, json_of(file)?)?;
    let failures: Vec<_> = file.failures().collect();
    let Some((policy, seed, _)) = failures.first() else {
        return Ok(());
    };
    let sentence = format!(
        "{} of {} guests of shard {} failed, the first with policy {policy} and seed {seed}; {} has the reasons and the others' figures",
        failures.len(),
        file.outcomes.len(),
        file.shard,
        path.display()
    );
    Err(Failure::new(Exit::Guest, sentence))
}

impl From<Apart> for Failure {
    fn from(apart: Apart) -> Failure {
        let exit = match apart {
            Apart::Differ { .. } | Apart::Twice { .. } => Exit::Apart,
            Apart::Incomplete(_) => Exit::Incomplete,
        };
        Failure::new(exit, apart)
    }
}
