//! What a connection has queued between MULTI and EXEC, and the EXEC that runs.
//!
//! Invariants: CLIENT LIST shows what is queued ([`Session::show_transaction`]); a transaction of
//! which a command was refused runs none.

use super::session::Session;
use crate::clients::{Flag, Over};
use crate::state::Shared;
use latewood_wire::resp::encode_command;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Between MULTI and EXEC, and in EXEC.
#[derive(Debug, Default)]
pub(super) struct Multi {
    queued: Option<Box<Transaction>>,
    exec: Option<Bounds>,
}

/// What was queued since MULTI.
#[derive(Debug, Default)]
pub(crate) struct Transaction {
    /// The commands, encoded one behind the other.
    bytes: Vec<u8>,
    /// The memory granted for them.
    held_bytes: usize,
    /// How many they are.
    commands: usize,
    /// A command was refused: EXEC will run none.
    has_failed: bool,
    has_write: bool,
}

impl Transaction {
    /// The commands, encoded one behind the other.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many they are.
    pub(crate) fn commands(&self) -> usize {
        self.commands
    }

    /// Whether a command was refused.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed
    }
}

/// What bounds the EXEC that runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The length at which its replies end.
    pub(crate) end: usize,
    /// When it stops beginning commands that read.
    pub(crate) until: Instant,
}

impl Session {
    /// Whether commands are queued.
    #[inline]
    pub(crate) fn in_multi(&self) -> bool {
        self.multi.queued.is_some()
    }

    /// Whether EXEC runs.
    pub(crate) fn in_exec(&self) -> bool {
        self.multi.exec.is_some()
    }

    /// What bounds the EXEC that runs.
    pub(crate) fn exec_bounds(&self) -> Option<Bounds> {
        self.multi.exec
    }

    /// EXEC begins, within these bounds, or has ended.
    pub(crate) fn set_exec(&mut self, bounds: Option<Bounds>) {
        self.multi.exec = bounds;
    }

    pub(crate) fn begin_transaction(&mut self) {
        self.multi.queued = Some(Box::default());
        self.show_transaction();
    }

    /// Queues a command.
    ///
    /// # Errors
    /// [`Over`]: too much is held.
    pub(crate) fn queue(
        &mut self,
        shared: &Shared,
        words: &[&[u8]],
        is_write: bool,
    ) -> Result<(), Over> {
        // Twice: the queue grows by doubling.
        let held_bytes = 2 * words.iter().map(|word| word.len() + 16).sum::<usize>();
        self.hold(shared, held_bytes)?;
        if let Some(transaction) = &mut self.multi.queued {
            transaction.held_bytes += held_bytes;
            encode_command(&mut transaction.bytes, words);
            transaction.commands += 1;
            transaction.has_write |= is_write;
        }
        self.show_transaction();
        Ok(())
    }

    pub(crate) fn end_transaction(&mut self, shared: &Shared) -> Option<Box<Transaction>> {
        let transaction = self.multi.queued.take();
        if let Some(transaction) = &transaction {
            self.give_back(shared, transaction.held_bytes);
        }
        self.show_transaction();
        transaction
    }

    /// Makes EXEC refuse the transaction, if there is one.
    pub(crate) fn fail_transaction(&mut self) {
        if let Some(transaction) = &mut self.multi.queued {
            transaction.has_failed = true;
        }
    }

    pub(crate) fn transaction_writes(&self) -> bool {
        let transaction = self.multi.queued.as_ref();
        transaction.is_some_and(|transaction| transaction.has_write)
    }

    /// Shows CLIENT LIST what is queued.
    fn show_transaction(&self) {
        let (figures, transaction) = (&self.info.figures, self.multi.queued.as_ref());
        let queued =
            transaction.map_or(-1, |each| i64::try_from(each.commands).unwrap_or(i64::MAX));
        figures.queued.store(queued, Ordering::Relaxed);
        let bytes = transaction.map_or(0, |transaction| transaction.bytes.capacity());
        figures.queued_bytes.store(bytes, Ordering::Relaxed);
        figures.set(Flag::Transaction, transaction.is_some());
    }
}
