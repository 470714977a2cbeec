//! FastTrack's gallery and game on a phone after long use ("002", 6.2.3). Their files are
//! fragmented unless the policy defragments them, and none of their pages are in memory when the
//! user opens them.
//!
//! Months of use cannot be played for each run, so the files are fragmented at once. 512 KB are in
//! about ten pieces, the dissertation's example for the cost of fragments (3.3.1). One long file
//! lies beside them, as on any phone. `frontrow defrag` measures the time of contiguous reads in
//! it.

use crate::background::Background;
use crate::code::Code;
use crate::front::gallery::{self, gallery};
use crate::front::game::{self, game};
use crate::front::{Front, Scenario, be_elsewhere};
use crate::launch::write_new;
use crate::layout::settle;
use crate::meter::Meter;
use crate::pieces::{in_pieces, piece_bytes};
use crate::stage::{Foreground, RunContext};
use crate::upkeep;
use crate::{Error, Measurement};
use record::policy::Upkeep;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use sys::device::{Layout, PAGE_BYTES};
use sys::random::Random;

const FILM_BYTES: usize = 8 << 20;

/// Twice the commit interval of ext4, which then discards the blocks that layout and upkeep freed.
const REST: Duration = Duration::from_secs(10);

pub(crate) const GALLERY: Code = Code::app(
    |request, context| Box::new(Aged::new(gallery(context), context, request.upkeep)),
    gallery::GALLERY.footprint,
);
pub(crate) const GAME: Code = Code::app(
    |request, context| Box::new(Aged::new(game(context), context, request.upkeep)),
    game::GAME.footprint,
);

/// An app with fragmented files.
pub(crate) struct Aged<S> {
    front: Front<S>,
    directory: PathBuf,
    random: Random,
    upkeep: Upkeep,
    /// Mean DoF_L of the files that are read, just before the reads.
    dof_l: f64,
}

impl<S: Scenario> Aged<S> {
    pub(crate) fn new(front: Front<S>, context: &RunContext, upkeep: Upkeep) -> Self {
        Aged {
            front,
            directory: context.directory.clone(),
            random: context.random("pieces"),
            upkeep,
            dof_l: 0.0,
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let read = self.front.scenario.read_files();
        [&self.front.app.program]
            .into_iter()
            .chain(read)
            .cloned()
            .collect()
    }

    /// Writes a file again in pieces.
    fn come_apart(&mut self, path: &Path) -> io::Result<()> {
        let content = fs::read(path)?;
        let file = OpenOptions::new().write(true).truncate(true).open(path)?;
        let pages = content.len().div_ceil(PAGE_BYTES) as u64;
        in_pieces(&file, &piece_bytes(pages, &mut self.random))?;
        file.write_all_at(&content, 0)?;
        file.sync_data()
    }
}

/// Mean DoF_L of the files.
fn dof_l(files: &[PathBuf]) -> io::Result<f64> {
    let mut sum = 0.0;
    for path in files {
        let layout = Layout::of(&File::open(path)?, false)?;
        sum += layout.fragments() as f64 / layout.fewest_fragments().max(1) as f64;
    }
    Ok(sum / files.len().max(1) as f64)
}

impl<S: Scenario> Foreground for Aged<S> {
    fn prepare(&mut self) -> Result<(), Error> {
        self.front.prepare()?;
        write_new(
            &self.directory.join("film"),
            &self.front.app.data,
            FILM_BYTES,
        )?;
        let files = self.files();
        if self.upkeep != Upkeep::Unaged {
            for path in &files {
                let failed = |source| Error::io("lay out", path, source);
                self.come_apart(path).map_err(failed)?;
            }
            settle(&self.directory)?;
            upkeep::perform(self.upkeep, &self.directory, &AtomicBool::new(false))?;
        }
        std::thread::sleep(REST);
        settle(&self.directory)?;
        let failed = |source| Error::io("find the pieces of files in", &self.directory, source);
        self.dof_l = dof_l(&files).map_err(failed)?;
        Ok(())
    }

    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        for number in 0..self.front.app.responses {
            if number > 0 {
                be_elsewhere(meter);
            }
            self.front.forget()?;
            self.front.open(meter)?;
        }
        Ok(())
    }

    fn figures(&self, _: Duration) -> Vec<Measurement> {
        vec![Measurement::new("dof_l", "1", self.dof_l)]
    }
}
