//! Visible areas of overlapping windows.

/// A rectangle in pixels, which may reach beyond the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
}

impl Area {
    fn contains(&self, x: i32, y: i32) -> bool {
        (self.x..self.x + self.width).contains(&x) && (self.y..self.y + self.height).contains(&y)
    }

    fn within(&self, screen: &Area) -> Area {
        let span = |at: i32, length: i32, from: i32, most: i32| {
            let end = (at + length).min(from + most);
            let at = at.max(from);
            (at, (end - at).max(0))
        };
        let (x, width) = span(self.x, self.width, screen.x, screen.width);
        let (y, height) = span(self.y, self.height, screen.y, screen.height);
        Area {
            x,
            y,
            width,
            height,
        }
    }
}

/// Number of visible pixels on `screen` of each of `windows`, which are ordered from the lowest up.
pub(crate) fn seen(windows: &[Area], screen: Area) -> Vec<u64> {
    let windows: Vec<_> = windows.iter().map(|it| it.within(&screen)).collect();
    let edges = |low: fn(&Area) -> i32, length: fn(&Area) -> i32| -> Vec<i32> {
        let both = windows
            .iter()
            .flat_map(|it| [low(it), low(it) + length(it)]);
        let mut edges: Vec<_> = both.collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    };
    let columns = edges(|it| it.x, |it| it.width);
    let rows = edges(|it| it.y, |it| it.height);
    let mut pixels = vec![0; windows.len()];
    // The area between adjoining edges belongs to one window.
    for x in columns.windows(2) {
        for y in rows.windows(2) {
            if let Some(top) = windows.iter().rposition(|it| it.contains(x[0], y[0])) {
                pixels[top] += u64::from(x[0].abs_diff(x[1])) * u64::from(y[0].abs_diff(y[1]));
            }
        }
    }
    pixels
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn area() -> impl Strategy<Value = Area> {
        (-20..60, -20..60, 0..50, 0..50).prop_map(|(x, y, width, height)| Area {
            x,
            y,
            width,
            height,
        })
    }

    proptest! {
        #[test]
        fn each_pixel_is_the_highest_windows(windows in prop::collection::vec(area(), 0..6)) {
            let screen = Area { x: 0, y: 0, width: 40, height: 30 };
            let mut pixels = vec![0; windows.len()];
            for (x, y) in (0..40).flat_map(|x| (0..30).map(move |y| (x, y))) {
                if let Some(top) = windows.iter().rposition(|it| it.contains(x, y)) {
                    pixels[top] += 1;
                }
            }
            prop_assert_eq!(seen(&windows, screen), pixels);
        }
    }
}
