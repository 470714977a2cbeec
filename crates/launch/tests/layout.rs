//! Any layout of files is read completely and once, with padding only where it is allowed.

use launch::Latency;
use launch::plan::{DevicePieces, Joining, Piece, Place, Purpose, Request, layout};
use proptest::prelude::*;

const PAGE_BYTES: u64 = 4096;

/// Read times of a device on which a command costs as much as 20 pages.
fn latency() -> Latency {
    Latency {
        ns: std::array::from_fn(|pages| 400_000 + (pages as u64 + 1) * 20_000),
        page_ns: 20_000,
        gap_ns: 0,
        hidden_ns: 0,
    }
}

fn pad(most: f64) -> Joining {
    Joining::Pad {
        latency: Box::new(latency()),
        most,
    }
}

fn piece(device_page: u64, pages: u64, file: usize, file_page: u64) -> Piece {
    Piece {
        device_bytes: device_page * PAGE_BYTES,
        length_bytes: pages * PAGE_BYTES,
        place: Place {
            file,
            file_bytes: file_page * PAGE_BYTES,
        },
    }
}

prop_compose! {
    /// Files one after another on the device, with room between some of them, and some of their
    /// pages.
    fn device_pieces()(
        files in proptest::collection::vec((0..40_u64, proptest::collection::vec((0..30_u64, 1..20_u64), 1..6)), 1..12),
        readable in any::<bool>(),
        rotation in any::<prop::sample::Index>(),
    ) -> DevicePieces {
        let (mut pieces, mut owned, mut at) = (Vec::new(), Vec::new(), 0);
        for (file, (room, ranges)) in files.iter().enumerate() {
            at += room;
            let begin = at;
            for (gap, pages) in ranges {
                at += gap;
                pieces.push(piece(at, *pages, file, at - begin));
                at += pages;
            }
            owned.push(piece(begin, at - begin, file, 0));
        }
        let middle = rotation.index(pieces.len());
        pieces.rotate_left(middle);
        DevicePieces { pieces, owned, readable }
    }
}

fn contiguous(request: &Request) -> bool {
    let mut at = request.begin_bytes();
    request.parts.iter().all(|part| {
        let fits = part.device_bytes == at && part.length_bytes > 0;
        at += part.length_bytes;
        fits
    })
}

/// Each page of the working set with its place on the device, in the device's order.
fn pages(requests: &[Request]) -> Vec<(u64, usize, u64)> {
    let mut all = Vec::new();
    for part in requests.iter().flat_map(|it| &it.parts) {
        if let Purpose::Pages(place) = part.purpose {
            for bytes in (0..part.length_bytes).step_by(PAGE_BYTES as usize) {
                all.push((
                    part.device_bytes + bytes,
                    place.file,
                    place.file_bytes + bytes,
                ));
            }
        }
    }
    all
}

fn expected(on_device: &DevicePieces) -> Vec<(u64, usize, u64)> {
    let mut all = Vec::new();
    for piece in &on_device.pieces {
        for bytes in (0..piece.length_bytes).step_by(PAGE_BYTES as usize) {
            all.push((
                piece.device_bytes + bytes,
                piece.place.file,
                piece.place.file_bytes + bytes,
            ));
        }
    }
    all.sort_unstable();
    all
}

fn padding_bytes(requests: &[Request]) -> u64 {
    let parts = requests.iter().flat_map(|it| &it.parts);
    parts
        .filter(|it| it.is_padding())
        .map(|it| it.length_bytes)
        .sum()
}

/// A device that takes commands while data cross its link needs the longer of both.
const COMMAND_NS: u64 = 50_000;
const LINK_PAGE_NS: u64 = 9_000;

fn hiding() -> Latency {
    Latency {
        ns: std::array::from_fn(|pages| COMMAND_NS.max((pages as u64 + 1) * LINK_PAGE_NS)),
        page_ns: LINK_PAGE_NS,
        gap_ns: 0,
        hidden_ns: COMMAND_NS - LINK_PAGE_NS,
    }
}

fn pad_hiding(most: f64) -> Joining {
    Joining::Pad {
        latency: Box::new(hiding()),
        most,
    }
}

/// Time of so many requests on such a device.
fn hiding_ns(requests: usize, pages: u64) -> u64 {
    (requests as u64 * COMMAND_NS).max(pages * LINK_PAGE_NS)
}

/// Chunks one after another, each after a gap, on a device that can be read.
fn chain(sizes: &[(u64, u64)]) -> DevicePieces {
    let mut at = 0;
    let mut next = |(gap, pages): &(u64, u64)| {
        let piece = piece(at + gap, *pages, 0, at + gap);
        at += gap + pages;
        piece
    };
    DevicePieces {
        pieces: sizes.iter().map(&mut next).collect(),
        owned: Vec::new(),
        readable: true,
    }
}

/// Least time of all ways to pad some of the gaps, with at most `most_pages` of padding.
fn least_hiding_ns(sizes: &[(u64, u64)], most_pages: u64) -> u64 {
    let pages: u64 = sizes.iter().map(|(_, pages)| pages).sum();
    let gaps = &sizes[1..];
    let all = (0..1_u32 << gaps.len()).filter_map(|vector| {
        let padded = |index: &usize| vector >> index & 1 == 1;
        let padding: u64 = (0..gaps.len()).filter(padded).map(|it| gaps[it].0).sum();
        let requests = sizes.len() - vector.count_ones() as usize;
        (padding <= most_pages).then(|| hiding_ns(requests, pages + padding))
    });
    all.min().unwrap()
}

fn time_ns(requests: &[Request]) -> u64 {
    requests
        .iter()
        .map(|it| latency().read_ns(it.length_bytes()))
        .sum()
}

proptest! {
    #[test]
    fn every_page_is_read_once_in_the_devices_order(on_device in device_pieces(), most in 0.0..2.0_f64) {
        let pages_bytes: u64 = on_device.pieces.iter().map(|it| it.length_bytes).sum();
        let expected = expected(&on_device);
        let merged = layout(on_device.clone(), &Joining::Merge);
        let padded = layout(on_device.clone(), &pad(most));
        for requests in [&merged, &padded] {
            prop_assert_eq!(&pages(requests), &expected);
            prop_assert!(requests.iter().all(contiguous));
        }
        prop_assert!(merged.windows(2).all(|it| it[0].begin_bytes() + it[0].length_bytes() < it[1].begin_bytes()));
        prop_assert_eq!(padding_bytes(&merged), 0);
        prop_assert!(padding_bytes(&padded) as f64 <= most * pages_bytes as f64);
        prop_assert!(time_ns(&padded) <= time_ns(&merged));
    }

    #[test]
    fn padding_is_read_from_where_it_may_be(on_device in device_pieces()) {
        let inside = |place: Place, device_bytes: u64, length_bytes: u64| on_device.owned.iter().any(|it| {
            it.place.file == place.file
                && device_bytes >= it.device_bytes
                && device_bytes + length_bytes <= it.device_bytes + it.length_bytes
                && place.file_bytes == it.place.file_bytes + (device_bytes - it.device_bytes)
        });
        for part in layout(on_device.clone(), &pad(9.0)).iter().flat_map(|it| &it.parts) {
            match part.purpose {
                Purpose::Pages(place) | Purpose::FilePadding(place) => {
                    prop_assert!(inside(place, part.device_bytes, part.length_bytes));
                }
                Purpose::DevicePadding => prop_assert!(on_device.readable),
            }
        }
    }
}

proptest! {
    #[test]
    fn where_commands_are_hidden_no_padding_is_better(
        sizes in proptest::collection::vec((1..12_u64, 1..12_u64), 1..11), most in 0.0..1.5_f64,
    ) {
        let pages: u64 = sizes.iter().map(|(_, pages)| pages).sum();
        let requests = layout(chain(&sizes), &pad_hiding(most));
        let padding = padding_bytes(&requests) / PAGE_BYTES;
        let most_pages = (pages as f64 * most) as u64;
        prop_assert!(padding <= most_pages);
        prop_assert_eq!(
            hiding_ns(requests.len(), pages + padding),
            least_hiding_ns(&sizes, most_pages)
        );
    }
}

#[test]
fn nothing_is_padded_where_the_link_is_busy_anyway() {
    // Eight pages take longer on the link than a command does; four do not.
    let of = |pages: u64| chain(&[(1, pages); 40]);
    assert_eq!(layout(of(8), &pad_hiding(9.0)).len(), 40);
    assert!(layout(of(4), &pad_hiding(9.0)).len() < 40);
    // Gaps are padded until n commands take as long as 160 + 40 - n pages.
    assert_eq!(layout(of(4), &pad_hiding(9.0)).len(), 30);
    // All are joined where nothing is hidden.
    assert_eq!(layout(of(8), &pad(9.0)).len(), 1);
}

#[test]
fn neighbours_of_different_files_are_one_request() {
    let on_device = DevicePieces {
        pieces: vec![piece(108, 4, 1, 0), piece(100, 8, 0, 2)],
        ..DevicePieces::default()
    };
    let requests = layout(on_device, &Joining::Merge);
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].length_bytes(), 12 * PAGE_BYTES);
}

#[test]
fn a_gap_that_is_nobodys_is_padded_only_from_a_readable_device() {
    let on_device = |readable| DevicePieces {
        pieces: vec![piece(100, 4, 0, 0), piece(110, 4, 1, 3)],
        owned: vec![piece(100, 6, 0, 0), piece(107, 10, 1, 0)],
        readable,
    };
    assert_eq!(layout(on_device(false), &pad(9.0)).len(), 2);
    let joined = layout(on_device(true), &pad(9.0));
    let purposes: Vec<Purpose> = joined[0].parts.iter().map(|it| it.purpose).collect();
    let place = |file, file_page: u64| Place {
        file,
        file_bytes: file_page * PAGE_BYTES,
    };
    assert_eq!(
        purposes,
        [
            Purpose::Pages(place(0, 0)),
            Purpose::FilePadding(place(0, 4)),
            Purpose::DevicePadding,
            Purpose::FilePadding(place(1, 0)),
            Purpose::Pages(place(1, 3)),
        ]
    );
}

#[test]
fn pages_that_files_share_are_read_for_one_of_them() {
    let on_device = DevicePieces {
        pieces: vec![
            piece(100, 8, 0, 0),
            piece(100, 8, 1, 0),
            piece(104, 2, 2, 0),
        ],
        ..DevicePieces::default()
    };
    let requests = layout(on_device, &Joining::Merge);
    assert_eq!(requests[0].length_bytes(), 8 * PAGE_BYTES);
    assert_eq!(requests.len(), 1);
}
