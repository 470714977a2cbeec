//! Loading and unloading of kernel modules.

use crate::{Failure, Outcome};
use record::Module;
use rustix::io::Errno;
use std::ffi::CString;
use std::fs::File;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Longest time for which a module may stay in use after its last user has ended.
const PATIENCE: Duration = Duration::from_secs(60);

/// Name of the module in the kernel.
pub(crate) fn name(module: &Module) -> &str {
    let file = module.path.rsplit('/').next().unwrap_or_default();
    file.split('.').next().unwrap_or_default()
}

/// Loads the module; one that is loaded already is not an error.
pub(crate) fn load(module: &Module) -> Outcome<()> {
    match insert(module, &open(module)?) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(Failure::new(format!(
            "it cannot load {}: {errno}",
            module.path
        ))),
    }
}

/// Opens the module's file.
pub(crate) fn open(module: &Module) -> Outcome<File> {
    let path = Path::new(&module.path);
    File::open(path).map_err(Failure::io("open", path))
}

/// Loads the module from its open file.
pub(crate) fn insert(module: &Module, file: &File) -> Result<(), Errno> {
    let parameters = CString::new(module.parameters.as_str()).map_err(|_| Errno::INVAL)?;
    rustix::system::finit_module(file, &parameters, 0)
}

/// Tries to unload the module once.
pub(crate) fn try_unload(module: &Module) -> Result<(), Errno> {
    let name = CString::new(name(module)).map_err(|_| Errno::INVAL)?;
    rustix::system::delete_module(&name, libc::O_NONBLOCK)
}

/// Unloads the module, once its last user has ended.
pub(crate) fn unload(module: &Module) -> Outcome<()> {
    let begun = Instant::now();
    loop {
        match try_unload(module) {
            Ok(()) => return Ok(()),
            Err(Errno::AGAIN | Errno::BUSY) if begun.elapsed() < PATIENCE => {
                thread::sleep(Duration::from_millis(20));
            }
            Err(errno) => {
                return Err(Failure::new(format!(
                    "module {} does not go: {errno}",
                    name(module)
                )));
            }
        }
    }
}
