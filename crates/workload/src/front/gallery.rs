//! The workload `gallery`: an album is opened. Each photo is read, and its thumbnail appended to a cache.

use super::{App, DECODE, Front, OWN_BYTES, Scenario};
use crate::Error;
use crate::code::Code;
use crate::footprint::Footprint;
use crate::launch::write_new;
use crate::meter::Meter;
use crate::sizes::Size;
use crate::stage::RunContext;
use crate::timed::{Timed, forget_cached};
use std::path::PathBuf;

/// Number of photos in the album.
const PHOTOS: Size = Size {
    demo: 24,
    full: 50,
    least: 1,
    tiny: 2,
};

/// Size of a photo and of its thumbnail.
const PHOTO_BYTES: usize = 512 << 10;
const THUMBNAIL_BYTES: usize = 16 << 10;

pub(crate) const GALLERY: Code = Code::app(
    |_, context| Box::new(gallery(context)),
    |sizes| {
        let each = (PHOTO_BYTES + THUMBNAIL_BYTES) as u64;
        Footprint::of(OWN_BYTES + sizes.pick(PHOTOS) * each, 0)
    },
);

/// Album of photos, and its thumbnails.
pub(crate) struct Gallery {
    photos: Vec<PathBuf>,
    thumbnails: PathBuf,
}

pub(crate) fn gallery(context: &RunContext) -> Front<Gallery> {
    Front {
        app: App::new(context),
        scenario: Gallery::new(context),
    }
}

impl Gallery {
    fn new(context: &RunContext) -> Self {
        let photo = |index| context.directory.join(format!("photo-{index}.jpg"));
        Gallery {
            photos: (0..context.sizes.pick(PHOTOS)).map(photo).collect(),
            thumbnails: context.directory.join("thumbnails"),
        }
    }
}

impl Scenario for Gallery {
    fn prepare(&self, app: &App) -> Result<(), Error> {
        for photo in &self.photos {
            write_new(photo, &app.data, PHOTO_BYTES)?;
            forget_cached(photo)?;
        }
        Ok(())
    }

    fn read_files(&self) -> &[PathBuf] {
        &self.photos
    }

    fn respond(&mut self, app: &mut App, meter: &mut Meter) -> Result<(), Error> {
        app.start(meter)?;
        let mut thumbnails = Timed::creat(meter, &self.thumbnails)?;
        for photo in &self.photos {
            meter.step(|meter| {
                app.read(meter, photo)?;
                std::thread::sleep(DECODE);
                thumbnails.write(meter, &app.data[..THUMBNAIL_BYTES])
            })?;
        }
        thumbnails.close(meter)?;
        app.save_settings(meter)
    }
}
