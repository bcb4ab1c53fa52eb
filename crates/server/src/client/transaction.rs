//! What a connection has queued between MULTI and EXEC, and the EXEC that runs.
//!
//! Invariants: CLIENT LIST shows what is queued; a transaction of which a command was refused runs
//! none.

use crate::clients::{ClientInfo, Flag};
use latewood_wire::resp::encode_command;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Between MULTI and EXEC, and in EXEC.
#[derive(Debug, Default)]
pub(super) struct Multi {
    queued: Option<Box<Transaction>>,
    /// What bounds the EXEC that runs.
    pub(super) exec: Option<Bounds>,
}

/// What a command needs of its node, the least first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Need {
    #[default]
    Nothing,
    /// Answers that are fresh enough for its connection.
    Reads,
    /// That it takes writes.
    Writes,
    /// That it owns the log.
    Owner,
}

/// What a command needs, or some, and the slot of its first key, if it has one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Aim {
    pub(crate) need: Need,
    pub(crate) slot: Option<u16>,
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
    /// Where there are other nodes.
    aim: Aim,
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

impl Multi {
    /// Whether commands are queued.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.queued.is_some()
    }

    pub(super) fn begin(&mut self, info: &ClientInfo) {
        self.queued = Some(Box::default());
        self.show(info);
    }

    /// Queues a command for which `held_bytes` were granted.
    pub(super) fn add(
        &mut self,
        info: &ClientInfo,
        words: &[&[u8]],
        held_bytes: usize,
        is_write: bool,
        aim: Aim,
    ) {
        if let Some(transaction) = &mut self.queued {
            transaction.held_bytes += held_bytes;
            encode_command(&mut transaction.bytes, words);
            transaction.commands += 1;
            transaction.has_write |= is_write;
            let own = &mut transaction.aim;
            own.need = own.need.max(aim.need);
            own.slot = own.slot.or(aim.slot);
        }
        self.show(info);
    }

    /// What was queued, and the memory granted for it.
    pub(super) fn end(&mut self, info: &ClientInfo) -> Option<(Box<Transaction>, usize)> {
        let transaction = self.queued.take();
        self.show(info);
        let transaction = transaction?;
        let held_bytes = transaction.held_bytes;
        Some((transaction, held_bytes))
    }

    /// Makes EXEC refuse the transaction, if there is one.
    pub(super) fn fail(&mut self) {
        if let Some(transaction) = &mut self.queued {
            transaction.has_failed = true;
        }
    }

    /// The queued commands; none where EXEC will run none.
    pub(super) fn queued(&self) -> &[u8] {
        let transaction = self.queued.as_ref();
        let transaction = transaction.filter(|transaction| !transaction.has_failed);
        transaction.map_or(&[], |transaction| transaction.bytes())
    }

    /// Whether a queued command writes.
    pub(super) fn writes(&self) -> bool {
        let transaction = self.queued.as_ref();
        transaction.is_some_and(|transaction| transaction.has_write)
    }

    /// What the queued commands need; nothing where EXEC will run none.
    pub(super) fn aim(&self) -> Aim {
        let transaction = self.queued.as_ref();
        let transaction = transaction.filter(|transaction| !transaction.has_failed);
        transaction.map_or_else(Aim::default, |transaction| transaction.aim)
    }

    /// Shows CLIENT LIST what is queued.
    fn show(&self, info: &ClientInfo) {
        let (figures, transaction) = (&info.figures, self.queued.as_ref());
        let queued =
            transaction.map_or(-1, |each| i64::try_from(each.commands).unwrap_or(i64::MAX));
        figures.queued.store(queued, Ordering::Relaxed);
        let bytes = transaction.map_or(0, |transaction| transaction.bytes.capacity());
        figures.queued_bytes.store(bytes, Ordering::Relaxed);
        figures.set(Flag::Transaction, transaction.is_some());
    }
}
