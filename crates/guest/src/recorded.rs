//! A run while iopro records, and what the recording tells of where its time went.

use super::{Listener, Outcome, measure_run, row};
use iopro::capture::Background;
use iopro::link;
use iopro::recording::Reader;
use iopro::report::{Layer, layers_of_files};
use iopro::store::Store;
use record::{GuestSpec, Row, Run};
use std::fs;
use std::path::Path;
use workload::Measurement;

const RECORDING: &str = "/tmp/load.iopro";

/// Whether all of the run is recorded, for where its calls spend their time.
pub fn tells_layers(run: &Run) -> bool {
    workload::tells_layers(run.workload)
}

/// The run without iopro.
pub fn without(run: &Run) -> Run {
    Run {
        load: run.load.unrecorded(),
        ..run.clone()
    }
}

/// The rows as `run`'s.
pub fn called(mut rows: Vec<Row>, run: &Run) -> Vec<Row> {
    for row in &mut rows {
        row.load = run.load.to_string();
    }
    rows
}

/// Begins to record; it writes to memory.
pub fn start() -> Outcome<Background> {
    let recording = Background::start(iopro::capture::Request {
        output: RECORDING.into(),
        what: iopro::capture::What::System(None),
        btf: None,
    });
    recording.map_err(|error| error.to_string())
}

/// Ends it, and has `ask` look at what was recorded.
pub fn finish<T>(recording: Background, ask: impl FnOnce(&Store) -> Outcome<T>) -> Outcome<T> {
    let summary = recording.finish().map_err(|error| error.to_string())?;
    let failed = |error: String| format!("its recording tells nothing: {error}");
    let reader = Reader::open(Path::new(RECORDING)).map_err(|error| failed(error.to_string()))?;
    summary.check_lost(reader.events().count() as u64)?;
    let reader = Reader::open(Path::new(RECORDING)).map_err(|error| failed(error.to_string()))?;
    let store = Store::temporary().map_err(|error| failed(error.to_string()))?;
    let linked = link::link(reader, Path::new(RECORDING), None, store, &mut |_| {});
    let outcome = ask(&linked.map_err(|error| failed(error.to_string()))?);
    fs::remove_file(RECORDING).map_err(|error| format!("it cannot remove {RECORDING}: {error}"))?;
    outcome
}

/// As any run is measured, but all of it recorded, preparation too.
pub fn measure(
    spec: &GuestSpec,
    run: &Run,
    place: (&Path, Option<&Path>),
    listener: &mut dyn Listener,
) -> Outcome<Vec<Row>> {
    let recording = start()?;
    let rows = measure_run(spec, &without(run), place, listener);
    let layers = finish(recording, |linked| layers(linked, spec, run))?;
    let mut rows = called(rows?, run);
    rows.extend(layers);
    Ok(rows)
}

/// Time of the recorded reads in each layer, by file.
fn layers(linked: &Store, spec: &GuestSpec, run: &Run) -> Outcome<Vec<Row>> {
    let files = layers_of_files(linked, "pread64").map_err(|error| error.to_string())?;
    let of_layer = |path: &str, layer: &Layer| {
        let file = Path::new(path).file_name().unwrap_or_default();
        let layer_name = layer.layer.to_lowercase().replace(' ', "_");
        let metric = format!("{}_{layer_name}_ms", file.to_string_lossy());
        let spent = Measurement::milliseconds(metric, layer.total_ns as f64 / 1e6);
        row(spec, run, spent)
    };
    let rows = files
        .iter()
        .flat_map(|(path, layers)| layers.iter().map(move |layer| of_layer(path, layer)));
    Ok(rows.collect())
}
