//! Before `report`, `export` and `top --from` read a recording, which may be anybody's, they give up their rights.

use super::linked::failed;
use crate::exit::{Exit, Failure};
use iopro::store;
use std::io;
use sys::confine::Confinement;
use sys::output::Workplace;

/// Confines the process to what is open, the directory that its output is written in, and one for the tables'
/// temporary files. That one is to live as long as the tables do.
pub fn begin(output: Option<&Workplace>) -> Result<Option<Workplace>, Failure> {
    let temporary = store::keep_temporary_files_apart().map_err(|error| failed(&error))?;
    let confinement =
        needs(output, temporary.as_ref()).map_err(|error| Failure::new(Exit::Internal, error))?;
    confinement.begin()?;
    Ok(temporary)
}

fn needs(output: Option<&Workplace>, temporary: Option<&Workplace>) -> io::Result<Confinement> {
    let mut confinement = Confinement::of_reader();
    if let Some(output) = output {
        confinement = confinement.publishing(output)?;
    }
    match temporary {
        Some(temporary) => confinement.working_in(temporary),
        None => Ok(confinement),
    }
}
