//! File descriptors: sockets leave a reserve for the files of the database.
//!
//! A log segment or a block that cannot be opened stops writes or flushes for all,
//! a refused connection affects its peer only. The system assigns the lowest free
//! number, so a socket with one of the last numbers means that there are too many,
//! of any protocol. Tested by `tests/resp/limits.rs`.

use rustix::process::{Resource, getrlimit, setrlimit};
use std::os::fd::{AsRawFd, RawFd};

/// Sockets leave this share of the descriptors free, at most [`RESERVE_MAX`].
const RESERVE_RATIO: u64 = 4;
const RESERVE_MAX: u64 = 1024;

/// Raises the soft limit, which is usually 1024, to the hard one.
pub(crate) fn raise_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}

/// Whether there are descriptors enough for the database beside this socket.
pub(crate) fn leave_room(socket: &impl AsRawFd) -> bool {
    let limit = getrlimit(Resource::Nofile).current;
    limit.is_none_or(|limit| is_within(socket.as_raw_fd(), limit))
}

fn is_within(descriptor: RawFd, limit: u64) -> bool {
    let reserve = (limit / RESERVE_RATIO).min(RESERVE_MAX);
    u64::try_from(descriptor).is_ok_and(|descriptor| descriptor < limit - reserve)
}

#[cfg(test)]
mod tests {
    use super::is_within;

    #[test]
    fn sockets_leave_a_quarter_of_few_descriptors_and_a_thousand_of_many() {
        assert!(is_within(767, 1024) && !is_within(768, 1024));
        assert!(is_within(64_511, 65_536) && !is_within(64_512, 65_536));
        assert!(!is_within(0, 0));
    }
}
