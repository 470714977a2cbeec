//! Prints `frontrow_abi.h` for the kernel in a file: `cargo run -p module --example generate FILE`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1).map(std::path::PathBuf::from) else {
        eprintln!("usage: generate FILE (BTF, vmlinux or vmlinuz)");
        return ExitCode::from(2);
    };
    let header = std::fs::read(&path)
        .map_err(|error| format!("{}: {error}", path.display()))
        .and_then(|kernel| module::abi::generate(&kernel, None).map_err(|error| error.to_string()));
    match header {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
