//! The workload `game`: a game loads. It reads its assets and writes what it unpacks to a cache.

use super::{App, DECODE, Front, OWN_BYTES, Scenario};
use crate::Error;
use crate::code::Code;
use crate::footprint::Footprint;
use crate::launch::write_new;
use crate::meter::Meter;
use crate::sizes::{Size, Sizes};
use crate::stage::RunContext;
use crate::timed::{Timed, forget_cached};
use std::path::PathBuf;

/// Size of the assets that it reads.
const GAME_BYTES: Size = Size {
    demo: 24 << 20,
    full: 256 << 20,
    least: 1 << 20,
    tiny: 1 << 20,
};

/// Size of one of the asset files.
const ASSET_BYTES: usize = 2 << 20;

/// An eighth of the assets is unpacked.
pub(crate) const GAME: Code = Code::app(
    |_, context| Box::new(game(context)),
    |sizes| Footprint::of(OWN_BYTES + assets_bytes(sizes) / 8 * 9, 0),
);

fn assets_bytes(sizes: &Sizes) -> u64 {
    sizes.pick(GAME_BYTES).next_multiple_of(1 << 20)
}

/// The assets and the cache.
pub(crate) struct Game {
    assets: Vec<PathBuf>,
    cache: PathBuf,
}

pub(crate) fn game(context: &RunContext) -> Front<Game> {
    let assets = (assets_bytes(&context.sizes) as usize).div_ceil(ASSET_BYTES);
    let asset = |index| context.directory.join(format!("asset-{index}.obb"));
    Front {
        app: App::new(context),
        scenario: Game {
            assets: (0..assets).map(asset).collect(),
            cache: context.directory.join("cache"),
        },
    }
}

impl Scenario for Game {
    fn prepare(&self, app: &App) -> Result<(), Error> {
        for asset in &self.assets {
            write_new(asset, &app.data, ASSET_BYTES)?;
            forget_cached(asset)?;
        }
        Ok(())
    }

    fn read_files(&self) -> &[PathBuf] {
        &self.assets
    }

    fn respond(&mut self, app: &mut App, meter: &mut Meter) -> Result<(), Error> {
        app.start(meter)?;
        let mut cache = Timed::creat(meter, &self.cache)?;
        for asset in &self.assets {
            meter.step(|meter| {
                app.read(meter, asset)?;
                std::thread::sleep(DECODE);
                cache.write(meter, &app.data[..ASSET_BYTES / 8])
            })?;
        }
        meter.step(|meter| {
            cache.fsync(meter)?;
            cache.close(meter)
        })?;
        app.save_settings(meter)
    }
}
