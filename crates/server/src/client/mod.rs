//! One connection's state between its commands: what CLIENT, MULTI, WATCH and
//! SUBSCRIBE set, the long reply under way and what the connection waits for.
//!
//! Tested by `tests/resp/` (transaction, pubsub, client_state, long_replies, long_reads).

mod leased;
mod parked;
mod replies;
mod rows;
mod session;
mod stream;
mod subscriptions;
mod timing;
mod transaction;
mod waiting;
mod watches;
mod writes;

pub(crate) use leased::{BEHIND, Reading, later};
pub(crate) use parked::{Arrived, Beside};
pub(crate) use session::Session;
pub(crate) use stream::{Part, Stream, Streamed};
pub(crate) use subscriptions::Refused;
pub(crate) use transaction::{Aim, Bounds, Need};
pub(crate) use waiting::{BlockedCommand, What};
