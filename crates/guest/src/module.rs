//! Loading modules without the tools for it.

use super::Outcome;
use record::Module;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Loads the module; what it needs has to be there already.
pub fn load(module: &Module) -> Outcome<()> {
    insert(module).map_err(|error| {
        format!(
            "it cannot load {} {}: {error}",
            module.path, module.parameters
        )
    })
}

fn insert(module: &Module) -> io::Result<()> {
    let file = File::open(&module.path)?;
    let parameters = CString::new(module.parameters.as_str())?;
    // SAFETY: the descriptor and the string live until the call returns.
    let status = unsafe {
        libc::syscall(
            libc::SYS_finit_module,
            file.as_raw_fd(),
            parameters.as_ptr(),
            0,
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
