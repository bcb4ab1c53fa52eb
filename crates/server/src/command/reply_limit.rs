//! How long one reply may be, and what is said of one that would be longer.
//!
//! Where there is a memory budget, an eighth of it: a reply is held whole until
//! it is sent, and writers should not be refused because somebody reads.

use super::fault::Fault;
use crate::observe::Limit;
use crate::state::Shared;
use latewood_model::limits::REPLY_BYTES_MAX;

/// What an error says of a limit that the budget makes.
const SHARE: &str = ", an eighth of the memory budget";

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
        let rows = rows.map_or("more rows than".to_owned(), |rows| {
            format!("{rows} rows or more, which do not")
        });
        self.refuse(
            &format!("the reply has {rows} fit in"),
            "; ask for a narrower span or wider buckets, or use COUNT",
        )
    }

    /// The error for a command with which EXEC's reply would be longer.
    #[cold]
    pub(crate) fn fault_of_exec(self) -> Fault {
        self.refuse(
            "with this one the replies of EXEC do not fit in",
            "; ask for less, or outside of MULTI",
        )
    }

    /// The error for series whose labels are longer.
    #[cold]
    pub(crate) fn fault_of_labels(self) -> Fault {
        self.refuse(
            "the labels of the matching series take more than",
            "; ask for fewer series, or without labels",
        )
    }

    /// The error for a reply of which `what` is longer.
    #[cold]
    pub(crate) fn refuse(self, what: &str, advice: &str) -> Fault {
        let Self { bytes } = self;
        let (share, more) = match (bytes < REPLY_BYTES_MAX, advice) {
            (true, "") => (SHARE, "; give the server more --memory"),
            (true, _) => (SHARE, ", or give the server more --memory"),
            (false, _) => ("", ""),
        };
        let text = format!(
            "ERR TSDB: {what} the {bytes} bytes that a reply may have{share}{advice}{more}"
        );
        Fault::Limit(Limit::Reply, text.into())
    }
}
