//! A trace in memory.

use crate::schedule::Steps;

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(usize)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Discards (trims).
    Discard,
    /// Everything written has to be kept; it has no place and no size.
    Flush,
}

/// One request of the traced machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// When it was issued, since the trace's first operation.
    pub time_ns: u64,
    /// What it does.
    pub kind: Kind,
    /// First byte.
    pub offset_bytes: u64,
    /// Bytes, at least one unless it is a flush.
    pub size_bytes: u64,
    /// The thread that issued it, from 0 on.
    pub lane: u32,
}

impl Operation {
    /// First page and the one after the last; `None` for a flush.
    pub fn pages(&self) -> Option<(u64, u64)> {
        const PAGE: u64 = crate::flash::PAGE_BYTES;
        let end = self.offset_bytes + self.size_bytes;
        (self.kind != Kind::Flush).then(|| (self.offset_bytes / PAGE, end.div_ceil(PAGE)))
    }
}

impl Steps for Trace {
    fn count(&self) -> usize {
        self.operations.len()
    }

    fn lanes(&self) -> u32 {
        self.lanes
    }

    fn time_ns(&self, index: usize) -> u64 {
        self.operations[index].time_ns
    }

    /// Block traces do not tell what an operation took.
    fn end_ns(&self, index: usize) -> u64 {
        self.operations[index].time_ns
    }

    fn lane(&self, index: usize) -> u32 {
        self.operations[index].lane
    }
}

/// Operations in the order of their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    operations: Vec<Operation>,
    lanes: u32,
}

impl Trace {
    /// Puts the operations in order; the first of them happens at 0.
    pub fn new(mut operations: Vec<Operation>) -> Self {
        operations.sort_by_key(|it| it.time_ns);
        let first_ns = operations.first().map_or(0, |it| it.time_ns);
        for operation in &mut operations {
            operation.time_ns -= first_ns;
        }
        let lanes = operations.iter().map(|it| it.lane + 1).max().unwrap_or(0);
        Trace { operations, lanes }
    }

    /// In order.
    pub fn operations(&self) -> &[Operation] {
        &self.operations
    }

    /// Threads.
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    /// Adds another trace, whose first operation happens with the last of this one.
    pub fn append(&mut self, next: Trace) {
        let (begin_ns, lanes) = (self.duration_ns(), self.lanes);
        self.operations
            .extend(next.operations.into_iter().map(|it| Operation {
                time_ns: it.time_ns.saturating_add(begin_ns),
                lane: it.lane + lanes,
                ..it
            }));
        self.lanes += next.lanes;
    }

    /// The same at `speed` times the speed.
    #[must_use]
    pub fn at_speed(mut self, speed: f64) -> Self {
        for operation in &mut self.operations {
            operation.time_ns = (operation.time_ns as f64 / speed) as u64;
        }
        self
    }

    /// From the first operation to the last.
    pub fn duration_ns(&self) -> u64 {
        self.operations.last().map_or(0, |it| it.time_ns)
    }
}
