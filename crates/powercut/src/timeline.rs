//! A stream played step by step, and the steps at which its records were sent and ended.

use crate::Error;
use crate::stream::{Stream, What};
use replay::flash::{Command, Flash, Snapshot};

/// Number of a step. In a step one record is submitted, or the device handles one event.
pub type Step = u32;

/// Stands for the step of an event that did not happen.
pub const NEVER: Step = Step::MAX;

/// A stream that is being played through the flash core.
pub struct Player<'a> {
    stream: &'a Stream,
    flash: Flash,
    now_ns: u64,
    next: usize,
    step: Step,
    /// Number of the record in each slot of the device.
    slots: Vec<Option<u32>>,
}

/// Saved state of a player.
pub struct Saved {
    flash: Snapshot,
    now_ns: u64,
    next: usize,
    step: Step,
    slots: Vec<Option<u32>>,
}

/// Effects of one step.
#[derive(Debug, Default)]
pub struct Done {
    /// Number of the record that was submitted; None if none was.
    pub submitted: Option<u32>,
    /// Numbers of the records whose commands ended successfully.
    pub completed: Vec<u32>,
}

impl<'a> Player<'a> {
    /// Begins at the stream's first record with an empty device.
    ///
    /// # Errors
    /// [`Error::Flash`].
    pub fn new(stream: &'a Stream) -> Result<Self, Error> {
        Ok(Player {
            stream,
            flash: Flash::savable(&stream.config)?,
            now_ns: 0,
            next: 0,
            step: 0,
            slots: vec![None; stream.config.queue_depth() as usize + 1],
        })
    }

    /// Number of the next step.
    pub fn step(&self) -> Step {
        self.step
    }

    /// The device that the stream is played on.
    pub fn flash(&mut self) -> &mut Flash {
        &mut self.flash
    }

    /// Time of the device, in nanoseconds.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Saves the player and its device.
    pub fn save(&self) -> Saved {
        Saved {
            flash: self.flash.save().expect("the device was made savable"),
            now_ns: self.now_ns,
            next: self.next,
            step: self.step,
            slots: self.slots.clone(),
        }
    }

    /// Restores the saved state.
    pub fn restore(&mut self, saved: &Saved) {
        self.flash.restore(&saved.flash);
        self.now_ns = saved.now_ns;
        self.next = saved.next;
        self.step = saved.step;
        self.slots.clone_from(&saved.slots);
    }

    /// Plays one step; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`Error::Failed`] if a command ends with another result than in the recording, while the
    /// power is on.
    pub fn go_on(&mut self) -> Result<Option<Done>, Error> {
        let record = self.stream.records.get(self.next);
        let until_ns = record.map_or(self.stream.end_ns, |it| it.now_ns);
        let mut done = Done::default();
        match self.flash.next_ns().filter(|due_ns| *due_ns <= until_ns) {
            Some(due_ns) => {
                self.now_ns = due_ns.max(self.now_ns);
                self.flash.run(self.now_ns);
            }
            None if record.is_none() => return Ok(None),
            None => {
                self.now_ns = until_ns;
                self.submit()?;
                done.submitted = Some(self.next as u32);
                self.next += 1;
            }
        }
        self.step += 1;
        self.take_done(&mut done)?;
        Ok(Some(done))
    }

    fn submit(&mut self) -> Result<(), Error> {
        let number = self.next as u32;
        let what = &self.stream.records[self.next].what;
        let now_ns = self.now_ns;
        let slot = match what {
            What::Mark(_) => return Ok(()),
            What::Control(op, ranges) => self.flash.submit_control(*op, ranges, now_ns),
            What::Read(lba, pages) => {
                let (lba, pages) = (*lba, *pages);
                self.flash
                    .submit(Command::Read { lba, pages }, now_ns, |_| 0)
            }
            What::Write {
                lba,
                pages,
                stream,
                fua,
            } => {
                let (lba, fua) = (*lba, *fua);
                let command = Command::Write {
                    lba,
                    pages: pages.len() as u32,
                    fua,
                };
                let word = |it: u32| u64::from(pages[(it - lba) as usize]);
                self.flash.submit_to(*stream, false, command, now_ns, word)
            }
            #[cfg(test)]
            What::Flush if self.stream.ignores_flush => {
                let read = Command::Read { lba: 0, pages: 1 };
                self.flash.submit(read, now_ns, |_| 0)
            }
            What::Flush => self.flash.submit(Command::Flush, now_ns, |_| 0),
            What::Discard(lba, pages) => {
                let (lba, pages) = (*lba, *pages);
                self.flash
                    .submit(Command::Discard { lba, pages }, now_ns, |_| 0)
            }
        };
        let slot = slot.ok_or(Error::Diverged("more commands are under way at once"))?;
        self.slots[slot as usize] = Some(number);
        Ok(())
    }

    fn take_done(&mut self, done: &mut Done) -> Result<(), Error> {
        while let Some((slot, good)) = self.flash.take_done() {
            let record = self.slots[slot as usize].take().expect("it was submitted");
            let may_fail = matches!(
                self.stream.records[record as usize].what,
                What::Control(_, _)
            );
            match good {
                true => done.completed.push(record),
                false if self.flash.is_off() || may_fail => {}
                false => return Err(Error::Failed(record)),
            }
        }
        Ok(())
    }
}

/// Programs and erases that end in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// Number of the step.
    pub step: Step,
    /// Number of operations that ended in earlier steps.
    pub before: u64,
    /// Number of operations that end in this step.
    pub count: u64,
}

/// Steps of all events of a stream.
#[derive(Debug)]
pub struct Timeline {
    /// Number of steps of the stream.
    pub steps: Step,
    /// Step that submits each record.
    pub submitted: Vec<Step>,
    /// Step in which each record's command ended, or [`NEVER`].
    pub completed: Vec<Step>,
    /// Steps in which programs or erases end.
    pub busy: Vec<Busy>,
}

impl Timeline {
    /// Plays the whole stream once.
    ///
    /// # Errors
    /// [`Error::Diverged`] if the core behaves differently from the recording device.
    pub fn of(stream: &Stream) -> Result<Self, Error> {
        let mut player = Player::new(stream)?;
        let mut timeline = Timeline {
            steps: 0,
            submitted: Vec::with_capacity(stream.records.len()),
            completed: vec![NEVER; stream.records.len()],
            busy: Vec::new(),
        };
        loop {
            let (step, before) = (player.step(), player.flash().operations());
            let Some(done) = player.go_on()? else {
                break;
            };
            if done.submitted.is_some() {
                timeline.submitted.push(step);
            }
            for record in done.completed {
                timeline.completed[record as usize] = step;
            }
            let count = player.flash().operations() - before;
            if count > 0 {
                timeline.busy.push(Busy {
                    step,
                    before,
                    count,
                });
            }
        }
        timeline.steps = player.step();
        player.flash().run(stream.end_ns);
        match player.flash().operation_counters() == stream.counters {
            true => Ok(timeline),
            false => Err(Error::Diverged("other operations were counted")),
        }
    }

    /// Number of programs and erases that ended before this step.
    pub fn operations_before(&self, step: Step) -> u64 {
        let index = self.busy.partition_point(|it| it.step < step);
        index
            .checked_sub(1)
            .map_or(0, |it| self.busy[it].before + self.busy[it].count)
    }

    /// The step in which the operation with this number, from 0, ends.
    pub fn step_of(&self, number: u64) -> Option<Busy> {
        let index = self
            .busy
            .partition_point(|it| it.before + it.count <= number);
        self.busy.get(index).copied()
    }
}
