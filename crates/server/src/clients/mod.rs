//! The connections of the Redis port as the rest of the server sees them: who
//! they are, what CLIENT LIST shows of them, what they leave unread.
//!
//! Tested by `tests/resp/clients.rs` and `tests/resp/limits.rs`.

mod backlog;
mod figures;
mod info;
mod list;

pub(crate) use figures::Flag;
pub(crate) use info::ClientInfo;
pub(crate) use list::ClientList;
