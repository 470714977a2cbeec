//! A SQLite benchmark like RLBench (§6.4): its thirteen steps, with the latency of each statement
//! recorded by its kind, and each transaction's commit apart.

use crate::Error;
use crate::background::Background;
use crate::code::Code;
use crate::database::{Database, Journal, seed_library};
use crate::footprint::Footprint;
use crate::meter::Meter;
use crate::sizes::Sizes;
use crate::stage::{Foreground, RunContext};
use std::path::PathBuf;
use sys::random::Random;

/// Bytes of a row of the table, with its index.
const ROW_BYTES: u64 = 128;

pub(crate) const WAL: Code = Code::app(
    |_, context| Box::new(Statements::new(context, Journal::Wal)),
    footprint,
)
.scenario();
pub(crate) const ROLLBACK: Code = Code::app(
    |_, context| Box::new(Statements::new(context, Journal::Rollback)),
    footprint,
)
.scenario();

pub(crate) fn footprint(sizes: &Sizes) -> Footprint {
    let rows = sizes.sqlite_single + 2 * sizes.sqlite_bulk;
    Footprint::of(rows * ROW_BYTES, 3 * rows * ROW_BYTES)
}

/// The benchmark with one kind of journal.
pub(crate) struct Statements {
    path: PathBuf,
    journal: Journal,
    /// Number of statements that are a transaction each: 1000 in RLBench.
    single: u64,
    /// Number of statements of one big transaction: 25,000 in RLBench.
    bulk: u64,
    /// Number of selects that scan the table: 100 in RLBench.
    scans: u64,
    /// Number of selects by an index: 5000 in RLBench.
    lookups: u64,
    seed: u64,
    random: Random,
}

impl Statements {
    pub(crate) fn new(context: &RunContext, journal: Journal) -> Self {
        Statements {
            path: context.directory.join("benchmark.db"),
            journal,
            single: context.sizes.sqlite_single,
            bulk: context.sizes.sqlite_bulk,
            scans: context.sizes.sqlite_scans,
            lookups: context.sizes.sqlite_lookups,
            seed: context.seed,
            random: context.random("foreground"),
        }
    }

    fn insert_all(&mut self, meter: &mut Meter, database: &mut Database) -> Result<(), Error> {
        for number in 0..self.single {
            let value = self.random.below(100_000);
            meter.span("insert", |_| database.insert(number, value))?;
        }
        self.insert_in_one(meter, database, self.single)?;
        meter.span("index", |_| database.create_index())?;
        self.insert_in_one(meter, database, self.single + self.bulk)?;
        meter.span("index", |_| database.drop_index())
    }

    fn insert_in_one(
        &mut self,
        meter: &mut Meter,
        database: &mut Database,
        first: u64,
    ) -> Result<(), Error> {
        database.begin()?;
        for number in first..first + self.bulk {
            let value = self.random.below(100_000);
            meter.span("bulk_insert", |_| database.insert(number, value))?;
        }
        meter.span("commit", |_| database.commit())
    }

    fn select_all(&mut self, meter: &mut Meter, database: &mut Database) -> Result<(), Error> {
        for _ in 0..self.scans {
            let low = self.random.below(90_000);
            meter.span("scan", |_| database.select_by_value(low, low + 1000))?;
        }
        for part in 0..self.scans {
            let part = format!("number {part} ");
            meter.span("scan", |_| database.select_by_text(&part))?;
        }
        meter.span("index", |_| database.create_index())?;
        for _ in 0..self.lookups {
            let number = self.random.below(self.rows());
            meter.span("select", |_| database.select_by_number(number))?;
        }
        Ok(())
    }

    fn update_all(&mut self, meter: &mut Meter, database: &mut Database) -> Result<(), Error> {
        for _ in 0..self.single {
            let (number, value) = (self.random.below(self.rows()), self.random.below(100_000));
            meter.span("update", |_| database.update(number, value))?;
        }
        database.begin()?;
        for _ in 0..self.bulk {
            let (number, value) = (self.random.below(self.rows()), self.random.below(100_000));
            meter.span("bulk_update", |_| database.update(number, value))?;
        }
        meter.span("commit", |_| database.commit())
    }

    fn delete_all(&mut self, meter: &mut Meter, database: &mut Database) -> Result<(), Error> {
        for number in 0..self.single {
            meter.span("delete", |_| database.delete(number))?;
        }
        database.begin()?;
        for number in self.single..self.single + self.bulk {
            meter.span("bulk_delete", |_| database.delete(number))?;
        }
        meter.span("commit", |_| database.commit())?;
        meter.span("drop", |_| database.drop_table())
    }

    fn rows(&self) -> u64 {
        self.single + 2 * self.bulk
    }
}

impl Foreground for Statements {
    fn prepare(&mut self) -> Result<(), Error> {
        seed_library(self.seed);
        Ok(())
    }

    fn measure(&mut self, meter: &mut Meter, _: Option<&mut Background>) -> Result<(), Error> {
        let mut database = meter.span("open", |_| Database::open(&self.path, self.journal))?;
        meter.span("create", |_| database.create_table())?;
        self.insert_all(meter, &mut database)?;
        self.select_all(meter, &mut database)?;
        self.update_all(meter, &mut database)?;
        self.delete_all(meter, &mut database)
    }
}
