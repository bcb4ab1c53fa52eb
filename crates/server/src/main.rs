//! The program `latewood`: its allocator; all else is in the library.

use std::process::ExitCode;

/// Memory that a flush frees goes back to the system soon: see the settings in
/// `.cargo/config.toml`.
#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    latewood_server::main()
}
