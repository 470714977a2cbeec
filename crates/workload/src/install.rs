//! Scenario C (§3, §4.3.3): an app is installed from a package on the device. The installer reads
//! the package, and writes its files in 64 KB buffered writes with an fsync at the end of each.
//! Then it registers the app in a file that it replaces.

use crate::Error;
use crate::background::Background;
use crate::code::Code;
use crate::content;
use crate::footprint::Footprint;
use crate::launch::{replace, write_new};
use crate::meter::Meter;
use crate::stage::{Foreground, RunContext};
use crate::timed::{Timed, forget_cached};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sys::device::Pages;
use sys::random::Random;

/// Size of a read of the package, and of a write of a file.
const CHUNK_BYTES: usize = 64 << 10;

/// Time for which unpacking a chunk keeps the installer from writing: about 32 MB/s. The kernel may
/// write back dirty data meanwhile.
const UNPACK: Duration = Duration::from_millis(2);

/// Size of the list of installed apps.
const REGISTER_BYTES: usize = 200 << 10;

pub(crate) const INSTALLS: Code = Code::app(
    |_, context| Box::new(Installs::new(context)),
    |sizes| {
        Footprint::of(
            2 * sizes.package_bytes,
            sizes.installs * sizes.package_bytes,
        )
    },
)
.scenario();

/// Workload of scenario C.
pub(crate) struct Installs {
    directory: PathBuf,
    package: PathBuf,
    register: PathBuf,
    data: Pages,
    buffer: Pages,
    /// Size of each file in the package, in chunks.
    files: Vec<u64>,
    installs: u64,
}

impl Installs {
    pub(crate) fn new(context: &RunContext) -> Self {
        let mut random = context.random("foreground");
        let chunks = (context.sizes.package_bytes / CHUNK_BYTES as u64).max(1);
        Installs {
            directory: context.directory.join("app"),
            package: context.directory.join("app.apk"),
            register: context.directory.join("packages.xml"),
            files: split(chunks, &mut random),
            data: content::uniform(1 << 20, &mut random),
            buffer: Pages::zeroed(CHUNK_BYTES),
            installs: context.sizes.installs,
        }
    }

    fn install(&mut self, meter: &mut Meter) -> Result<(), Error> {
        let mut package = Timed::open_to_read(meter, &self.package)?;
        for (index, chunks) in self.files.iter().enumerate() {
            let path = self.directory.join(format!("file-{index}"));
            let mut file = Timed::creat(meter, &path)?;
            for _ in 0..*chunks {
                package.read(meter, &mut self.buffer)?;
                std::thread::sleep(UNPACK);
                file.write(meter, &self.buffer)?;
            }
            file.fsync(meter)?;
            file.close(meter)?;
        }
        package.close(meter)?;
        replace(meter, &self.register, &self.data[..REGISTER_BYTES])
    }

    fn uninstall(&self) -> Result<(), Error> {
        for index in 0..self.files.len() {
            let path = self.directory.join(format!("file-{index}"));
            std::fs::remove_file(&path).map_err(|source| Error::io("unlink", &path, source))?;
        }
        forget_cached(&self.package)
    }
}

impl Foreground for Installs {
    fn prepare(&mut self) -> Result<(), Error> {
        std::fs::create_dir(&self.directory)
            .map_err(|source| Error::io("make", &self.directory, source))?;
        let chunks: u64 = self.files.iter().sum();
        write_new(&self.package, &self.data, chunks as usize * CHUNK_BYTES)?;
        write_new(&self.register, &self.data, REGISTER_BYTES)?;
        forget_cached(&self.package)
    }

    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        for _ in 0..self.installs {
            meter.span("install", |meter| self.install(meter))?;
            let undoing = Instant::now();
            self.uninstall()?;
            meter.exclude(undoing.elapsed());
        }
        Ok(())
    }
}

/// Sizes of a package's files: one large, some of a few chunks, many of one.
fn split(chunks: u64, random: &mut Random) -> Vec<u64> {
    let mut files = vec![(chunks / 3).max(1)];
    let mut left = chunks - files[0];
    while left > 0 {
        let largest = if random.below(4) == 0 { 32 } else { 4 };
        let file = random.between(1, largest).min(left);
        files.push(file);
        left -= file;
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_package_make_it_up() {
        for chunks in [1, 2, 100, 688] {
            let files = split(chunks, &mut Random::for_purpose(chunks, "test"));
            assert_eq!(files.iter().sum::<u64>(), chunks);
            assert!(files.iter().all(|file| *file > 0));
        }
    }
}
