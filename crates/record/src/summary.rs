//! A result file as figures: means over seeds, what is unloaded, what is best
//! stock, and ratios paired by seed.

use crate::metric::{self, Direction};
use crate::statistics::Statistics;
use crate::{Histogram, ResultFile, Row, policy};
use std::collections::BTreeMap;

/// The load under which nothing but the workload runs.
pub const IDLE: &str = "idle";

/// What was measured, whoever the policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Figure {
    /// The workload's name.
    pub workload: String,
    /// `idle` or the background's name.
    pub load: String,
    /// The metric's name.
    pub metric: String,
    /// The metric's unit.
    pub unit: String,
}

/// One figure under one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The figure of each seed.
    pub by_seed: BTreeMap<u64, f64>,
    /// Mean and spread over the seeds.
    pub over_seeds: Statistics,
    /// All seeds' distributions together, where rows carry them.
    pub histogram: Option<Histogram>,
}

/// A figure and whose it is.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// The policy it was measured under.
    pub policy: &'a str,
    /// The figure's values.
    pub cell: &'a Cell,
}

/// All figures of one result file.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The experiment's name.
    pub experiment: String,
    /// The device profile's name.
    pub device: String,
    /// In the order measured.
    pub figures: Vec<Figure>,
    /// In the order of the experiment.
    pub policies: Vec<String>,
    /// All seeds of the file, ascending.
    pub seeds: Vec<u64>,
    /// What the kernel gives this device when nobody chooses.
    pub stock_default: String,
    cells: BTreeMap<(Figure, String), Cell>,
}

impl Summary {
    /// Sorts a result's rows into figures.
    pub fn of(result: &ResultFile) -> Summary {
        let mut figures: Vec<Figure> = Vec::new();
        let mut policies: Vec<String> = Vec::new();
        let mut seeds: Vec<u64> = Vec::new();
        let mut gathered: BTreeMap<(Figure, String), Gathered> = BTreeMap::new();
        let unthrottled = unthrottled(&result.rows);
        for row in result.rows.iter().chain(&unthrottled) {
            let figure = Figure {
                workload: row.workload.clone(),
                load: row.load.clone(),
                metric: row.metric.clone(),
                unit: row.unit.clone(),
            };
            if !policies.contains(&row.policy) {
                policies.push(row.policy.clone());
            }
            seeds.push(row.seed);
            let key = (figure, row.policy.clone());
            if !gathered.contains_key(&key) && !figures.contains(&key.0) {
                figures.push(key.0.clone());
            }
            let entry = gathered.entry(key).or_default();
            entry.by_seed.insert(row.seed, row.value);
            entry.histograms.extend(row.histogram.as_ref());
        }
        seeds.sort_unstable();
        seeds.dedup();
        Summary {
            experiment: result.experiment.clone(),
            device: result.device.clone(),
            figures: grouped(figures),
            policies,
            seeds,
            stock_default: result.stock_default.clone(),
            cells: gathered
                .into_iter()
                .filter_map(|(key, gathered)| Some((key, gathered.cell()?)))
                .collect(),
        }
    }

    /// The figure under this policy, if it was measured.
    pub fn cell(&self, figure: &Figure, policy: &str) -> Option<&Cell> {
        self.cells.get(&(figure.clone(), policy.to_owned()))
    }

    /// All cells, in a fixed order.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.values()
    }

    /// The figure of that name, if any policy has it.
    pub fn figure(&self, workload: &str, load: &str, metric: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| {
            figure.workload == workload && figure.load == load && figure.metric == metric
        })
    }

    /// Whether any of the kernel's own schedulers was measured.
    pub fn has_stock(&self) -> bool {
        self.policies.iter().any(|name| policy::is_stock(name))
    }

    /// The best of the kernel's own schedulers for this very figure, by mean;
    /// of equals the first in the experiment's order. A result without any of
    /// them (one device under one policy) has the best of its policies instead.
    pub fn best_stock(&self, figure: &Figure) -> Option<Measured<'_>> {
        let direction = figure.direction();
        if direction == Direction::Neither {
            return None;
        }
        let has_stock = self.has_stock();
        let compared = |name: &&String| match has_stock {
            true => policy::is_stock(name),
            false => !policy::is_ablation(name),
        };
        let mut best: Option<Measured> = None;
        for policy in self.policies.iter().filter(compared) {
            let Some(cell) = self.cell(figure, policy) else {
                continue;
            };
            let better = match best {
                None => true,
                Some(best) => direction.better(cell.mean(), best.cell.mean())?,
            };
            if better {
                best = Some(Measured { policy, cell });
            }
        }
        best
    }

    /// The same figure on an idle device with the best stock scheduler.
    pub fn unloaded(&self, figure: &Figure) -> Option<Measured<'_>> {
        self.best_stock(&figure.idle())
    }

    /// How many times worse than unloaded a figure is, mean over mean: above 1
    /// is worse, whichever way is better.
    pub fn slowdown(&self, figure: &Figure, policy: &str) -> Option<f64> {
        let loaded = self.cell(figure, policy)?.mean();
        let unloaded = self.unloaded(figure)?.cell.mean();
        figure.direction().times_worse(loaded, unloaded)
    }

    /// Statistics of `policy`'s figure over the best stock scheduler's, seed
    /// by seed; only seeds that both have count.
    pub fn over_best_stock(&self, figure: &Figure, policy: &str) -> Option<Statistics> {
        let best = self.best_stock(figure)?;
        paired_ratio(self.cell(figure, policy)?, best.cell)
    }

    /// The one figure that a workload under a load comes down to; without time in
    /// throttling apart, the total.
    pub fn chief(&self, workload: &str, load: &str) -> Option<&Figure> {
        self.figure(workload, load, metric::chief(workload))
            .or_else(|| self.figure(workload, load, "total_ms"))
    }

    /// The workload-and-load pairs in the order measured.
    pub fn situations(&self) -> Vec<(&str, &str)> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for figure in &self.figures {
            let pair = (figure.workload.as_str(), figure.load.as_str());
            if !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
        pairs
    }

    /// All figures of one workload under one load.
    pub fn figures_of<'a>(
        &'a self,
        workload: &'a str,
        load: &'a str,
    ) -> impl Iterator<Item = &'a Figure> {
        self.figures
            .iter()
            .filter(move |figure| figure.workload == workload && figure.load == load)
    }
}

/// Statistics of `ours` over `theirs`, seed by seed; a seed that one of them
/// lacks, or where theirs is 0, has no ratio.
pub fn paired_ratio(ours: &Cell, theirs: &Cell) -> Option<Statistics> {
    let ratios: Vec<f64> = ours
        .by_seed
        .iter()
        .filter_map(|(seed, value)| Some((value, theirs.by_seed.get(seed)?)))
        .map(|(ours, theirs)| ours / theirs)
        .filter(|ratio| ratio.is_finite())
        .collect();
    Statistics::of(&ratios)
}

impl Figure {
    /// Which way is better.
    pub fn direction(&self) -> Direction {
        metric::direction(&self.metric, &self.unit)
    }

    /// The same figure on an idle device.
    pub fn idle(&self) -> Figure {
        Figure {
            load: IDLE.to_owned(),
            ..self.clone()
        }
    }

    /// Whether anything ran beside the workload.
    pub fn is_loaded(&self) -> bool {
        self.load != IDLE
    }

    /// A value of this figure as people read it.
    pub fn text(&self, value: f64) -> String {
        match metric::is_share(&self.metric) {
            true => crate::number::percent(value),
            false => crate::number::with_unit(value, &self.unit),
        }
    }
}

impl Cell {
    /// The mean over the seeds.
    pub fn mean(&self) -> f64 {
        self.over_seeds.mean
    }

    /// The largest over the seeds.
    pub fn worst(&self) -> f64 {
        self.by_seed.values().copied().fold(f64::MIN, f64::max)
    }
}

impl Direction {
    /// Whether `a` is better than `b`; of figures that are neither, nobody can say.
    pub fn better(self, a: f64, b: f64) -> Option<bool> {
        match self {
            Direction::Lower => Some(a < b),
            Direction::Higher => Some(a > b),
            Direction::Neither => None,
        }
    }

    /// How many times worse `value` is than `reference`.
    pub fn times_worse(self, value: f64, reference: f64) -> Option<f64> {
        let (over, under) = match self {
            Direction::Lower => (value, reference),
            Direction::Higher => (reference, value),
            Direction::Neither => return None,
        };
        Some(over / under).filter(|ratio| ratio.is_finite())
    }
}

/// The rest of each total beside which throttling was measured.
fn unthrottled(rows: &[Row]) -> Vec<Row> {
    let throttled: BTreeMap<_, f64> = rows
        .iter()
        .filter(|row| row.metric == metric::THROTTLED)
        .map(|row| (place(row), row.value))
        .collect();
    let totals = rows.iter().filter(|row| row.metric == "total_ms");
    totals
        .filter_map(|row| {
            Some(Row {
                metric: metric::UNTHROTTLED.to_owned(),
                value: row.value - throttled.get(&place(row))?,
                histogram: None,
                series: None,
                ..row.clone()
            })
        })
        .collect()
}

fn place(row: &Row) -> (&str, &str, &str, u64) {
    (&row.workload, &row.load, &row.policy, row.seed)
}

#[derive(Default)]
struct Gathered<'a> {
    by_seed: BTreeMap<u64, f64>,
    histograms: Vec<&'a Histogram>,
}

impl Gathered<'_> {
    fn cell(self) -> Option<Cell> {
        let values: Vec<f64> = self.by_seed.values().copied().collect();
        Some(Cell {
            over_seeds: Statistics::of(&values)?,
            by_seed: self.by_seed,
            histogram: (!self.histograms.is_empty()).then(|| Histogram::merged(self.histograms)),
        })
    }
}

/// Brings the figures of one workload and load together, totals first, else in
/// the order in which each pair and each figure was first seen.
fn grouped(figures: Vec<Figure>) -> Vec<Figure> {
    let mut order: Vec<(String, String)> = Vec::new();
    for figure in &figures {
        let pair = (figure.workload.clone(), figure.load.clone());
        if !order.contains(&pair) {
            order.push(pair);
        }
    }
    let mut figures = figures;
    figures.sort_by_key(|figure| {
        let pair = order
            .iter()
            .position(|(workload, load)| *workload == figure.workload && *load == figure.load);
        (pair, metric::rank(&figure.metric))
    });
    figures
}
