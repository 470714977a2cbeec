//! Files by DoF_L and DoF_P (dissertation, figure 24): the pieces that a file is in over the fewest
//! possible, and the part of the device's dies that a read of it leaves idle.

use crate::{Error, Measurement};
use ::layout::defrag::Physical;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use sys::device::Layout;

/// Largest DoF_L of each class; the last class has all larger ones.
const DOF_L_UP_TO: [u64; 4] = [1, 2, 4, 8];
/// Largest DoF_P of each class, in per cent, which is below it; the last class has all from there on.
/// From one half on a file is worth spreading.
const DOF_P_BELOW_PERCENT: [u64; 2] = [25, 50];

/// Numbers of files by the class of their DoF_L, then of their DoF_P.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files([[u64; DOF_P_BELOW_PERCENT.len() + 1]; DOF_L_UP_TO.len() + 1]);

impl Files {
    /// All files with data below `directory`, which must have been written back. None are counted on a
    /// device that does not tell the dies of pages.
    pub(crate) fn of(directory: &Path) -> Result<Self, Error> {
        let mut files = Files::default();
        let physical = Physical::of(directory).map_err(|it| Error::Upkeep(it.to_string()))?;
        if let Some(physical) = physical {
            for path in all_below(directory)? {
                files.add_file(&path, &physical)?;
            }
        }
        Ok(files)
    }

    fn add_file(&mut self, path: &Path, physical: &Physical) -> Result<(), Error> {
        let failed = |source| Error::io("find the places of", path, source);
        let file = File::open(path).map_err(failed)?;
        let layout = Layout::of(&file, true).map_err(failed)?;
        if let Some(dof_l) = layout.dof_l() {
            self.add(dof_l, physical.dof_p(&layout).map_err(failed)?);
        }
        Ok(())
    }

    fn add(&mut self, dof_l: f64, dof_p: f64) {
        let by_l = DOF_L_UP_TO.partition_point(|most| (*most as f64) < dof_l);
        let by_p = DOF_P_BELOW_PERCENT.partition_point(|below| *below as f64 <= dof_p * 100.0);
        self.0[by_l][by_p] += 1;
    }

    /// Share of all files in each class that has any, and of those that are worth spreading.
    pub(crate) fn figures(&self) -> Vec<Measurement> {
        let all: u64 = self.0.iter().flatten().sum();
        if all == 0 {
            return Vec::new();
        }
        let share =
            |name: String, files: u64| Measurement::new(name, "1", files as f64 / all as f64);
        let worth: u64 = self.0.iter().map(|it| it[DOF_P_BELOW_PERCENT.len()]).sum();
        let mut figures = vec![share("files_dof_p_from_50_share".to_owned(), worth)];
        let by_l = DOF_L_UP_TO.map(|most| format!("to_{most}"));
        let by_l = by_l.into_iter().chain(["larger".to_owned()]);
        for (row, by_l) in self.0.iter().zip(by_l) {
            let by_p = DOF_P_BELOW_PERCENT.map(|below| format!("below_{below}"));
            let by_p = by_p.into_iter().chain(["from_50".to_owned()]);
            for (&files, by_p) in row.iter().zip(by_p).filter(|(files, _)| **files > 0) {
                figures.push(share(
                    format!("files_dof_l_{by_l}_dof_p_{by_p}_share"),
                    files,
                ));
            }
        }
        figures
    }
}

/// Paths of all files below `directory`.
fn all_below(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::io("list", directory, source);
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            files.extend(all_below(&entry.path())?);
        } else if kind.is_file() {
            files.push(entry.path());
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_by_both_degrees() {
        let mut files = Files::default();
        for (dof_l, dof_p) in [(1.0, 0.0), (1.0, 0.5), (1.5, 0.24), (8.5, 0.25)] {
            files.add(dof_l, dof_p);
        }
        let figures = files.figures();
        let named: Vec<_> = figures.iter().map(|it| it.metric.as_str()).collect();
        let expected = [
            "files_dof_p_from_50_share",
            "files_dof_l_to_1_dof_p_below_25_share",
            "files_dof_l_to_1_dof_p_from_50_share",
            "files_dof_l_to_2_dof_p_below_25_share",
            "files_dof_l_larger_dof_p_below_50_share",
        ];
        assert_eq!(named, expected);
        assert!(figures.iter().all(|it| it.value == 0.25));
        assert!(Files::default().figures().is_empty());
    }

    #[test]
    fn files_in_directories_below_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("app/cache");
        fs::create_dir_all(&below).unwrap();
        fs::write(below.join("1"), "x").unwrap();
        fs::write(directory.path().join("app/log"), "x").unwrap();
        let mut found = all_below(directory.path()).unwrap();
        found.sort();
        assert_eq!(found, [below.join("1"), directory.path().join("app/log")]);
    }
}
