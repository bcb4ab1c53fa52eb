//! The runtime of the process: sockets and clients that are not those of the Redis port.
//!
//! There is one, started when it is first asked for, and it lives as long as the process. HTTP,
//! line protocols and object stores are its tasks. What may block runs on its threads for that,
//! of which each user takes a bounded number; there may be more than all of them take together,
//! so that the runtime's own needs, such as looking up names, always find one.

use std::io;
use std::sync::LazyLock;
use tokio::runtime::{Builder, Runtime};

/// Stack of a thread, in bytes: the deepest query of PromQL that is accepted fits several times,
/// in a build without optimisation too. Only what is used takes memory.
const STACK_BYTES: usize = 16 << 20;
/// Threads that may block. Queries of PromQL take at most 1,024, line protocols 65 and other
/// requests a few for each core.
const BLOCKING_MAX: usize = 4096;

/// The runtime. Its `block_on` may be called on any thread but those of its tasks.
///
/// # Errors
/// If its threads could not be started.
pub fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
        Builder::new_multi_thread()
            .thread_name("runtime")
            .thread_stack_size(STACK_BYTES)
            .max_blocking_threads(BLOCKING_MAX)
            .enable_all()
            .build()
    });
    let failed = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
    RUNTIME.as_ref().map_err(failed)
}
