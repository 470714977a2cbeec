//! The paper's microbenchmarks M1 to M5 (§6.1).

use crate::Error;
use crate::background::Background;
use crate::code::Code;
use crate::content;
use crate::footprint::Footprint;
use crate::meter::Meter;
use crate::stage::{Foreground, RunContext, wait};
use crate::timed::{Timed, create, truncate};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::device::Pages;
use sys::random::Random;

pub(crate) const M1: Code = Code::app(
    |_, context| Box::new(Recreate::m1(context)),
    |sizes| Footprint::of(4 << 10, sizes.m1_iterations * (4 << 10)),
);
pub(crate) const M2: Code = Code::app(
    |_, context| Box::new(Recreate::new(context, 1 << 20, context.sizes.m2_iterations)),
    |sizes| Footprint::of(1 << 20, sizes.m2_iterations << 20),
);
pub(crate) const M3: Code = Code::app(
    |_, context| Box::new(SmallWrites::m3(context)),
    |sizes| Footprint::of(sizes.m3_bytes, 0),
);
pub(crate) const M4: Code = Code::app(
    |_, context| Box::new(Truncate::m4(context)),
    |sizes| Footprint::of(2 << 20, sizes.m4_iterations * (2 << 20)),
);
pub(crate) const M5: Code = Code::app(
    |_, context| Box::new(NewFile::m5(context)),
    |sizes| Footprint::of(sizes.m5_iterations * (4 << 10), 0),
)
.allowing_commit();

/// M1 and M2: creat, one write, fsync and close of the same file.
pub(crate) struct Recreate {
    path: PathBuf,
    data: Pages,
    iterations: u64,
}

impl Recreate {
    /// M1, which writes 4 KB.
    pub(crate) fn m1(context: &RunContext) -> Self {
        Recreate::new(context, 4 << 10, context.sizes.m1_iterations)
    }

    fn new(context: &RunContext, bytes: usize, iterations: u64) -> Self {
        Recreate {
            path: context.directory.join("file"),
            data: content::uniform(bytes, &mut context.random("foreground")),
            iterations,
        }
    }

    /// Runs one iteration.
    pub(crate) fn once(&self, meter: &mut Meter) -> Result<(), Error> {
        write_durably(meter, &self.path, &self.data)
    }
}

impl Foreground for Recreate {
    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        (0..self.iterations).try_for_each(|_| self.once(meter))
    }
}

/// M3: 1 KB writes until the file is full.
pub(crate) struct SmallWrites {
    path: PathBuf,
    data: Pages,
    writes: u64,
}

impl SmallWrites {
    const WRITE_BYTES: u64 = 1 << 10;

    fn m3(context: &RunContext) -> Self {
        SmallWrites {
            path: context.directory.join("file"),
            data: content::uniform(4 << 10, &mut context.random("foreground")),
            writes: context.sizes.m3_bytes / Self::WRITE_BYTES,
        }
    }
}

impl Foreground for SmallWrites {
    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        let mut file = Timed::creat(meter, &self.path)?;
        let data = &self.data[..Self::WRITE_BYTES as usize];
        for _ in 0..self.writes {
            file.write(meter, data)?;
        }
        file.close(meter)
    }
}

/// M4: truncates a 2 MB file to nothing and writes it again.
pub(crate) struct Truncate {
    path: PathBuf,
    data: Pages,
    iterations: u64,
}

impl Truncate {
    fn m4(context: &RunContext) -> Self {
        Truncate {
            path: context.directory.join("file"),
            data: content::uniform(2 << 20, &mut context.random("foreground")),
            iterations: context.sizes.m4_iterations,
        }
    }
}

impl Foreground for Truncate {
    fn prepare(&mut self) -> Result<(), Error> {
        create(&self.path)
            .and_then(|mut file| file.write_all(&self.data))
            .map_err(|source| Error::io("write", &self.path, source))
    }

    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        for _ in 0..self.iterations {
            truncate(meter, &self.path, 0)?;
            let mut file = Timed::open_to_write(meter, &self.path)?;
            file.write(meter, &self.data)?;
            file.close(meter)?;
        }
        Ok(())
    }
}

/// M5: makes a new 4 KB file durable while another task truncates a big file and writes it again.
/// Each new file is made in another round of that task, at another point of it.
pub(crate) struct NewFile {
    directory: PathBuf,
    data: Pages,
    iterations: u64,
    random: Random,
    poll_limit: Duration,
}

impl NewFile {
    /// Longest wait for a round: a slow device has to write the whole file.
    const ROUND_LIMIT: Duration = Duration::from_secs(3600);

    fn m5(context: &RunContext) -> Self {
        let mut random = context.random("foreground");
        NewFile {
            directory: context.directory.clone(),
            data: content::uniform(4 << 10, &mut random),
            iterations: context.sizes.m5_iterations,
            random,
            poll_limit: Self::ROUND_LIMIT,
        }
    }

    fn await_next_round(&self, meter: &Meter, background: &mut Background) -> Result<(), Error> {
        let round = background.rounds();
        // A load that does not go over a file again and again has no rounds.
        if round == 0 {
            return Ok(());
        }
        wait(self.poll_limit, meter.stop(), || {
            background.check()?;
            Ok(background.rounds() > round)
        })?;
        Ok(())
    }
}

impl Foreground for NewFile {
    fn measure(
        &mut self,
        meter: &mut Meter,
        mut background: Option<&mut Background>,
    ) -> Result<(), Error> {
        for iteration in 0..self.iterations {
            let shift = Duration::from_millis(self.random.below(500));
            let waiting = std::time::Instant::now();
            if let Some(background) = background.as_deref_mut() {
                self.await_next_round(meter, background)?;
            }
            std::thread::sleep(shift);
            meter.exclude(waiting.elapsed());
            let path = self.directory.join(format!("new-{iteration}"));
            write_durably(meter, &path, &self.data)?;
        }
        Ok(())
    }
}

/// creat, write, fsync and close of a file, each of them recorded.
pub(crate) fn write_durably(meter: &mut Meter, path: &Path, data: &[u8]) -> Result<(), Error> {
    let mut file = Timed::creat(meter, path)?;
    file.write(meter, data)?;
    file.fsync(meter)?;
    file.close(meter)
}
