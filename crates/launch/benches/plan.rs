//! CPU time of planning, for as many chunks as the paper's Messenger has, and for a million.
//!
//! ```text
//! cargo bench -p launch
//! ```

mod cpu;

use cpu::cpu_s;
use launch::Latency;
use launch::plan::{DevicePieces, Joining, Piece, Place, layout};
use launch::profile::PAGE_BYTES;

/// Number of repetitions; the fastest counts.
const LOOPS: usize = 5;

fn main() {
    for chunks in [1054, 1_000_000] {
        let on_device = on_device(chunks);
        let times = (0..LOOPS).map(|_| plan_s(&on_device));
        let least_s = times.fold(f64::INFINITY, f64::min);
        println!("{chunks} chunks: {:.3} ms of CPU time", least_s * 1e3);
    }
}

/// Chunks of 1 to 28 pages with gaps of 1 to 5 pages, as in the launch experiment's model of
/// Messenger.
fn on_device(chunks: u64) -> DevicePieces {
    let mut state = 1_u64;
    let mut below = |limit: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % limit
    };
    let mut at = 0;
    let mut piece = |_| {
        let length_bytes = (1 + below(28)) * PAGE_BYTES;
        let piece = Piece {
            device_bytes: at,
            length_bytes,
            place: Place {
                file: 0,
                file_bytes: at,
            },
        };
        at += length_bytes + (1 + below(5)) * PAGE_BYTES;
        piece
    };
    DevicePieces {
        pieces: (0..chunks).map(&mut piece).collect(),
        owned: Vec::new(),
        readable: true,
    }
}

fn plan_s(on_device: &DevicePieces) -> f64 {
    // An eMMC: some of the padding pays, and more than 10 % of it would.
    let latency = Latency {
        ns: std::array::from_fn(|pages| 290_000 + (pages as u64 + 1) * 20_000),
        page_ns: 20_000,
        gap_ns: 12_000,
        hidden_ns: 0,
    };
    let joining = Joining::Pad {
        latency: Box::new(latency),
        most: launch::prepare::PADDING,
    };
    let on_device = on_device.clone();
    let begun_s = cpu_s();
    let requests = layout(on_device, &joining);
    let took_s = cpu_s() - begun_s;
    assert!(!requests.is_empty());
    took_s
}
