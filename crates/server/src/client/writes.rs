//! What a connection wrote, and what its replies promise of it.
//!
//! Invariant: a write waits for the disk only if it was made under `sync`.

use latewood_engine::{Durability, Position};

/// The writes of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Writes {
    durability: Durability,
    newest: Position,
    unsynced: Option<Position>,
}

impl Writes {
    /// No write yet; the replies to later ones promise this.
    pub(super) fn new(durability: Durability) -> Self {
        Self {
            durability,
            newest: Position::default(),
            unsynced: None,
        }
    }

    /// What a reply to a write promises.
    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    pub(crate) fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// Notes a write; under `sync` its reply waits for the disk.
    #[inline]
    pub(super) fn note(&mut self, position: Position) {
        self.newest = self.newest.max(position);
        if self.durability == Durability::Sync {
            self.unsynced = Some(self.newest);
        }
    }

    /// The newest write.
    pub(crate) fn newest(&self) -> Position {
        self.newest
    }

    /// The newest write whose reply waits for the disk.
    #[inline]
    pub(crate) fn unsynced(&self) -> Option<Position> {
        self.unsynced
    }

    /// Everything written is on disk.
    pub(crate) fn synced(&mut self) {
        self.unsynced = None;
    }
}
