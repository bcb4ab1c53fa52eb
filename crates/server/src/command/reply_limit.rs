//! How long one reply may be, and what is said of one that would be longer.
//!
//! Where there is a memory budget, an eighth of it: a reply is held whole until
//! it is sent, and writers should not be refused because somebody reads.

use super::Fault;
use crate::observe::Limit;
use crate::shared::Shared;
use latewood_model::limits::REPLY_BYTES_MAX;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyLimit {
    pub(crate) bytes: usize,
}

impl ReplyLimit {
    /// The limit at this moment.
    pub(crate) fn of(shared: &Shared) -> Self {
        Self {
            bytes: shared.db.reply_bytes_max(),
        }
    }

    /// The error for a reply that would be longer; it has at least `rows` rows
    /// where that is known.
    #[cold]
    pub(crate) fn fault(self, rows: Option<u64>) -> Fault {
        let Self { bytes } = self;
        let (share, more) = match bytes < REPLY_BYTES_MAX {
            true => (
                ", an eighth of the memory budget",
                ", or give the server more --memory",
            ),
            false => ("", ""),
        };
        let rows = rows.map_or("more rows than".to_owned(), |rows| {
            format!("{rows} rows or more, which do not")
        });
        let text = format!(
            "ERR TSDB: the reply has {rows} fit in the {bytes} bytes that a reply may \
             have{share}; ask for a narrower span or wider buckets, or use COUNT{more}"
        );
        Fault::Limit(Limit::Reply, text.into())
    }
}
