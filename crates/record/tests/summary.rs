//! Summaries of results compared with figures that were computed by hand.

use record::bars::{self, Outcome};
use record::headline::Headline;
use record::statistics::Interval;
use record::table::{self, Options};
use record::{Inputs, ResultFile, Row, Scale, Summary, command, html, markdown};

/// `(workload, load, policy, metric, unit, values of seeds 1, 2, …)`.
type Figures<'a> = (&'a str, &'a str, &'a str, &'a str, &'a str, &'a [f64]);

fn result(experiment: &str, figures: &[Figures]) -> ResultFile {
    let mut rows = Vec::new();
    for (workload, load, policy, metric, unit, values) in figures {
        for (seed, value) in (1..).zip(*values) {
            rows.push(Row {
                workload: (*workload).to_owned(),
                load: (*load).to_owned(),
                policy: (*policy).to_owned(),
                metric: (*metric).to_owned(),
                unit: (*unit).to_owned(),
                seed,
                value: *value,
                histogram: None,
                series: None,
            });
        }
    }
    ResultFile {
        experiment: experiment.to_owned(),
        kernel: "6.12.0-test".to_owned(),
        device: "emmc".to_owned(),
        scale: Scale::Demo,
        stock_default: "mq-deadline".to_owned(),
        baselines: Vec::new(),
        bars: Vec::new(),
        inputs: Inputs::default(),
        rows,
    }
}

/// Total times of M1 beside a writer, of seeds 1, 2, ….
fn by_seed(policies: &[(&str, &[f64])]) -> ResultFile {
    let figures = policies
        .iter()
        .map(|(policy, values)| ("m1", "writer", *policy, "total_ms", "ms", *values));
    result("qasio", &figures.collect::<Vec<_>>())
}

/// A figure without a load, and beside a writer under the stock default and under Frontrow.
fn beside_writer(
    (workload, metric, unit): (&str, &str, &str),
    [unloaded, default, ours]: [f64; 3],
) -> ResultFile {
    let figures: &[Figures] = &[
        (workload, "idle", "none", metric, unit, &[unloaded]),
        (workload, "writer", "mq-deadline", metric, unit, &[default]),
        (workload, "writer", "frontrow", metric, unit, &[ours]),
    ];
    result("qasio", figures)
}

fn totals(idle: &[(&str, f64)], loaded: &[(&str, f64)]) -> ResultFile {
    let of = |load, figures: &[(&str, f64)]| -> Vec<Row> {
        let each = figures.iter().flat_map(|(policy, value)| {
            result(
                "qasio",
                &[("m1", load, policy, "total_ms", "ms", &[*value])],
            )
            .rows
        });
        each.collect()
    };
    ResultFile {
        rows: [of("idle", idle), of("writer", loaded)].concat(),
        ..result("qasio", &[])
    }
}

#[test]
fn unloaded_and_best_stock_are_of_each_figure() {
    let result = result(
        "qasio",
        &[
            ("m1", "idle", "none", "total_ms", "ms", &[100.0, 110.0]),
            ("m1", "idle", "bfq", "total_ms", "ms", &[120.0, 80.0]),
            ("m1", "idle", "frontrow", "total_ms", "ms", &[1.0, 1.0]),
            ("m1", "writer", "none", "total_ms", "ms", &[400.0, 420.0]),
            ("m1", "writer", "bfq", "total_ms", "ms", &[900.0, 1000.0]),
            (
                "m1",
                "writer",
                "frontrow",
                "total_ms",
                "ms",
                &[150.0, 160.0],
            ),
        ],
    );
    let summary = Summary::of(&result);
    let loaded = summary.figure("m1", "writer", "total_ms").unwrap();
    // Idle, the mean of bfq is 100 and that of none 105; frontrow's 1 is not a stock scheduler's.
    let unloaded = summary.unloaded(loaded).unwrap();
    assert_eq!((unloaded.policy, unloaded.cell.mean()), ("bfq", 100.0));
    let best = summary.best_stock(loaded).unwrap();
    assert_eq!((best.policy, best.cell.mean()), ("none", 410.0));
    assert_eq!(summary.slowdown(loaded, "bfq"), Some(9.5));
    assert_eq!(summary.slowdown(loaded, "frontrow"), Some(1.55));
}

#[test]
fn more_is_better_for_throughput() {
    let result = result(
        "overhead",
        &[
            ("seq-read-1", "idle", "none", "read_mb_s", "MB/s", &[50.0]),
            ("seq-read-1", "idle", "bfq", "read_mb_s", "MB/s", &[40.0]),
            (
                "seq-read-1",
                "idle",
                "frontrow",
                "read_mb_s",
                "MB/s",
                &[49.0],
            ),
        ],
    );
    let summary = Summary::of(&result);
    let figure = summary.figure("seq-read-1", "idle", "read_mb_s").unwrap();
    assert_eq!(summary.best_stock(figure).unwrap().policy, "none");
    assert_eq!(summary.slowdown(figure, "bfq"), Some(1.25));
}

/// The ratios are 0.5, 0.6 and 0.4. Their mean is 0.5, the deviation 0.1, and the half width 4.303
/// × 0.1 / √3 = 0.24843.
#[test]
fn ratios_are_paired_by_seed() {
    let result = by_seed(&[
        ("none", &[100.0, 200.0, 400.0, 7.0]),
        ("frontrow", &[50.0, 120.0, 160.0]),
    ]);
    let summary = Summary::of(&result);
    let figure = summary.figure("m1", "writer", "total_ms").unwrap();
    let ratio = summary.over_best_stock(figure, "frontrow").unwrap();
    assert_eq!(ratio.count, 3);
    assert!((ratio.mean - 0.5).abs() < 1e-12);
    let Interval { low, high } = ratio.interval.unwrap();
    assert!(
        (low - 0.25157).abs() < 1e-4 && (high - 0.74843).abs() < 1e-4,
        "{low} {high}"
    );
}

#[test]
fn counters_have_no_best() {
    let counts: &[Figures] = &[
        ("m1", "writer", "none", "cuts", "1", &[3.0]),
        ("m1", "writer", "bfq", "cuts", "1", &[2.0]),
    ];
    let result = result("powercut", counts);
    let summary = Summary::of(&result);
    let figure = summary.figure("m1", "writer", "cuts").unwrap();
    assert!(summary.best_stock(figure).is_none());
    assert_eq!(summary.slowdown(figure, "bfq"), None);
}

#[test]
fn throttling_is_taken_out_of_m3_seed_by_seed() {
    let result = result(
        "qasio",
        &[
            ("m3", "writer", "none", "total_ms", "ms", &[100.0, 300.0]),
            ("m3", "writer", "none", "throttled_ms", "ms", &[40.0, 200.0]),
        ],
    );
    let summary = Summary::of(&result);
    let rest = summary.headline("m3", "writer").unwrap();
    assert_eq!(summary.cell(rest, "none").unwrap().by_seed[&1], 60.0);
    assert_eq!(summary.cell(rest, "none").unwrap().mean(), 80.0);
}

#[test]
fn what_was_not_measured_is_missing_and_not_zero() {
    let result = result(
        "qasio",
        &[
            ("m1", "idle", "none", "total_ms", "ms", &[100.0]),
            ("m1", "writer", "none", "total_ms", "ms", &[500.0]),
            ("m1", "writer", "bfq", "fsync_mean_ms", "ms", &[5.0]),
        ],
    );
    let summary = Summary::of(&result);
    let total = summary.figure("m1", "writer", "total_ms").unwrap();
    assert!(summary.cell(total, "bfq").is_none());
    let table = table::render(&result, Options::default());
    let line = table.lines().find(|line| line.contains("total")).unwrap();
    assert_eq!(line.split_whitespace().last(), Some("–"), "{line}");
    let page = markdown::render(&result);
    assert!(
        page.contains("| m1 under writer | total | 100 ms | 500 ms ×5.00 | – |"),
        "{page}"
    );
    assert!(html::render(&result).contains("not measured"));
}

#[test]
fn seeds_that_lack_figures_are_told() {
    let result = by_seed(&[("none", &[1.0, 2.0]), ("bfq", &[1.0])]);
    let table = table::render(&result, Options::default());
    assert!(table.contains("1 figures lack some seeds"), "{table}");
}

#[test]
fn at_a_glance_each_time_is_a_bar_and_the_verdict_a_sentence() {
    let result = result(
        "qasio",
        &[
            ("m1", "idle", "none", "total_ms", "ms", &[100.0]),
            ("m1", "writer", "none", "total_ms", "ms", &[800.0]),
            ("m1", "writer", "kyber", "total_ms", "ms", &[400.0]),
            ("m1", "writer", "frontrow", "total_ms", "ms", &[200.0]),
            ("m1", "writer", "frontrow", "throttled_ms", "ms", &[50.0]),
            ("m4", "writer", "none", "total_ms", "ms", &[100.0]),
            ("m4", "writer", "frontrow", "total_ms", "ms", &[150.0]),
        ],
    );
    let shown = table::overview::render(&result, Options::default()).unwrap();
    let bar = |label: &str| {
        let line = shown.lines().find(|line| line.trim().starts_with(label));
        let line = line.unwrap_or_else(|| panic!("{label}: {shown}"));
        line.chars().filter(|&letter| letter == '█').count() as f64
    };
    assert!(
        (bar("alone") / bar("frontrow") - 0.5).abs() < 0.05,
        "{shown}"
    );
    assert!(
        (bar("frontrow") / bar("kyber, best of stock") - 0.5).abs() < 0.05,
        "{shown}"
    );
    assert!(
        shown.contains("50.0 ms of it in the kernel's write throttle"),
        "{shown}"
    );
    assert!(
        shown.ends_with(
            "frontrow: faster than every stock scheduler in 1 of 2; not in m4 under writer.\n"
        ),
        "{shown}"
    );
    assert!(
        shown.lines().all(|line| line.chars().count() <= 100),
        "{shown}"
    );
}

#[test]
fn without_a_load_or_a_stock_scheduler_there_is_nothing_to_see_at_a_glance() {
    let idle: Figures = ("m1", "idle", "none", "total_ms", "ms", &[100.0]);
    let ours: Figures = ("m1", "writer", "frontrow", "total_ms", "ms", &[100.0]);
    for figures in [&[idle][..], &[ours][..]] {
        let result = result("qasio", figures);
        assert_eq!(table::overview::render(&result, Options::default()), None);
    }
}

#[test]
fn one_seed_has_no_interval_and_says_so() {
    let table = table::render(
        &totals(&[("none", 1.0)], &[("none", 2.0)]),
        Options::default(),
    );
    assert!(
        table.contains("one seed (1), so there is no interval"),
        "{table}"
    );
}

#[test]
fn stock_schedulers_that_did_not_run_are_named() {
    let result = totals(
        &[("mq-deadline", 100.0)],
        &[("mq-deadline", 900.0), ("frontrow", 110.0)],
    );
    let table = table::render(&result, Options::default());
    let flat = table.replace('\n', " ");
    assert!(flat.contains("none, kyber, bfq did not run"), "{table}");
}

#[test]
fn one_policy_alone_is_held_against_itself_idle() {
    let result = totals(&[("frontrow", 100.0)], &[("frontrow", 150.0)]);
    let table = table::render(&result, Options::default());
    assert!(table.contains("150 ms ×1.50"), "{table}");
    assert!(!table.contains("best stock scheduler)"), "{table}");
}

fn outcome(result: &ResultFile, demand: &str) -> Outcome {
    let judged = bars::judge(&Summary::of(result));
    let bar = judged.iter().find(|judged| judged.bar.demand == demand);
    bar.unwrap_or_else(|| panic!("no bar '{demand}'")).outcome()
}

#[test]
fn what_may_never_be_is_judged_by_the_worst_run() {
    let stalls = |longest_ms: &[f64]| {
        let row = (
            "gallery",
            "apps-6",
            "fastt",
            "background_stall_ms",
            "ms",
            longest_ms,
        );
        outcome(&result("fasttrack-apps", &[row]), "never above 2 s")
    };
    assert_eq!(stalls(&[100.0, 1999.0]), Outcome::Met);
    assert_eq!(stalls(&[100.0, 2001.0]), Outcome::Missed);
}

#[test]
fn totals_are_held_against_unloaded() {
    let demand = "≤ 1.5 × unloaded";
    for (ours, expected) in [(150.0, Outcome::Met), (150.1, Outcome::Missed)] {
        let result = totals(&[("none", 100.0)], &[("none", 900.0), ("frontrow", ours)]);
        assert_eq!(outcome(&result, demand), expected, "{ours}");
    }
    let no_idle = totals(&[], &[("none", 900.0), ("frontrow", 100.0)]);
    assert_eq!(outcome(&no_idle, demand), Outcome::NotMeasured);
}

#[test]
fn an_unsure_advantage_is_no_advantage() {
    let under = |values: &[f64]| by_seed(&[("none", &[100.0; 3]), ("frontrow", values)]);
    let demand = "not above best stock (interval ≤ ×1.02)";
    assert_eq!(outcome(&under(&[90.0, 91.0, 92.0]), demand), Outcome::Met);
    assert_eq!(
        outcome(&under(&[50.0, 90.0, 130.0]), demand),
        Outcome::Missed
    );
}

#[test]
fn the_worst_case_may_be_cut_as_in_the_paper() {
    let demand = "cut as in the paper or ≤ 2 × unloaded";
    // The paper reduced M1's worst fsync by 87.1 %.
    for (unloaded, ours, expected) in [
        (10.0, 20.0, Outcome::Met),
        (1.0, 128.0, Outcome::Met),
        (1.0, 130.0, Outcome::Missed),
    ] {
        let figures = [unloaded, 1000.0, ours];
        let result = beside_writer(("m1", "fsync_max_ms", "ms"), figures);
        assert_eq!(outcome(&result, demand), expected, "{ours} of {unloaded}");
    }
}

#[test]
fn loss_is_won_back_from_the_stock_default() {
    let demand = "≥ 80 % won back or ≤ 1.05 × unloaded";
    for (unloaded, default, ours, expected) in [
        (100.0, 300.0, 140.0, Outcome::Met),
        (100.0, 300.0, 141.0, Outcome::Missed),
        (100.0, 110.0, 105.0, Outcome::Met),
        (100.0, 100.0, 120.0, Outcome::Missed),
    ] {
        let figures = [unloaded, default, ours];
        let result = beside_writer(("a", "launch_mean_ms", "ms"), figures);
        assert_eq!(outcome(&result, demand), expected, "{ours}");
    }
}

#[test]
fn shots_won_back_are_more_shots() {
    let demand = "≥ 80 % won back or ≤ 1.05 × unloaded";
    for (ours, expected) in [(98.0, Outcome::Met), (60.0, Outcome::Missed)] {
        let result = beside_writer(("b", "shots", "1"), [100.0, 50.0, ours]);
        assert_eq!(outcome(&result, demand), expected, "{ours}");
    }
}

#[test]
fn bars_need_frontrow_and_stock_schedulers() {
    let stock = totals(&[("none", 1.0)], &[("none", 2.0)]);
    assert!(bars::judge(&Summary::of(&stock)).is_empty());
    let alone = totals(&[("frontrow", 1.0)], &[("frontrow", 1.0)]);
    assert_eq!(outcome(&alone, "≤ 1.5 × unloaded"), Outcome::NotMeasured);
}

#[test]
fn throughput_may_lose_two_per_cent() {
    for (ours, expected) in [(49.0, Outcome::Met), (48.9, Outcome::Missed)] {
        let result = result(
            "throughput",
            &[
                ("seq-read-1", "idle", "none", "read_mb_s", "MB/s", &[50.0]),
                (
                    "seq-read-1",
                    "idle",
                    "frontrow",
                    "read_mb_s",
                    "MB/s",
                    &[ours],
                ),
            ],
        );
        assert_eq!(outcome(&result, "≥ 0.98 × best stock"), expected, "{ours}");
    }
}

#[test]
fn the_emulated_device_is_held_against_its_own_papers_figures() {
    for (rate, expected) in [(62.6, Outcome::Met), (46.0, Outcome::Missed)] {
        let figure = ("calibrate-seq-write", "idle", "none");
        let (workload, load, policy) = figure;
        let mut result = result(
            "calibrate",
            &[(workload, load, policy, "512k_write_mb_s", "MB/s", &[rate])],
        );
        result.device = "emmc".to_owned();
        assert_eq!(outcome(&result, "54.5 MB/s ± 15 %"), expected, "{rate}");
        result.device = "ufs".to_owned();
        let judged = bars::judge(&Summary::of(&result));
        assert!(
            judged
                .iter()
                .all(|judged| judged.bar.demand != "54.5 MB/s ± 15 %")
        );
    }
}

#[test]
fn throttling_is_told_apart_where_it_happened() {
    for (pause_ms, expected) in [(200.0, true), (0.0, false)] {
        let result = result(
            "qasio",
            &[
                ("m1", "writer", "none", "total_ms", "ms", &[500.0]),
                ("m1", "writer", "none", "throttled_ms", "ms", &[pause_ms]),
            ],
        );
        let table = table::render(&result, Options::default());
        assert_eq!(table.contains("unthrottled"), expected, "{table}");
    }
}

#[test]
fn the_headline_adds_what_one_operation_needs() {
    let figures: Vec<Figures> = [
        ("idle", "none", "creat_mean_ms", 1.0),
        ("idle", "none", "fsync_mean_ms", 4.0),
        ("writer", "mq-deadline", "creat_mean_ms", 200.0),
        ("writer", "mq-deadline", "fsync_mean_ms", 440.0),
        ("writer", "frontrow", "creat_mean_ms", 2.0),
        ("writer", "frontrow", "fsync_mean_ms", 5.0),
    ]
    .iter()
    .map(|(load, policy, metric, value)| {
        (
            "m1",
            *load,
            *policy,
            *metric,
            "ms",
            std::slice::from_ref(value),
        )
    })
    .collect();
    let headline = Headline::of(&Summary::of(&result("qasio", &figures))).unwrap();
    assert_eq!(
        headline.sentence(),
        "While a big file is being written, creating and syncing a small file takes 640 ms under \
         mq-deadline and 7.00 ms under frontrow; unloaded it takes 5.00 ms."
    );
}

#[test]
fn the_command_makes_the_result_again() {
    let mut result = totals(&[("none", 1.0)], &[("none", 1.0), ("frontrow", 1.0)]);
    result.kernel = "6.12.117+deb12-cloud-amd64".to_owned();
    result.scale = Scale::Full;
    assert_eq!(
        command::reproduce(&result).as_deref(),
        Some(
            "frontrow-lab run qasio --kernel 6.12 --device emmc --policy none,frontrow \
         --workload m1 --load idle,writer --seeds 1..1 --scale full"
        )
    );
    result.kernel = "7.3.4+deb13-cloud-arm64".to_owned();
    let command = command::reproduce(&result).unwrap();
    assert!(
        command.contains("--kernel 7.3 --arch arm64 --device emmc"),
        "{command}"
    );
    result.experiment = "bench".to_owned();
    assert_eq!(command::reproduce(&result), None);
}

/// A result of gallery and game under two loads with one seed.
fn in_front(policies: &[(&str, [f64; 2])]) -> ResultFile {
    let metric = "response_mean_ms";
    let mut rows = vec![
        ("gallery", "idle", "stock", metric, "ms", &[100.0][..]),
        ("game", "idle", "stock", metric, "ms", &[200.0]),
    ];
    for (policy, [gallery, game]) in policies {
        let (gallery, game) = (std::slice::from_ref(gallery), std::slice::from_ref(game));
        rows.push(("gallery", "backup", policy, metric, "ms", gallery));
        rows.push(("game", "reinstall", policy, metric, "ms", game));
    }
    result("fasttrack", &rows)
}

#[test]
fn the_foreground_is_held_against_itself_alone_under_the_kernels_default() {
    for (game, expected) in [(300.0, Outcome::Met), (302.0, Outcome::Missed)] {
        let result = in_front(&[("stock", [900.0, 900.0]), ("fastt-", [150.0, game])]);
        assert_eq!(outcome(&result, "≤ 1.5 × alone"), expected, "{game}");
    }
}

#[test]
fn a_reduction_on_average_may_be_missed_by_one_scenario() {
    // A reduction to a tenth and a third averages 0.22; one to a tenth and a half averages 0.3.
    for (game, expected) in [(300.0, Outcome::Met), (450.0, Outcome::Missed)] {
        let result = in_front(&[("stock", [900.0, 900.0]), ("fastt-", [90.0, game])]);
        let demand = "on average −74 % against stock";
        assert_eq!(outcome(&result, demand), expected, "{game}");
    }
    let no_stock = in_front(&[("fastt-", [90.0, 90.0])]);
    assert_eq!(
        outcome(&no_stock, "on average −74 % against stock"),
        Outcome::NotMeasured
    );
}

#[test]
fn all_that_a_user_would_try_has_to_be_there_to_be_beaten() {
    let demand = "below all that a user would try today";
    let means = [
        "bfq-weight",
        "bfq-idle",
        "mq-deadline-idle",
        "io-cost",
        "pr",
    ];
    let mut policies: Vec<_> = means.map(|it| (it, [500.0, 500.0])).to_vec();
    policies.push(("fastt-", [300.0, 400.0]));
    assert_eq!(outcome(&in_front(&policies), demand), Outcome::NotMeasured);
    policies.push(("all-means", [301.0, 401.0]));
    assert_eq!(outcome(&in_front(&policies), demand), Outcome::Met);
    policies[0].1 = [500.0, 399.0];
    assert_eq!(outcome(&in_front(&policies), demand), Outcome::Missed);
}

/// A result of three workloads, alone and under three loads, with five policies and two seeds. All
/// totals are 100 ms except those given here.
fn matrix(others: &[(&str, &str, &str, [f64; 2])]) -> ResultFile {
    let mut rows = Vec::new();
    for workload in ["m1", "m2", "m4"] {
        for load in ["idle", "writer", "backup", "unpack"] {
            for policy in ["none", "all-means", "frontrow", "fastt-", "fastt"] {
                let named = others
                    .iter()
                    .find(|it| (it.0, it.1, it.2) == (workload, load, policy));
                let values = named.map_or([100.0; 2], |it| it.3);
                let figure = (workload, load, policy, "total_ms", "ms", &values[..]);
                rows.extend(result("foreground", &[figure]).rows);
            }
        }
    }
    ResultFile {
        rows,
        ..result("foreground", &[])
    }
}

#[test]
fn a_matrix_is_drawn_as_one_picture_a_policy() {
    let result = matrix(&[
        ("m2", "unpack", "fastt", [100.0, 300.0]),
        ("m2", "unpack", "all-means", [90.0, 90.0]),
        ("m4", "writer", "frontrow", [110.0, 110.0]),
        ("m4", "writer", "all-means", [50.0, 50.0]),
    ]);
    let page = markdown::render(&result);
    assert!(page.contains("## fastt\n"), "{page}");
    // The policy is twice as slow on average, three times at worst, and all-means is better.
    assert!(page.contains("🟧 2.00 (3.00) ▲"), "{page}");
    // A policy without a named foreground is compared with the kernel's own schedulers only: 110 of
    // 100 ms.
    assert!(page.contains("🟩 1.10 ▲"), "{page}");
    assert!(
        !page.contains("| m2 under unpack |"),
        "no table of 36 lines"
    );
    let report = html::render(&result);
    assert!(
        report.contains("median ×3.00, worst ×3.00 alone; ×2.22 of all-means"),
        "{report}"
    );
}

#[test]
fn a_few_loads_are_no_matrix() {
    let mut result = matrix(&[]);
    result.rows.retain(|row| row.load != "unpack");
    assert!(markdown::render(&result).contains("m2 under backup"));
}

#[test]
fn a_matrix_is_judged_cell_by_cell_and_over_all() {
    let result = matrix(&[("m2", "unpack", "fastt", [100.0, 300.0])]);
    let judged = bars::judge(&Summary::of(&result));
    let outcome = |title: &str| {
        let bar = judged.iter().find(|it| it.bar.title == title).unwrap();
        let missed = bar
            .verdicts
            .iter()
            .filter(|it| it.outcome == Outcome::Missed);
        (bar.outcome(), missed.count(), bar.verdicts.len())
    };
    assert_eq!(outcome("fastt, each cell"), (Outcome::Missed, 1, 9));
    // The ninth root of two is 1.08.
    assert_eq!(outcome("fastt, over all cells"), (Outcome::Met, 0, 1));
    assert_eq!(
        outcome("fastt, whatever is in front and behind"),
        (Outcome::Missed, 1, 9)
    );
    assert_eq!(
        outcome("fastt-, whatever is in front and behind").0,
        Outcome::Met
    );
    assert_eq!(outcome("frontrow, nobody named").0, Outcome::Met);
}
