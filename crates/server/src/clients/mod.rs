//! The connections of the Redis port as the rest of the server sees them: who
//! they are, what CLIENT LIST shows of them, what they leave unread, what they make
//! the server hold.
//!
//! Tested by `tests/resp/clients.rs` and `tests/resp/limits.rs`.

mod backlog;
mod figures;
mod held;
mod info;
mod list;

pub(crate) use figures::Flag;
pub(crate) use held::Over;
pub(crate) use info::ClientInfo;
pub(crate) use list::ClientList;
