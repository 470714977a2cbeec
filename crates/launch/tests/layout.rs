//! Whatever lies where: all of the working set is read once, and padding only where it
//! may be.

use launch::Latency;
use launch::plan::{Ground, Joining, Piece, Place, Purpose, Request, layout};
use proptest::prelude::*;

const PAGE_BYTES: u64 = 4096;

/// A command costs as much as 20 pages.
fn latency() -> Latency {
    Latency {
        ns: std::array::from_fn(|pages| 400_000 + (pages as u64 + 1) * 20_000),
        page_ns: 20_000,
        gap_ns: 0,
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
    /// Files one behind the other on the device, with room between some of them, and
    /// some of their pages.
    fn grounds()(
        files in proptest::collection::vec((0..40_u64, proptest::collection::vec((0..30_u64, 1..20_u64), 1..6)), 1..12),
        readable in any::<bool>(),
        rotation in any::<prop::sample::Index>(),
    ) -> Ground {
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
        Ground { pieces, owned, readable }
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

fn expected(ground: &Ground) -> Vec<(u64, usize, u64)> {
    let mut all = Vec::new();
    for piece in &ground.pieces {
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

fn time_ns(requests: &[Request]) -> u64 {
    requests
        .iter()
        .map(|it| latency().read_ns(it.length_bytes()))
        .sum()
}

proptest! {
    #[test]
    fn every_page_is_read_once_in_the_devices_order(ground in grounds(), most in 0.0..2.0_f64) {
        let pages_bytes: u64 = ground.pieces.iter().map(|it| it.length_bytes).sum();
        let expected = expected(&ground);
        let merged = layout(ground.clone(), &Joining::Merge);
        let padded = layout(ground.clone(), &pad(most));
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
    fn padding_is_read_from_where_it_may_be(ground in grounds()) {
        let inside = |place: Place, device_bytes: u64, length_bytes: u64| ground.owned.iter().any(|it| {
            it.place.file == place.file
                && device_bytes >= it.device_bytes
                && device_bytes + length_bytes <= it.device_bytes + it.length_bytes
                && place.file_bytes == it.place.file_bytes + (device_bytes - it.device_bytes)
        });
        for part in layout(ground.clone(), &pad(9.0)).iter().flat_map(|it| &it.parts) {
            match part.purpose {
                Purpose::Pages(place) | Purpose::FilePadding(place) => {
                    prop_assert!(inside(place, part.device_bytes, part.length_bytes));
                }
                Purpose::DevicePadding => prop_assert!(ground.readable),
            }
        }
    }
}

#[test]
fn neighbours_of_different_files_are_one_request() {
    let ground = Ground {
        pieces: vec![piece(108, 4, 1, 0), piece(100, 8, 0, 2)],
        ..Ground::default()
    };
    let requests = layout(ground, &Joining::Merge);
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].length_bytes(), 12 * PAGE_BYTES);
}

#[test]
fn a_gap_that_is_nobodys_is_padded_only_from_a_readable_device() {
    let ground = |readable| Ground {
        pieces: vec![piece(100, 4, 0, 0), piece(110, 4, 1, 3)],
        owned: vec![piece(100, 6, 0, 0), piece(107, 10, 1, 0)],
        readable,
    };
    assert_eq!(layout(ground(false), &pad(9.0)).len(), 2);
    let joined = layout(ground(true), &pad(9.0));
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
    let ground = Ground {
        pieces: vec![
            piece(100, 8, 0, 0),
            piece(100, 8, 1, 0),
            piece(104, 2, 2, 0),
        ],
        ..Ground::default()
    };
    let requests = layout(ground, &Joining::Merge);
    assert_eq!(requests[0].length_bytes(), 8 * PAGE_BYTES);
    assert_eq!(requests.len(), 1);
}
