//! Durability as an embedding program sees it: positions of the log, waiting until
//! it is on disk, and being told.
//!
//! A thread with one client waits in [`Db::sync_to`]. One with many asks with
//! [`Db::want_durable`], goes on with its other clients, is told by what it gave to
//! [`Db::on_durable`], and then looks with [`Db::is_durable`]. Nothing is missed if it
//! is ready to be told before it looks. Tested by `tests/db_durable.rs`.

use crate::base::error::Result;
use crate::db::Db;
use crate::log::{Log, Position};
use crate::observe::signals::Job;
use crate::observe::stages::Stage;

impl Db {
    /// Waits until the log is durable up to `position`. Concurrent callers share
    /// one sync.
    ///
    /// # Errors
    /// `Unknown` or `Io`: the records may not be on disk, and no later sync will
    /// write them.
    pub fn sync_to(&self, position: Position) -> Result<()> {
        let mut timer = self.core.observe.stages.watch();
        let synced = self.core.sync_to(position);
        timer.end_for(Stage::SyncWait, 1);
        synced
    }

    /// Waits until everything written before the call is durable.
    ///
    /// # Errors
    /// Those of [`Db::sync_to`].
    pub fn sync(&self) -> Result<Position> {
        let position = self.position();
        self.sync_to(position)?;
        Ok(position)
    }

    /// The position of the end of the log.
    pub fn position(&self) -> Position {
        let log = self.core.log();
        log.map_or_else(Position::default, Log::written)
    }

    /// The position up to which the log is durable.
    pub fn durable_position(&self) -> Position {
        let log = self.core.log();
        log.map_or_else(Position::default, Log::durable)
    }

    /// Asks for the log to be made durable up to `position` and does not wait. All who
    /// ask while a sync is under way share the next one. A database without background
    /// threads syncs before the call returns.
    pub fn want_durable(&self, position: Position) {
        let core = &self.core;
        match core.log() {
            Some(log) if log.want(position) => {
                if core.options.background {
                    core.observe.signals.wake(Job::Sync);
                } else {
                    // Its failure is what `is_durable` answers from now on.
                    let _ = log.sync_to(position);
                }
            }
            _ => {}
        }
    }

    /// Whether the log is durable up to `position`; true if there is no log.
    ///
    /// # Errors
    /// `Halted`: it is not, and no later sync will make it so.
    pub fn is_durable(&self, position: Position) -> Result<bool> {
        let log = self.core.log();
        log.map_or(Ok(true), |log| log.is_durable(position))
    }

    /// Registers `notice`, which is called each time after more of the log has become
    /// durable, and after a sync that was wanted has failed, on the thread that found
    /// out. It must return quickly and must not call the database. Only the first
    /// registration takes effect; returns whether this one did.
    pub fn on_durable(&self, notice: impl Fn() + Send + Sync + 'static) -> bool {
        let observer = &self.core.observe.observer;
        observer.durable.set(Box::new(notice)).is_ok()
    }
}
