//! Scenario B (§3, §4.3.2): a camera's burst mode. The camera writes bursts of 8 MB shots. A
//! thumbnail maker, which is another process, appends to its file in 1 KB writes. The next burst
//! begins when the thumbnails of the last one are made. The figure is the number of shots in a
//! fixed time.

use crate::background::{Background, Script};
use crate::content;
use crate::load::Pattern;
use crate::meter::Meter;
use crate::stage::{Foreground, Ground, wait};
use crate::timed::{Timed, create};
use crate::{Error, Measurement};
use device::Pages;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Size of one shot: 8 MB as in the paper.
const SHOT_BYTES: usize = 8 << 20;

/// Number of shots in a burst.
const BURST: u64 = 30;

/// Shortest interval between two shots of the sensor: 8 a second.
const PACE: Duration = Duration::from_millis(125);

/// Time after which missing thumbnails are an error.
const PROCESSING_LIMIT: Duration = Duration::from_secs(600);

/// Most shots that the sensor gives in `time`.
pub(crate) fn shots_at_most(time: Duration) -> u64 {
    time.as_millis().div_ceil(PACE.as_millis()) as u64 + 1
}

/// Workload of scenario B.
pub(crate) struct Bursts {
    directory: PathBuf,
    data: Pages,
    time: Duration,
    thumbnails: Option<Background>,
    script: Option<Script>,
    shots: u64,
    /// Mean and longest write of the thumbnail maker; None before the first.
    thumbnail_writes: Option<(Duration, Duration)>,
}

impl Bursts {
    pub(crate) fn new(ground: &Ground) -> Self {
        Bursts {
            directory: ground.directory.clone(),
            data: content::uniform(
                SHOT_BYTES.min(ground.sizes.shot_bytes as usize),
                &mut ground.random("foreground"),
            ),
            time: ground.sizes.camera,
            thumbnails: None,
            script: None,
            shots: 0,
            thumbnail_writes: None,
        }
    }

    fn thumbnails_path(&self) -> PathBuf {
        self.directory.join("thumbnails")
    }

    fn shoot(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let path = self.directory.join(format!("shot-{}", self.shots));
        meter.span("shot", |meter| {
            let mut file = Timed::creat(meter, &path)?;
            file.write(meter, &self.data)?;
            file.close(meter)
        })?;
        self.shots += 1;
        if let Some(thumbnails) = &self.thumbnails {
            thumbnails.want(self.shots);
        }
        Ok(())
    }

    fn await_thumbnails(&mut self, meter: &Meter) -> Result<(), Error> {
        let shots = self.shots;
        let Some(thumbnails) = &mut self.thumbnails else {
            return Ok(());
        };
        wait(PROCESSING_LIMIT, meter.stop(), || {
            thumbnails.check()?;
            Ok(thumbnails.rounds() >= shots)
        })?;
        Ok(())
    }
}

impl Foreground for Bursts {
    fn prepare(&mut self) -> Result<(), Error> {
        let path = self.thumbnails_path();
        let file = create(&path).map_err(|source| Error::io("creat", &path, source))?;
        self.script = Some(Script {
            pattern: Pattern::Thumbnails,
            file,
            file_bytes: 0,
            rounds: u64::MAX,
            data: Pages::zeroed(4 << 10),
            random: crate::seed::Random::new(0, "unused"),
            idle_class: false,
        });
        Ok(())
    }

    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        if let Some(script) = self.script.take() {
            self.thumbnails = Some(Background::start(script, self.thumbnails_path(), None)?);
        }
        let begun = Instant::now();
        while begun.elapsed() < self.time {
            let shot = Instant::now();
            self.shoot(meter)?;
            std::thread::sleep(PACE.saturating_sub(shot.elapsed()));
            if self.shots.is_multiple_of(BURST) {
                self.await_thumbnails(meter)?;
            }
        }
        // The last thumbnails are made outside of the measured time.
        let after = Instant::now();
        self.await_thumbnails(meter)?;
        meter.exclude(after.elapsed());
        self.thumbnail_writes = self.thumbnails.take().and_then(|it| it.thumbnail_writes());
        Ok(())
    }

    fn figures(&self, _: Duration) -> Vec<Measurement> {
        let mut figures = vec![Measurement::new("shots", "1", self.shots as f64)];
        if let Some((mean, longest)) = self.thumbnail_writes {
            figures.push(Measurement::duration("thumbnail_write_mean_ms", mean));
            figures.push(Measurement::duration("thumbnail_write_max_ms", longest));
        }
        figures
    }
}
