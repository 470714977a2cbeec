//! A plan as a map of the device's blocks, like the paper's figure 1.

use super::Request;
use crate::profile::PAGE_BYTES;
use std::collections::BTreeMap;

/// Number of pages in a row of the map.
const WIDTH: u64 = 64;

/// Draws the device's blocks in rows, with one character a page. `█` belongs to the working set,
/// `▒` is padding, `·` is not read. Empty rows are left out. There are at most `rows` rows, those
/// with the first requests.
pub fn draw(requests: &[Request], rows: usize) -> String {
    let mut map: BTreeMap<u64, Vec<char>> = BTreeMap::new();
    'requests: for part in requests.iter().flat_map(|it| &it.parts) {
        let first = part.device_bytes / PAGE_BYTES;
        let end = (part.device_bytes + part.length_bytes).div_ceil(PAGE_BYTES);
        for page in first..end {
            let row = page / WIDTH;
            if !map.contains_key(&row) && map.len() == rows {
                break 'requests;
            }
            let row = map.entry(row).or_insert_with(|| vec!['·'; WIDTH as usize]);
            row[(page % WIDTH) as usize] = match part.is_padding() {
                true => '▒',
                false => '█',
            };
        }
    }
    let mut text = String::new();
    let mut before = None;
    for (row, pages) in map {
        if before.is_some_and(|before| before + 1 < row) {
            text.push_str("           ⋮\n");
        }
        before = Some(row);
        let place_mib = (row * WIDTH * PAGE_BYTES) >> 20;
        let pages: String = pages.into_iter().collect();
        text.push_str(&format!("{place_mib:>6} MiB {pages}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Part, Place, Purpose};

    #[test]
    fn pages_padding_and_what_is_not_read_are_told_apart() {
        let part = |page: u64, pages: u64, purpose| Part {
            device_bytes: page * PAGE_BYTES,
            length_bytes: pages * PAGE_BYTES,
            purpose,
        };
        let place = Place {
            file: 0,
            file_bytes: 0,
        };
        let parts = vec![
            part(1, 2, Purpose::Pages(place)),
            part(3, 1, Purpose::FilePadding(place)),
            part(4, 1, Purpose::Pages(place)),
        ];
        let far = vec![part(640, 1, Purpose::Pages(place))];
        let requests = [Request { parts }, Request { parts: far }];
        let map = draw(&requests, 9);
        let lines: Vec<&str> = map.lines().collect();
        assert!(lines[0].starts_with("     0 MiB ·██▒█··"), "{map}");
        assert_eq!(lines[1].trim(), "⋮");
        assert!(lines[2].starts_with("     2 MiB █··"), "{map}");
        assert_eq!(draw(&requests, 1).lines().count(), 1);
    }
}
