//! Tables of many machines: what a study, a diagnosis and a benchmark of one machine add to them.
//! docs/use/fleet.md says what the columns mean.

use crate::study::{Study, column, number};
use crate::{Diagnosis, Machine};
use iopro::tables::{Column, Kind, Of, Table};
use record::ResultFile;
use rusqlite::types::Value;

/// Cells of a table, row by row.
pub type Rows = Vec<Vec<Value>>;

/// The run that rows come from.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Begin of the run, in seconds since 1970.
    pub at_s: u64,
    /// Release of the kernel.
    pub kernel: String,
    /// Whether names of apps and files are left out.
    pub is_anonymous: bool,
}

/// Apps' waits by class, from studies.
pub static APPS: Table = table(
    "apps",
    &[
        AT,
        KERNEL,
        or_null("app", Kind::Text),
        column("class", Kind::Text),
        column("waits", Kind::Integer),
        column("waited_ns", Kind::Integer),
        column("longest_ns", Kind::Integer),
        column("app_cpu_ns", Kind::Integer),
        column("watched_ns", Kind::Integer),
    ],
);

/// Verdicts of diagnoses.
pub static STALLS: Table = table(
    "stalls",
    &[
        AT,
        KERNEL,
        column("cause", Kind::Text),
        or_null("who", Kind::Text),
        or_null("culprit", Kind::Text),
        or_null("file", Kind::Text),
        or_null("disk", Kind::Text),
        or_null("disk_model", Kind::Text),
        column("lost_ns", Kind::Integer),
        column("longest_ns", Kind::Integer),
        column("waits", Kind::Integer),
        column("watched_ns", Kind::Integer),
    ],
);

/// Physical disks of diagnoses, those without a verdict, too.
pub static DISKS: Table = table(
    "disks",
    &[
        AT,
        KERNEL,
        column("disk", Kind::Text),
        or_null("disk_model", Kind::Text),
        or_null("scheduler", Kind::Text),
        column("lost_ns", Kind::Integer),
        column("longest_ns", Kind::Integer),
        column("watched_ns", Kind::Integer),
    ],
);

/// Figures of benchmarks.
pub static BENCH: Table = table(
    "bench",
    &[
        AT,
        KERNEL,
        column("device", Kind::Text),
        column("scheduler", Kind::Text),
        column("workload", Kind::Text),
        column("background", Kind::Text),
        column("metric", Kind::Text),
        column("unit", Kind::Text),
        column("seed", Kind::Integer),
        column("value", Kind::Real),
    ],
);

const AT: Column = column("at_s", Kind::Integer);
const KERNEL: Column = column("kernel", Kind::Text);

const fn table(name: &'static str, columns: &'static [Column]) -> Table {
    Table {
        name,
        of: Of::All,
        doc: &[],
        columns,
        indices: &[],
    }
}

const fn or_null(name: &'static str, kind: Kind) -> Column {
    Column {
        nullable: true,
        ..column(name, kind)
    }
}

/// Rows of [`APPS`].
pub fn apps(study: &Study, origin: &Origin) -> Rows {
    let classes = study.apps.iter().flat_map(|app| {
        let classes = app.classes.iter();
        classes.map(move |class| (app, class))
    });
    let row = |(app, class): (&crate::study::App, &crate::study::Waited)| {
        let cells = [
            origin.name(Some(&app.name)),
            text(class.class),
            number(class.waits),
            number(class.waited_ns),
            number(class.longest_ns),
            number(app.cpu_ns),
            number(study.watched_ns),
        ];
        origin.row(cells)
    };
    classes.map(row).collect()
}

/// Rows of [`STALLS`].
pub fn stalls(diagnosis: &Diagnosis, machine: &Machine, origin: &Origin) -> Rows {
    let verdicts = diagnosis.verdicts.iter();
    let row = |it: &crate::judge::Verdict| {
        let model = it.disk.as_ref().and_then(|disk| models(machine, disk));
        origin.row([
            text(it.name),
            origin.name(Some(&it.who)),
            origin.name(it.culprit.as_ref()),
            origin.name(it.file.as_ref()),
            it.disk.as_ref().map_or(Value::Null, text),
            model.map_or(Value::Null, Value::Text),
            number(it.lost_ns),
            number(it.longest_ns),
            number(it.waits + it.samples),
            number(diagnosis.watched_ns),
        ])
    };
    verdicts.map(row).collect()
}

/// Rows of [`DISKS`]: the disks at the bottom of each stack, as what lies above has no model.
pub fn disks(diagnosis: &Diagnosis, machine: &Machine, origin: &Origin) -> Rows {
    let physical = machine.disks.iter().filter(|it| it.on.is_empty());
    let row = |disk: &crate::machine::Disk| {
        let is_on = |verdict: &&crate::judge::Verdict| {
            let of = verdict.disk.as_deref().unwrap_or_default();
            machine.bottom(of).contains(&disk.name.as_str())
        };
        let verdicts: Vec<_> = diagnosis.verdicts.iter().filter(is_on).collect();
        let longest = verdicts.iter().map(|it| it.longest_ns).max();
        origin.row([
            text(&disk.name),
            disk.title.as_ref().map_or(Value::Null, text),
            disk.scheduler.as_ref().map_or(Value::Null, text),
            number(verdicts.iter().map(|it| it.lost_ns).sum()),
            number(longest.unwrap_or_default()),
            number(diagnosis.watched_ns),
        ])
    };
    physical.map(row).collect()
}

/// Rows of [`BENCH`].
pub fn bench(result: &ResultFile, origin: &Origin) -> Rows {
    let row = |it: &record::Row| {
        origin.row([
            text(&result.device),
            text(&it.policy),
            text(&it.workload),
            text(&it.load),
            text(&it.metric),
            text(&it.unit),
            number(it.seed),
            Value::Real(it.value),
        ])
    };
    result.rows.iter().map(row).collect()
}

/// Models of the disks that are below `disk`; None if none has one.
fn models(machine: &Machine, disk: &str) -> Option<String> {
    let below = machine.bottom(disk);
    let models: Vec<&str> = below
        .iter()
        .filter_map(|it| machine.disk(it)?.title.as_deref())
        .collect();
    (!models.is_empty()).then(|| models.join(" + "))
}

impl Origin {
    fn row<const N: usize>(&self, cells: [Value; N]) -> Vec<Value> {
        let mut row = vec![number(self.at_s), text(&self.kernel)];
        row.extend(cells);
        row
    }

    /// Name of an app or file, unless these are left out.
    fn name(&self, name: Option<&String>) -> Value {
        match name {
            Some(name) if !self.is_anonymous => text(name),
            _ => Value::Null,
        }
    }
}

fn text(value: impl ToString) -> Value {
    Value::Text(value.to_string())
}
