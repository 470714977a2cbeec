//! Figures of a result file: means over seeds, unloaded and best stock references, and ratios
//! paired by seed.

use crate::bars::Bar;
use crate::metric::{self, Direction, Metric};
use crate::statistics::Statistics;
use crate::{Histogram, Policy, ResultFile, Row, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Name of the load under which only the workload runs.
pub const IDLE: &str = "idle";

/// A metric of a workload under a load, for any policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Figure {
    /// Name of the workload.
    pub workload: String,
    /// Name of the load, or `idle`.
    pub load: String,
    /// Name of the metric.
    pub metric: String,
    /// Unit of the metric.
    pub unit: String,
}

/// Values of one figure under one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Value of the figure for each seed.
    pub by_seed: BTreeMap<u64, f64>,
    /// Mean and spread over the seeds.
    pub over_seeds: Statistics,
    /// Distribution over all seeds; None if rows have none.
    pub histogram: Option<Histogram>,
}

/// A figure's values and their policy.
#[derive(Clone, Copy, Debug)]
pub struct Measured<'a> {
    /// Name of the policy.
    pub policy: &'a str,
    /// Values of the figure.
    pub cell: &'a Cell,
}

/// All figures of one result file.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the device profile.
    pub device: String,
    /// Figures in the order of measurement, grouped by workload and load.
    pub figures: Vec<Figure>,
    /// Policies in the order of the experiment.
    pub policies: Vec<String>,
    /// All seeds of the file in ascending order.
    pub seeds: Vec<u64>,
    /// Policy that the kernel gives this device by default.
    pub stock_default: String,
    /// Policies of today that the result's experiment names.
    baselines: Vec<String>,
    /// Bars that the result brings.
    pub(crate) bars: Vec<Bar>,
    /// Policies that this program knows, by name. A result of `frontrow bench` may have others.
    known: BTreeMap<String, Policy>,
    cells: BTreeMap<(Figure, String), Cell>,
    /// The part of `figures` that is of a workload and a load.
    places: BTreeMap<(String, String), Range<usize>>,
}

impl Summary {
    /// Groups the rows of a result into figures.
    pub fn of(result: &ResultFile) -> Summary {
        let mut figures: Vec<Figure> = Vec::new();
        let mut seen = BTreeSet::new();
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
            if seen.insert(figure.clone()) {
                figures.push(figure.clone());
            }
            let entry = gathered.entry((figure, row.policy.clone())).or_default();
            entry.by_seed.insert(row.seed, row.value);
            entry.histograms.extend(row.histogram.as_ref());
        }
        seeds.sort_unstable();
        seeds.dedup();
        let figures = grouped(figures);
        Summary {
            experiment: result.experiment.clone(),
            device: result.device.clone(),
            places: places(&figures),
            figures,
            known: known(&policies),
            policies,
            seeds,
            stock_default: result.stock_default.clone(),
            baselines: result.baselines.clone(),
            bars: result.bars.clone(),
            cells: gathered
                .into_iter()
                .filter_map(|(key, gathered)| Some((key, gathered.cell()?)))
                .collect(),
        }
    }

    /// Values of the figure under this policy; None if it was not measured.
    pub fn cell(&self, figure: &Figure, policy: &str) -> Option<&Cell> {
        self.cells.get(&(figure.clone(), policy.to_owned()))
    }

    /// All cells, in a fixed order.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.values()
    }

    /// The figure with these names; None if no policy has it.
    pub fn figure(&self, workload: &str, load: &str, metric: &str) -> Option<&Figure> {
        self.figures_of(workload, load)
            .find(|figure| figure.metric == metric)
    }

    /// The policy with this name; None for one that this program does not know.
    pub fn policy(&self, name: &str) -> Option<&Policy> {
        self.known.get(name)
    }

    /// Whether it is a policy of today: one of the result's baselines, or without any one of the
    /// kernel's own schedulers.
    pub fn is_stock(&self, name: &str) -> bool {
        match self.baselines.as_slice() {
            [] => self.policy(name).is_some_and(Policy::is_stock),
            named => named.iter().any(|it| it == name),
        }
    }

    /// Whether it is `frontrow` with some promotions switched off.
    pub fn is_ablation(&self, name: &str) -> bool {
        self.policy(name).is_some_and(Policy::is_ablation)
    }

    /// Whether any of the kernel's own schedulers was measured.
    pub fn has_stock(&self) -> bool {
        self.policies.iter().any(|name| self.is_stock(name))
    }

    /// The best of the kernel's own schedulers for this figure, by mean. Of equal ones it is the
    /// first in the experiment's order. If none of them ran, it is the best of all policies.
    pub fn best_stock(&self, figure: &Figure) -> Option<Measured<'_>> {
        let direction = figure.direction();
        if direction == Direction::Neither {
            return None;
        }
        let has_stock = self.has_stock();
        let compared = |name: &&String| match has_stock {
            true => self.is_stock(name),
            false => !self.is_ablation(name),
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

    /// Mean over the unloaded mean, turned so that above 1 is worse.
    pub fn slowdown(&self, figure: &Figure, policy: &str) -> Option<f64> {
        let loaded = self.cell(figure, policy)?.mean();
        let unloaded = self.unloaded(figure)?.cell.mean();
        figure.direction().times_worse(loaded, unloaded)
    }

    /// Ratio of `policy`'s figure to that of the best stock scheduler, paired by seed. Only seeds
    /// that both have count.
    pub fn over_best_stock(&self, figure: &Figure, policy: &str) -> Option<Statistics> {
        let best = self.best_stock(figure)?;
        paired_ratio(self.cell(figure, policy)?, best.cell)
    }

    /// The figure that represents a workload under a load. It is the total if the throttled time
    /// was not measured apart.
    pub fn headline(&self, workload: &str, load: &str) -> Option<&Figure> {
        Workload::find(workload)
            .and_then(|it| self.figure(workload, load, it.headline))
            .or_else(|| self.figure(workload, load, "total_ms"))
    }

    /// Pairs of workload and load, in the order of measurement.
    pub fn situations(&self) -> Vec<(&str, &str)> {
        let mut pairs: Vec<(&str, &str)> = self.figures.iter().map(situation).collect();
        pairs.dedup();
        pairs
    }

    /// All figures of one workload under one load.
    pub fn figures_of(&self, workload: &str, load: &str) -> impl Iterator<Item = &Figure> {
        let pair = (workload.to_owned(), load.to_owned());
        let place = self.places.get(&pair).cloned().unwrap_or_default();
        self.figures[place].iter()
    }
}

/// Ratios of `ours` to `theirs` for each seed that both have.
pub fn ratios_by_seed<'a>(ours: &'a Cell, theirs: &'a Cell) -> impl Iterator<Item = f64> + 'a {
    let seeds = ours.by_seed.iter();
    seeds.filter_map(|(seed, value)| Some(value / theirs.by_seed.get(seed)?))
}

/// Ratio of `ours` to `theirs`, paired by seed. A seed for which `theirs` is 0 is left out.
pub fn paired_ratio(ours: &Cell, theirs: &Cell) -> Option<Statistics> {
    let ratios = ratios_by_seed(ours, theirs).filter(|ratio| ratio.is_finite());
    Statistics::of(&ratios.collect::<Vec<_>>())
}

impl Figure {
    /// Whether lower or higher values are better.
    pub fn direction(&self) -> Direction {
        metric::direction(&self.metric)
    }

    /// The same figure on an idle device.
    pub fn idle(&self) -> Figure {
        Figure {
            load: IDLE.to_owned(),
            ..self.clone()
        }
    }

    /// Whether a load ran beside the workload.
    pub fn is_loaded(&self) -> bool {
        self.load != IDLE
    }

    /// A value of this figure with its unit.
    pub fn text(&self, value: f64) -> String {
        match Metric::find(&self.metric).is_some_and(|it| it.is_share) {
            true => crate::number::percent(value),
            false => crate::number::with_unit(value, &self.unit),
        }
    }
}

impl Cell {
    /// Mean over the seeds.
    pub fn mean(&self) -> f64 {
        self.over_seeds.mean
    }

    /// Largest value over the seeds.
    pub fn worst(&self) -> f64 {
        self.by_seed.values().copied().fold(f64::MIN, f64::max)
    }
}

impl Direction {
    /// Whether `a` is better than `b`; None for figures without a better direction.
    pub fn better(self, a: f64, b: f64) -> Option<bool> {
        match self {
            Direction::Lower => Some(a < b),
            Direction::Higher => Some(a > b),
            Direction::Neither => None,
        }
    }

    /// How many times worse `value` is than `reference`; None without a better direction.
    pub fn times_worse(self, value: f64, reference: f64) -> Option<f64> {
        let (over, under) = match self {
            Direction::Lower => (value, reference),
            Direction::Higher => (reference, value),
            Direction::Neither => return None,
        };
        Some(over / under).filter(|ratio| ratio.is_finite())
    }
}

fn known(names: &[String]) -> BTreeMap<String, Policy> {
    let parsed = names.iter().filter_map(|name| name.parse().ok());
    parsed
        .map(|policy: Policy| (policy.name().to_owned(), policy))
        .collect()
}

/// Rows with each total less its throttled time, where that was measured.
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

fn situation(figure: &Figure) -> (&str, &str) {
    (&figure.workload, &figure.load)
}

/// Groups the figures by workload and load, with totals first. Otherwise pairs and figures stay in
/// the order of their first row.
fn grouped(mut figures: Vec<Figure>) -> Vec<Figure> {
    let mut order: BTreeMap<(String, String), usize> = BTreeMap::new();
    for Figure { workload, load, .. } in &figures {
        let next = order.len();
        let pair = (workload.clone(), load.clone());
        order.entry(pair).or_insert(next);
    }
    figures.sort_by_cached_key(|it| {
        let pair = (it.workload.clone(), it.load.clone());
        (order[&pair], metric::rank(&it.metric))
    });
    figures
}

/// Of grouped figures.
fn places(figures: &[Figure]) -> BTreeMap<(String, String), Range<usize>> {
    let mut begin = 0;
    let groups = figures.chunk_by(|it, next| situation(it) == situation(next));
    let places = groups.map(|group| {
        let place = begin..begin + group.len();
        begin = place.end;
        let Figure { workload, load, .. } = &group[0];
        ((workload.clone(), load.clone()), place)
    });
    places.collect()
}
