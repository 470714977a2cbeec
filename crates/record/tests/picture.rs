//! The headline's picture.

use record::headline::Headline;
use record::{Summary, number, picture};

/// The numbers of an attribute, in order.
fn numbers(svg: &str, element: &str, attribute: &str) -> Vec<f64> {
    let elements = svg.split(element).skip(1);
    let values = elements.filter_map(|it| {
        it.split(&format!("{attribute}=\""))
            .nth(1)?
            .split('"')
            .next()
    });
    values.map(|it| it.parse().unwrap()).collect()
}

#[test]
fn each_scheduler_has_a_bar_as_long_as_its_time_and_the_value_beside_it() {
    let result = crate::synthetic::result(&crate::synthetic::POLICIES, &[1, 2]);
    let summary = Summary::of(&result);
    let svg = picture::render(&summary).unwrap();
    let headline = Headline::of(&summary).unwrap();
    let mut values = Vec::new();
    for policy in ["none", "mq-deadline", "kyber", "bfq", "frontrow"] {
        let value_ms = headline.of_policy(&summary, policy).unwrap();
        assert!(svg.contains(&format!(">{policy}</text>")), "{policy}");
        let told = format!(">{}</text>", number::with_unit(value_ms, "ms"));
        assert!(svg.contains(&told), "{policy}: {told}");
        values.push(value_ms);
    }
    assert!(
        !svg.contains("frontrow:"),
        "an ablation is no scheduler to choose"
    );
    values.push(headline.unloaded_ms);
    values.sort_by(f64::total_cmp);
    let mut widths = numbers(&svg, "<rect", "width");
    widths.sort_by(f64::total_cmp);
    assert_eq!(widths.len(), values.len());
    let scale = widths.last().unwrap() / values.last().unwrap();
    for (width, value) in widths.iter().zip(&values) {
        assert!((width - value * scale).abs() <= 1.0, "{width} for {value}");
    }
    assert!(widths.last().unwrap() <= &420.0, "the value has its place");
}

#[test]
fn a_result_without_a_headline_has_no_picture() {
    let mut result = crate::synthetic::result(&crate::synthetic::POLICIES, &[1, 2]);
    result.rows.retain(|row| row.load == "idle");
    assert_eq!(picture::render(&Summary::of(&result)), None);
}
