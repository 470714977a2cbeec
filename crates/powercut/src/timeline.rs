//! A stream played step by step, and when in it everything happened.

use crate::Error;
use crate::stream::{Stream, What};
use replay::flash::{Command, Flash, Snapshot};

/// A step is one record that is submitted, or one instant at which the device does something.
pub type Step = u32;

/// It never happened.
pub const NEVER: Step = Step::MAX;

/// A stream on its way through the core.
pub struct Player<'a> {
    stream: &'a Stream,
    flash: Flash,
    now_ns: u64,
    next: usize,
    step: Step,
    /// For each slot the record that has it.
    slots: Vec<Option<u32>>,
}

/// A player as it was.
pub struct Saved {
    flash: Snapshot,
    now_ns: u64,
    next: usize,
    step: Step,
    slots: Vec<Option<u32>>,
}

/// What a step did.
#[derive(Debug, Default)]
pub struct Done {
    /// The record that was submitted.
    pub submitted: Option<u32>,
    /// The records whose commands ended well.
    pub completed: Vec<u32>,
}

impl<'a> Player<'a> {
    /// At the stream's beginning, with an empty device.
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

    /// The step that comes next.
    pub fn step(&self) -> Step {
        self.step
    }

    /// The device.
    pub fn flash(&mut self) -> &mut Flash {
        &mut self.flash
    }

    /// The device's time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// All of it, to be put back.
    pub fn save(&self) -> Saved {
        Saved {
            flash: self.flash.save().expect("the device was made savable"),
            now_ns: self.now_ns,
            next: self.next,
            step: self.step,
            slots: self.slots.clone(),
        }
    }

    /// Everything is again as it was when it was saved.
    pub fn restore(&mut self, saved: &Saved) {
        self.flash.restore(&saved.flash);
        self.now_ns = saved.now_ns;
        self.next = saved.next;
        self.step = saved.step;
        self.slots.clone_from(&saved.slots);
    }

    /// One step; `None` when the recording is over.
    ///
    /// # Errors
    /// [`Error::Failed`] if a command of the device ends otherwise than the host was told, and
    /// the power is on.
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
            What::Write { lba, pages, fua } => {
                let (lba, fua) = (*lba, *fua);
                let command = Command::Write {
                    lba,
                    pages: pages.len() as u32,
                    fua,
                };
                let word = |it: u32| u64::from(pages[(it - lba) as usize]);
                self.flash.submit(command, now_ns, word)
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

/// Programs and erases that ended in one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy {
    /// Which step.
    pub step: Step,
    /// Operations that had ended before it.
    pub before: u64,
    /// Those that end in it.
    pub count: u64,
}

/// When in a stream everything happened.
#[derive(Debug)]
pub struct Timeline {
    /// Steps in all.
    pub steps: Step,
    /// For each record the step that submits it.
    pub submitted: Vec<Step>,
    /// For each record the step in which its command ended, or [`NEVER`].
    pub completed: Vec<Step>,
    /// Steps with programs or erases.
    pub busy: Vec<Busy>,
}

impl Timeline {
    /// Plays the stream once.
    ///
    /// # Errors
    /// [`Error::Diverged`] if the core did otherwise than the device that recorded it.
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

    /// Programs and erases that had ended when the step began.
    pub fn operations_before(&self, step: Step) -> u64 {
        let index = self.busy.partition_point(|it| it.step < step);
        index
            .checked_sub(1)
            .map_or(0, |it| self.busy[it].before + self.busy[it].count)
    }

    /// The step in which operation `number`, from 0, ends.
    pub fn step_of(&self, number: u64) -> Option<Busy> {
        let index = self
            .busy
            .partition_point(|it| it.before + it.count <= number);
        self.busy.get(index).copied()
    }
}
