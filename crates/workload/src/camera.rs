//! Scenario B (§3, §4.3.2): a camera's burst mode. The camera writes bursts of 8 MB shots. A
//! thumbnail maker, which is another process, appends to its file in 1 KB writes. The next burst
//! begins when the thumbnails of the last one are made. The figure is the number of shots in a
//! fixed time.

use crate::background::{Background, Pattern, Script, Shared, monotonic_ns, nap};
use crate::code::Code;
use crate::content;
use crate::footprint::Footprint;
use crate::meter::Meter;
use crate::stage::{Foreground, RunContext, wait};
use crate::timed::{Timed, create};
use crate::{Error, Measurement};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use sys::device::Pages;

/// Size of one shot: 8 MB as in the paper.
const SHOT_BYTES: usize = 8 << 20;

/// Number of shots in a burst.
const BURST: u64 = 30;

/// Shortest interval between two shots of the sensor: 8 a second.
const PACE: Duration = Duration::from_millis(125);

/// Time after which missing thumbnails are an error.
const PROCESSING_LIMIT: Duration = Duration::from_secs(600);

/// Number of 1 KB writes for one thumbnail.
const THUMBNAIL_WRITES: u32 = 24;

/// Work on the image between two writes. A thumbnail takes 0.1 s, so that the maker keeps up with
/// the camera and hardly sleeps.
const THUMBNAIL_WORK: Duration = Duration::from_millis(4);

/// The thumbnail maker, see [`Background::want`].
const THUMBNAILS: Pattern = Pattern {
    perform: |script, shared| make_thumbnails(script, shared),
    ..crate::load::WRITER
};

pub(crate) const BURSTS: Code = Code::app(
    |_, context| Box::new(Bursts::new(context)),
    |sizes| Footprint::of(shots_at_most(sizes.camera) * sizes.shot_bytes, 0),
)
.scenario();

/// Most shots that the sensor gives in `time`.
fn shots_at_most(time: Duration) -> u64 {
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
    pub(crate) fn new(context: &RunContext) -> Self {
        Bursts {
            directory: context.directory.clone(),
            data: content::uniform(
                SHOT_BYTES.min(context.sizes.shot_bytes as usize),
                &mut context.random("foreground"),
            ),
            time: context.sizes.camera,
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

/// Appends each wanted thumbnail in 1 KB writes, with work on the image between them. Most
/// writes go to a page that already has data.
fn make_thumbnails(script: &Script, shared: &Shared) -> Result<(), i32> {
    let mut offset = 0;
    loop {
        let made = shared.rounds.load(Ordering::Relaxed);
        if made >= shared.wanted.load(Ordering::Relaxed) {
            nap(THUMBNAIL_WORK);
            continue;
        }
        for _ in 0..THUMBNAIL_WRITES {
            nap(THUMBNAIL_WORK);
            let begun_ns = monotonic_ns();
            offset += script.write_at(&script.data[..1 << 10], offset, shared)?;
            shared.note_call(monotonic_ns() - begun_ns);
        }
        shared.rounds.store(made + 1, Ordering::Relaxed);
    }
}

impl Foreground for Bursts {
    fn prepare(&mut self) -> Result<(), Error> {
        let path = self.thumbnails_path();
        let file = create(&path).map_err(|source| Error::io("creat", &path, source))?;
        self.script = Some(Script {
            pattern: &THUMBNAILS,
            file,
            file_bytes: 0,
            rounds: u64::MAX,
            data: Pages::zeroed(4 << 10),
            random: sys::random::Random::for_purpose(0, "unused"),
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
        self.thumbnail_writes = self.thumbnails.take().and_then(|it| it.noted_calls());
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
