//! Numbers for readers: three significant digits and a suitable unit.

/// A value with its unit, scaled for times: `0.0173 s` → `17.3 ms`.
pub fn with_unit(value: f64, unit: &str) -> String {
    match unit {
        "ns" => seconds(value / 1e9),
        "us" | "µs" => seconds(value / 1e6),
        "ms" => seconds(value / 1e3),
        "s" => seconds(value),
        "" | "1" | "count" => significant(value),
        other => format!("{} {other}", significant(value)),
    }
}

/// A size in SI units: `512 B`, `4.10 kB`, `2.15 GB`.
pub fn bytes(bytes: u64) -> String {
    let (factor, unit) = match bytes {
        0..1_000 => (1.0, "B"),
        1_000..1_000_000 => (1e3, "kB"),
        1_000_000..1_000_000_000 => (1e6, "MB"),
        _ => (1e9, "GB"),
    };
    format!("{} {unit}", significant(bytes as f64 / factor))
}

/// A share in per cent: `0.153` → `15.3 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        size if size >= 9.95 => format!("{percent:.0} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// A mean of counts, without decimals where it is whole or large: `18`, `18.4`, `1,234`.
pub fn count(mean: f64) -> String {
    match mean.fract() == 0.0 || mean.abs() >= 99.95 {
        true => significant_whole(mean),
        false => format!("{mean:.1}"),
    }
}

/// A change in per cent with its sign: `−91 %`, `+4 %`.
pub fn change(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "+" };
    format!("{sign}{:.0} %", share.abs() * 100.0)
}

fn significant_whole(value: f64) -> String {
    let digits = format!("{value:.0}");
    match value.abs() >= 9_999.5 {
        true => thousands(&digits),
        false => digits,
    }
}

/// A ratio such as `×1.92`; below 10 it has two decimals, which matter near 1. Where they would say
/// nothing it has more: `×0.003`.
pub fn times(ratio: f64) -> String {
    format!("×{}", factor(ratio))
}

/// A ratio without the sign `×`.
pub fn factor(ratio: f64) -> String {
    match ratio.abs() {
        size if size > 0.0 && size < 0.0095 => {
            format!("{ratio:.*}", -size.log10().floor() as usize)
        }
        size if size < 0.9995 => format!("{ratio:.2}"),
        _ => significant(ratio),
    }
}

fn seconds(value: f64) -> String {
    let (factor, unit) = match value.abs() {
        size if size == 0.0 || (1e-3..0.9995).contains(&size) => (1e3, "ms"),
        size if size < 0.9995e-6 => (1e9, "ns"),
        size if size < 1e-3 => (1e6, "µs"),
        size if size < 600.0 => (1.0, "s"),
        _ => (1.0 / 60.0, "min"),
    };
    format!("{} {unit}", significant(value * factor))
}

/// A round number on an axis, with no more digits than needed: `0.5`, `20`, `1,000`.
pub fn tick(value: f64) -> String {
    match value >= 1.0 {
        true => thousands(&format!("{value:.0}")),
        false => significant(value),
    }
}

/// A round number of nanoseconds on an axis, such as `20 ms`.
pub fn tick_ns(value: f64) -> String {
    let (factor, unit) = match value {
        size if size < 0.9995e3 => (1.0, "ns"),
        size if size < 0.9995e6 => (1e-3, "µs"),
        size if size < 0.9995e9 => (1e-6, "ms"),
        _ => (1e-9, "s"),
    };
    format!("{} {unit}", tick(value * factor))
}

/// Three significant digits; no decimals above 100, and groups of thousands above 9999.
pub fn significant(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        size if size == 0.0 || size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        size if size >= 0.09995 => 3,
        size if size >= 0.009995 => 4,
        _ => 5,
    };
    let digits = format!("{value:.decimals$}");
    if size >= 9_999.5 {
        return thousands(&digits);
    }
    match digits.contains('.') && size < 0.9995 {
        true => digits
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned(),
        false => digits,
    }
}

fn thousands(digits: &str) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let mut out = String::from(sign);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_fitting_unit() {
        for (value, unit, expected) in [
            (249.4, "ms", "249 ms"),
            (17.28, "ms", "17.3 ms"),
            (1.0, "ms", "1.00 ms"),
            (0.19, "ms", "190 µs"),
            (0.0123, "ms", "12.3 µs"),
            (0.0, "ms", "0 ms"),
            (999.7, "ms", "1.00 s"),
            (13_270.0, "ms", "13.3 s"),
            (900_000.0, "ms", "15.0 min"),
            (0.1534, "1", "0.153"),
            (0.5, "1", "0.5"),
            (54.52, "MB/s", "54.5 MB/s"),
            (1_234_567.0, "instructions", "1,234,567 instructions"),
            (250_000.0, "ns", "250 µs"),
            (-12.0, "ms", "-12.0 ms"),
        ] {
            assert_eq!(with_unit(value, unit), expected);
        }
    }

    #[test]
    fn sizes_are_in_si_units() {
        for (value, expected) in [
            (512, "512 B"),
            (4096, "4.10 kB"),
            (64 << 20, "67.1 MB"),
            (2 << 30, "2.15 GB"),
        ] {
            assert_eq!(bytes(value), expected);
        }
    }

    #[test]
    fn counts_and_changes() {
        assert_eq!(count(18.0), "18");
        assert_eq!(count(18.4), "18.4");
        assert_eq!(count(12_345.6), "12,346");
        assert_eq!(change(-0.914), "−91 %");
        assert_eq!(change(0.04), "+4 %");
    }

    #[test]
    fn ratios_and_shares() {
        assert_eq!(times(1.924), "×1.92");
        assert_eq!(times(18.64), "×18.6");
        assert_eq!(times(1.0), "×1.00");
        assert_eq!(times(0.0871), "×0.09");
        assert_eq!(times(0.0121), "×0.01");
        assert_eq!(times(0.00312), "×0.003");
        assert_eq!(times(0.0), "×0.00");
        assert_eq!(times(32_000.0), "×32,000");
        assert_eq!(percent(0.831), "83 %");
        assert_eq!(percent(0.0684), "6.8 %");
    }
}
