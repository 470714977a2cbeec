//! Physical defragmentation by the device itself: UFS Host Initiated Defrag. It covers the whole
//! device, which does not know files.

use crate::defrag::Error;
use serde::Serialize;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use sys::PathError;
use sys::device::hid::{Hid, Size, State};

/// Interval between two queries of the device's state.
const LOOK: Duration = Duration::from_millis(100);

/// Number of queries until the device must have begun what it was told to do.
const LOOKS_FOR_BEGIN: u32 = 100;

/// Request to the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Only analyses the fragmentation.
    pub only_analyse: bool,
    /// Most bytes to defragment; None for all.
    pub limit_bytes: Option<u64>,
}

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rearranged {
    /// Bytes that were fragmented; None if the device does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragmented_bytes: Option<u64>,
    /// Whether the device finds a defragmentation necessary.
    pub required: bool,
    /// Whether it was done.
    pub done: bool,
}

/// Has the device analyse its fragmentation and, if it finds that necessary, defragment itself.
/// `progress` is called with the per cent done. The device is stopped in any case at the end.
///
/// # Errors
/// The system's error; [`Error::DeviceBusy`] if another program uses the defragmentation;
/// [`Error::DeviceStopped`] if it ended early; [`Error::Interrupted`] when `stop` becomes true.
pub fn rearrange(
    hid: &Hid,
    asked: Asked,
    progress: &mut dyn FnMut(u32),
    stop: &AtomicBool,
) -> Result<Rearranged, Error> {
    let run = Run { hid, stop };
    let state = hid.state().map_err(run.failed("read"))?;
    if matches!(state, State::Analysing | State::Defragmenting) {
        return Err(Error::DeviceBusy);
    }
    let mut size = None;
    let outcome = run.all(asked, &mut size, progress);
    let stopped = hid.stop(size).map_err(run.failed("write to"));
    outcome.and_then(|it| Ok(stopped.map(|()| it)?))
}

struct Run<'a> {
    hid: &'a Hid,
    stop: &'a AtomicBool,
}

impl<'a> Run<'a> {
    fn failed(&self, verb: &'static str) -> impl Fn(io::Error) -> PathError + use<> {
        PathError::of(verb, self.hid.directory())
    }

    fn all(
        &self,
        asked: Asked,
        size: &mut Option<Size>,
        progress: &mut dyn FnMut(u32),
    ) -> Result<Rearranged, Error> {
        // An old analysis is dropped: the device must make a new one.
        self.hid.stop(None).map_err(self.failed("write to"))?;
        self.hid.analyse().map_err(self.failed("write to"))?;
        let mut looks = 0;
        self.wait_while(State::Idle, &mut || {
            looks += 1;
            match looks {
                LOOKS_FOR_BEGIN => Err(Error::DeviceStopped),
                _ => Ok(()),
            }
        })?;
        let required = match self.wait_while(State::Analysing, &mut || Ok(()))? {
            State::Required => true,
            // There is nothing more to do.
            State::NotRequired | State::Completed => false,
            State::Idle | State::Analysing | State::Defragmenting => {
                return Err(Error::DeviceStopped);
            }
        };
        let fragmented = self.hid.fragmented_bytes().map_err(self.failed("read"))?;
        let mut rearranged = Rearranged {
            fragmented_bytes: fragmented,
            required,
            done: false,
        };
        if asked.only_analyse || !required {
            return Ok(rearranged);
        }
        let begun = self.hid.defragment(asked.limit_bytes);
        *size = Some(begun.map_err(self.failed("write to"))?);
        let mut show = || {
            let percent = self.hid.progress_percent().map_err(self.failed("read"))?;
            progress(percent);
            Ok(())
        };
        // The device may analyse itself again before it begins.
        let mut state = State::Required;
        while matches!(
            state,
            State::Required | State::Analysing | State::Defragmenting
        ) {
            state = self.wait_while(state, &mut show)?;
        }
        match state {
            State::Idle => Err(Error::DeviceStopped),
            _ => {
                rearranged.done = true;
                Ok(rearranged)
            }
        }
    }

    /// Waits while the device is in `state`, and returns the next state.
    fn wait_while(
        &self,
        state: State,
        look: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<State, Error> {
        loop {
            let now = self.hid.state().map_err(self.failed("read"))?;
            if now != state {
                return Ok(now);
            }
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            look()?;
            thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use sys::device::Device;
    use tempfile::TempDir;

    /// A device whose attributes are files that a thread changes.
    struct Played {
        root: TempDir,
        over: AtomicBool,
    }

    impl Played {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let disk = root.path().join("sys/devices/1d84000.ufs/host0/block/sda");
            fs::create_dir_all(disk.join("queue")).unwrap();
            fs::create_dir_all(root.path().join("sys/class/block")).unwrap();
            symlink(&disk, root.path().join("sys/class/block/sda")).unwrap();
            fs::create_dir(root.path().join("sys/devices/1d84000.ufs/hid")).unwrap();
            let played = Played {
                root,
                over: AtomicBool::new(false),
            };
            played.set("state", "idle");
            played.set("fragmented_size", "4294967295");
            played.set("defrag_size", "77");
            played.set("progress_ratio", "0");
            played.set("analysis_trigger", "");
            played.set("defrag_trigger", "");
            played
        }

        fn attribute(&self, name: &str) -> PathBuf {
            let directory = Path::new("sys/devices/1d84000.ufs/hid");
            self.root.path().join(directory).join(name)
        }

        /// Changes an attribute atomically, as the kernel's attributes change.
        fn set(&self, name: &str, text: &str) {
            let beside = self.root.path().join("beside");
            fs::write(&beside, format!("{text}\n")).unwrap();
            fs::rename(beside, self.attribute(name)).unwrap();
        }

        fn get(&self, name: &str) -> String {
            let text = fs::read_to_string(self.attribute(name)).unwrap();
            text.trim().to_owned()
        }

        /// Waits for a trigger; false if the test ends before.
        fn ordered(&self, trigger: &str) -> bool {
            while self.get(trigger) != "enable" {
                if self.over.load(Ordering::Relaxed) {
                    return false;
                }
                thread::sleep(Duration::from_millis(1));
            }
            true
        }

        /// Plays a device: finds `found` in the analysis, and defragments until `last`.
        fn play(&self, found: &str, last: &str) {
            if !self.ordered("analysis_trigger") {
                return;
            }
            self.set("state", "analysis_in_progress");
            self.set("fragmented_size", "1000");
            self.set("state", found);
            if !self.ordered("defrag_trigger") {
                return;
            }
            self.set("progress_ratio", "40");
            self.set("state", "defrag_in_progress");
            self.set("state", last);
        }

        fn run(&self, found: &str, last: &str, asked: Asked) -> Result<Rearranged, Error> {
            let hid = Hid::of(&Device::resolve(self.root.path(), "sda").unwrap()).unwrap();
            thread::scope(|scope| {
                scope.spawn(|| self.play(found, last));
                let outcome = rearrange(&hid, asked, &mut |_| {}, &AtomicBool::new(false));
                self.over.store(true, Ordering::Relaxed);
                outcome
            })
        }
    }

    const ALL: Asked = Asked {
        only_analyse: false,
        limit_bytes: Some(409_600),
    };

    #[test]
    fn what_is_fragmented_is_defragmented_and_the_device_left_as_it_was() {
        let played = Played::new();
        let outcome = played.run("defrag_required", "defrag_completed", ALL);
        let expected = Rearranged {
            fragmented_bytes: Some(4_096_000),
            required: true,
            done: true,
        };
        assert_eq!(outcome.unwrap(), expected);
        assert_eq!(played.get("defrag_trigger"), "disable");
        assert_eq!(played.get("defrag_size"), "77");
    }

    #[test]
    fn a_check_and_a_device_in_order_are_only_looked_at() {
        let check = Asked {
            only_analyse: true,
            ..ALL
        };
        for (found, asked, required) in [
            ("defrag_required", check, true),
            ("defrag_not_required", ALL, false),
        ] {
            let played = Played::new();
            let outcome = played.run(found, "defrag_completed", asked).unwrap();
            assert_eq!((outcome.required, outcome.done), (required, false));
            assert_eq!(played.get("defrag_trigger"), "disable");
        }
    }

    #[test]
    fn a_device_that_stops_early_has_not_done_it() {
        let played = Played::new();
        let outcome = played.run("defrag_required", "idle", ALL);
        assert!(matches!(outcome, Err(Error::DeviceStopped)), "{outcome:?}");
        assert_eq!(played.get("defrag_size"), "77");
    }

    #[test]
    fn interrupted_it_is_switched_off_and_somebody_elses_work_is_left_alone() {
        let played = Played::new();
        let hid = Hid::of(&Device::resolve(played.root.path(), "sda").unwrap()).unwrap();
        let outcome = rearrange(&hid, ALL, &mut |_| {}, &AtomicBool::new(true));
        assert!(matches!(outcome, Err(Error::Interrupted)), "{outcome:?}");
        assert_eq!(played.get("defrag_trigger"), "disable");
        played.set("state", "defrag_in_progress");
        played.set("defrag_trigger", "enable");
        let outcome = rearrange(&hid, ALL, &mut |_| {}, &AtomicBool::new(false));
        assert!(matches!(outcome, Err(Error::DeviceBusy)), "{outcome:?}");
        assert_eq!(played.get("defrag_trigger"), "enable");
    }
}
