//! Which owners before may still answer reads under their leases.
//!
//! Nothing in a record says when it was sent, so a lease is taken for one that counts from the
//! receipt of the newest record of its epoch, an EPOCH among them: an owner answers from the sending
//! of that on. FAREWELL ends the answers of its own epoch alone. Who owns the log appends neither
//! groups nor the name of a checkpoint before all leases before its own are over: so these show that
//! they are. (`tests/model/follow` checks all of it.)

use crate::envelope::Body;

/// When the newest record of an owner that may still answer was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Not later than now: it was there when the log was read.
    ByNow,
    /// At this moment, by the clock that goes on while the machine is suspended.
    At(u64),
}

/// Owners that may answer, while a log is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Before {
    /// Of all epochs.
    newest: Option<Received>,
    /// The same without the newest epoch.
    others: Option<Received>,
}

impl Before {
    /// Of a log whose earlier records may be trimmed, or of one from its start on.
    pub(crate) fn new(is_whole: bool) -> Self {
        let unknown = (!is_whole).then_some(Received::ByNow);
        Self {
            newest: unknown,
            others: unknown,
        }
    }

    /// An EPOCH counts.
    pub(crate) fn epoch(&mut self, received: Received) {
        self.others = self.newest;
        self.newest = Some(received);
    }

    /// A record of the owner counts.
    pub(crate) fn counts(&mut self, body: &Body<'_>, received: Received) {
        match body {
            Body::Data { .. } | Body::Checkpoint(_) => self.others = None,
            _ => {}
        }
        self.newest = match body {
            Body::Farewell => self.others,
            _ => Some(received),
        };
    }

    /// What was there when the log was read was there at `at_ns`.
    pub(crate) fn settle(&mut self, at_ns: u64) {
        for received in [&mut self.newest, &mut self.others].into_iter().flatten() {
            if *received == Received::ByNow {
                *received = Received::At(at_ns);
            }
        }
    }

    /// The newest of those that may answer, if there is one, for who claims now.
    pub(crate) fn answering(self) -> Option<Received> {
        self.newest
    }
}
