//! A run while iopro records everything, and what the recording tells of it.

use super::{Outcome, measure_run};
use iopro::capture::Background;
use iopro::link;
use iopro::recording::Reader;
use iopro::report::{Layer, layers_of_files};
use iopro::store::Store;
use record::summary::IDLE;
use record::{GuestSpec, Row, Run};
use std::fs;
use std::path::Path;

/// The load that is iopro, recording everything; it writes to memory.
pub const LOAD: &str = "recorded";

const RECORDING: &str = "/tmp/load.iopro";

/// As any run is measured, but recorded; the rows are called as `run`.
pub fn measure(spec: &GuestSpec, run: &Run, place: (&Path, Option<&Path>)) -> Outcome<Vec<Row>> {
    let recording = Background::start(iopro::capture::Request {
        output: RECORDING.into(),
        what: iopro::capture::What::System(None),
    });
    let recording = recording.map_err(|error| error.to_string())?;
    let alone = Run {
        load: IDLE.to_owned(),
        ..run.clone()
    };
    let mut rows = measure_run(spec, &alone, place, run);
    let summary = recording.finish().map_err(|error| error.to_string())?;
    if !summary.lost.is_empty() {
        return Err(format!("iopro lost events: {:?}", summary.lost));
    }
    if let (Ok(rows), "pieces") = (&mut rows, run.workload.as_str()) {
        rows.extend(layers(spec, run)?);
    }
    fs::remove_file(RECORDING).map_err(|error| format!("it cannot remove {RECORDING}: {error}"))?;
    rows
}

/// What the recorded reads of each file spent in each layer.
fn layers(spec: &GuestSpec, run: &Run) -> Outcome<Vec<Row>> {
    let failed = |error: String| format!("its recording tells nothing: {error}");
    let reader = Reader::open(Path::new(RECORDING)).map_err(|error| failed(error.to_string()))?;
    let store = Store::temporary().map_err(|error| failed(error.to_string()))?;
    let linked = link::link(reader, Path::new(RECORDING), None, store, &mut |_| {});
    let linked = linked.map_err(|error| failed(error.to_string()))?;
    let files = layers_of_files(&linked, "pread64").map_err(|error| failed(error.to_string()))?;
    let row = |path: &str, layer: &Layer| {
        let file = Path::new(path).file_name().unwrap_or_default();
        let layer_name = layer.layer.to_lowercase().replace(' ', "_");
        Row {
            workload: run.workload.clone(),
            load: run.load.clone(),
            policy: spec.policy.clone(),
            metric: format!("{}_{layer_name}_ms", file.to_string_lossy()),
            unit: "ms".to_owned(),
            seed: spec.seed,
            value: layer.total_ns as f64 / 1e6,
            histogram: None,
        }
    };
    let rows = files
        .iter()
        .flat_map(|(path, layers)| layers.iter().map(move |layer| row(path, layer)));
    Ok(rows.collect())
}
