//! The HTML report as a reader opens it.

use proptest::prelude::*;
use record::{Histogram, ResultFile, Row, Series, html, markdown, table};
use std::path::Path;

const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];

fn drawings(page: &str) -> Vec<&str> {
    let starts = page.match_indices("<svg");
    let ends = page
        .match_indices("</svg>")
        .map(|(end, tag)| end + tag.len());
    starts
        .zip(ends)
        .map(|((start, _), end)| &page[start..end])
        .collect()
}

/// The page stays in the target directory, so that it can be viewed.
#[test]
fn the_report_stands_alone() {
    let page = html::render(&crate::synthetic::result(
        &crate::synthetic::POLICIES,
        &SEEDS,
    ));
    std::fs::write(
        Path::new(env!("CARGO_TARGET_TMPDIR")).join("report.html"),
        &page,
    )
    .unwrap();
    for outside in ["http://", "https://", "src=", "<script", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn the_report_holds_every_part() {
    let page = html::render(&crate::synthetic::result(
        &crate::synthetic::POLICIES,
        &SEEDS,
    ));
    for part in [
        "creating and syncing a small file takes",
        "How many times slower",
        "How long each operation takes",
        "What was asked",
        "What each promotion does",
        "All figures",
        "frontrow-lab run qasio",
        "6.12.0-synthetic-amd64",
        "image_sha256",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn drawings_are_well_formed_and_described() {
    let page = html::render(&crate::synthetic::result(
        &crate::synthetic::POLICIES,
        &SEEDS,
    ));
    let drawings = drawings(&page);
    // There are ten workloads, fifteen operations, and two drawings per ablation.
    assert!(drawings.len() > 30, "{}", drawings.len());
    for drawing in drawings {
        let parsed = roxmltree::Document::parse(drawing).unwrap();
        let has = |name| parsed.descendants().any(|node| node.has_tag_name(name));
        assert!(has("title") && has("desc"), "{drawing}");
    }
}

#[test]
fn an_experiment_without_load_has_its_own_bars() {
    let mut result = crate::synthetic::result(&["none", "frontrow"], &SEEDS);
    result.rows.retain(|row| row.load == "idle");
    let page = html::render(&result);
    assert!(page.contains("Scales start at 0 and differ between charts."));
    assert!(!page.contains("How many times slower"));
    assert!(drawings(&page).len() >= 10);
}

#[test]
fn what_was_seen_over_time_is_drawn_for_each_policy() {
    let mut result = crate::synthetic::result(&["none", "frontrow"], &[1]);
    assert!(!html::render(&result).contains("What lay in the queue"));
    let mut rows = Vec::new();
    for row in result
        .rows
        .iter()
        .filter(|row| row.load == "writer" && row.workload == "m1")
    {
        if row.metric == "total_ms" {
            for (metric, values) in [
                ("foreground_queued", [0.0, 2.0]),
                ("background_in_device", [1.0, 1.0]),
            ] {
                let series = Some(Series::over_time(10.0, values));
                rows.push(Row {
                    metric: metric.to_owned(),
                    series,
                    ..row.clone()
                });
            }
        }
    }
    assert_eq!(rows.len(), 4);
    result.rows.extend(rows);
    let page = html::render(&result);
    assert!(page.contains("What lay in the queue and in the device"));
    let drawn = drawings(&page);
    let drawn: Vec<_> = drawn
        .iter()
        .filter(|it| it.contains("queue and device over time"))
        .collect();
    assert_eq!(drawn.len(), 2);
    assert!(
        drawn[0].contains("foreground: on average 1.00 requests wait"),
        "{}",
        drawn[0]
    );
}

#[test]
fn the_same_result_gives_the_same_bytes() {
    let result = crate::synthetic::result(&crate::synthetic::POLICIES, &SEEDS);
    let again: ResultFile = serde_json::from_str(&serde_json::to_string(&result).unwrap()).unwrap();
    assert_eq!(html::render(&result), html::render(&again));
    assert_eq!(markdown::render(&result), markdown::render(&again));
}

#[test]
fn names_are_text_and_never_markup() {
    let mut result = crate::synthetic::result(&["none"], &[1]);
    let name = "</style><script>alert('&')</script>|\"";
    result.experiment = name.to_owned();
    result.kernel = name.to_owned();
    result.inputs.items.insert(name.to_owned(), name.to_owned());
    for row in &mut result.rows {
        row.policy = name.to_owned();
        row.workload.push_str(name);
        row.metric.push_str(name);
        row.unit = name.to_owned();
    }
    let page = html::render(&result);
    assert!(!page.contains("<script"));
    assert_eq!(page.matches("</style>").count(), 1);
    for drawing in drawings(&page) {
        roxmltree::Document::parse(drawing).unwrap();
    }
    let page = markdown::render(&result);
    for line in page.lines().filter(|line| line.starts_with('|')) {
        assert!(line.ends_with('|') && !line.contains("<script"), "{line}");
    }
}

#[test]
fn an_empty_result_is_said_to_be_empty() {
    let result = crate::synthetic::result(&[], &[]);
    assert!(html::render(&result).contains("nothing was measured"));
    assert!(table::render(&result, table::Options::default()).contains("nothing was measured"));
}

prop_compose! {
    fn any_histogram()(
        mut buckets_ns in prop::collection::vec((0..u64::MAX / 2, 0..1_000_u64), 0..40),
    ) -> Histogram {
        buckets_ns.sort_unstable();
        buckets_ns.dedup_by_key(|(latency_ns, _)| *latency_ns);
        Histogram::new(buckets_ns)
    }
}

fn any_series() -> impl Strategy<Value = Series> {
    let values = prop::collection::vec(0.0..1e9_f64, 0..30);
    (prop::option::of(0.0..1e6_f64), values).prop_map(|(interval_ms, values)| Series {
        interval_ms,
        values,
    })
}

fn any_row() -> impl Strategy<Value = Row> {
    let choice = |names: &'static [&'static str]| prop::sample::select(names);
    (
        choice(&["m1", "m3", "b", "share", "other"]),
        choice(&["idle", "writer"]),
        choice(&["none", "mq-deadline", "frontrow", "frontrow:none", "merged"]),
        choice(&[
            "total_ms",
            "throttled_ms",
            "fsync_mean_ms",
            "shots",
            "meta_waits",
            "meta_boosted",
            "foreground_queued",
            "background_device_mb_s",
        ]),
        0..3_u64,
        prop_oneof![Just(0.0), -1e3..1e12_f64, Just(1e-300)],
        prop::option::of(any_histogram()),
        prop::option::of(any_series()),
    )
        .prop_map(
            |(workload, load, policy, metric, seed, value, histogram, series)| Row {
                workload: workload.to_owned(),
                load: load.to_owned(),
                policy: policy.to_owned(),
                metric: metric.to_owned(),
                unit: if metric.ends_with("_ms") { "ms" } else { "1" }.to_owned(),
                seed,
                value,
                histogram,
                series,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_result_can_be_drawn(rows in prop::collection::vec(any_row(), 0..60)) {
        let result = ResultFile { rows, ..crate::synthetic::result(&[], &[]) };
        let page = html::render(&result);
        for drawing in drawings(&page) {
            prop_assert!(!drawing.contains("NaN") && !drawing.contains("\"inf"), "{}", drawing);
            prop_assert!(roxmltree::Document::parse(drawing).is_ok());
        }
        table::render(&result, table::Options::default());
        markdown::render(&result);
    }

    #[test]
    fn merged_histograms_hold_every_count(parts in prop::collection::vec(any_histogram(), 0..6)) {
        let merged = Histogram::merged(&parts);
        prop_assert_eq!(merged.count(), parts.iter().map(Histogram::count).sum::<u64>());
        let latencies = merged.buckets_ns.iter().map(|(latency_ns, _)| latency_ns);
        prop_assert!(latencies.is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn a_distribution_rises_to_one(histogram in any_histogram()) {
        let points = histogram.cumulative();
        prop_assert!(points.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
        match points.last() {
            Some((_, share)) => prop_assert_eq!(*share, 1.0),
            None => prop_assert_eq!(histogram.count(), 0),
        }
    }
}
