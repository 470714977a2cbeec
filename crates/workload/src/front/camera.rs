//! The workload `camera`: a camera is left. The burst in memory is made durable, then the home screen
//! is read.

use super::{App, Front, OWN_BYTES, Scenario};
use crate::Error;
use crate::code::Code;
use crate::footprint::Footprint;
use crate::meter::Meter;
use crate::sizes::Size;
use crate::stage::RunContext;
use crate::timed::Timed;
use std::path::{Path, PathBuf};

/// Number of shots in the burst, and size of one.
const SHOTS: Size = Size {
    demo: 6,
    full: 30,
    least: 1,
    tiny: 2,
};
const SHOT_BYTES: Size = Size {
    demo: 4 << 20,
    full: 10 << 20,
    least: 1 << 20,
    tiny: 64 << 10,
};

pub(crate) const CAMERA: Code = Code::app(
    |_, context| Box::new(camera(context)),
    |sizes| {
        let all = OWN_BYTES + sizes.pick(SHOTS) * sizes.pick(SHOT_BYTES);
        Footprint::of(all, all)
    },
);

/// Burst of shots, and their files.
struct Camera {
    shots: Vec<PathBuf>,
    shot_bytes: usize,
}

fn camera(context: &RunContext) -> Front<Camera> {
    let shot = |index| context.directory.join(format!("shot-{index}.jpg"));
    Front {
        app: App::new(context),
        scenario: Camera {
            shots: (0..context.sizes.pick(SHOTS)).map(shot).collect(),
            shot_bytes: context.sizes.pick(SHOT_BYTES) as usize,
        },
    }
}

impl Camera {
    fn save(&self, app: &App, meter: &mut Meter, shot: &Path) -> Result<(), Error> {
        let mut file = Timed::creat(meter, shot)?;
        let mut left = self.shot_bytes;
        while left > 0 {
            let now = left.min(app.data.len());
            file.write(meter, &app.data[..now])?;
            left -= now;
        }
        file.fsync(meter)?;
        file.close(meter)
    }
}

impl Scenario for Camera {
    fn prepare(&self, _: &App) -> Result<(), Error> {
        Ok(())
    }

    fn read_files(&self) -> &[PathBuf] {
        &[]
    }

    fn respond(&mut self, app: &mut App, meter: &mut Meter) -> Result<(), Error> {
        for shot in &self.shots {
            meter.step(|meter| self.save(app, meter, shot))?;
        }
        app.start(meter)?;
        app.save_settings(meter)
    }
}
