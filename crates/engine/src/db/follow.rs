//! A database that follows the log of another, as an embedding program sees it.
//!
//! It applies the groups that it is given, answers reads, and takes over the files of checkpoints,
//! until it is made the owner of the log. Tested by `tests/follow`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::options::{Defaults, Options};
use crate::db::Db;
use crate::db::resources::External;
use crate::io::Env;
use crate::io::directory::open_directory;
use crate::log::{Log, Position, RemoteLog};
use crate::recovery::follow::{Follower, applied};
use std::path::Path;
use std::sync::Arc;

impl Db {
    /// Opens `dir`, the files of a checkpoint of a remote log (or an empty directory), as a
    /// follower of that log. It takes no writes, and writes no files of its own: it runs no flush,
    /// merge, rules, expiry or retention. Reads of a destination of a rule fail with `AtOwner`
    /// while the owner of the log recomputes buckets. Nobody may read before [`Db::is_loaded`].
    ///
    /// # Errors
    /// Those of [`Db::open_remote`], but for those of the log.
    pub fn open_follower(
        env: &Env,
        dir: &Path,
        options: Options,
        defaults: Defaults,
    ) -> Result<Self> {
        Self::open_follower_with(env, dir, options, defaults, External::default())
    }

    /// As [`Db::open_follower`], with what the database does not own.
    ///
    /// # Errors
    /// Those of [`Db::open_follower`]; `Invalid` if `options` has limits of what is shared, or
    /// there is a log.
    pub fn open_follower_with(
        env: &Env,
        dir: &Path,
        options: Options,
        defaults: Defaults,
        external: External,
    ) -> Result<Self> {
        if external.log.is_some() || !options.log {
            let message = "a database that follows a log is given one when it owns it";
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        let resources = external.resources_for(env, &options)?;
        let guard = open_directory(env, dir)?;
        let parts = resources.parts(env, dir, options, defaults, None)?;
        let (follower, recovery) = Follower::open(&parts, &guard)?;
        let mut db = Self::assemble(parts, recovery, guard, &resources);
        db.follower = Some(follower);
        if db.core.options.background {
            db.workers.lock().start_reading(&db.parts)?;
        }
        Ok(db)
    }

    /// Whether it follows the log of another.
    pub fn is_follower(&self) -> bool {
        self.core.is_follower()
    }

    /// The newest group that is applied. Of a database that owns its log, the newest one in it.
    pub fn applied(&self) -> Position {
        let log = self.core.log();
        log.map_or_else(|| applied(&self.core), Log::written)
    }

    /// Applies whole groups, oldest first, as [`RemoteLog::replay`] gives them. The first that is
    /// not applied must be the one behind [`Db::applied`]; those before are passed over. Readers
    /// see each group whole or not at all.
    ///
    /// # Errors
    /// `OutOfMemory` if memory is short: there is no flush that would free any. `Away` if a block
    /// that a group needs is not on this machine. After both the same groups may be given again.
    /// `Corrupt` if a group is damaged or missing, and others: no more is applied, and what can be
    /// read may be part of a group. `Invalid` if the database does not follow.
    pub fn follow(&self, groups: &[u8]) -> Result<()> {
        self.follower()?.follow(&self.parts, groups)
    }

    /// Whether reads are right: all that its files hold is applied. They are right for good only
    /// once all groups are that were in the log when the files were made: merging may have dropped
    /// what had expired or was removed by then.
    pub fn is_loaded(&self) -> bool {
        self.follower.as_ref().is_none_or(Follower::is_loaded)
    }

    /// Takes over the files of a newer checkpoint. `from` has its manifest, series files and
    /// metadata, on the file system of the directory; its blocks are, or will be fetched, where the
    /// manifest names them in the directory. All groups must be applied that are in the log before
    /// the record that names the checkpoint. Returns false if it is no newer than its own files.
    /// Readers see the same before, meanwhile and afterwards. Files that are named no more are
    /// removed.
    ///
    /// # Errors
    /// `Invalid` if the log is not applied as far as the checkpoint holds it, or the database does
    /// not follow; `Unsupported` if the checkpoint can only be opened anew; `Corrupt`, `Io`: its own files stay in force, unless it is not known which
    /// manifest is.
    pub fn adopt(&self, from: &Path) -> Result<bool> {
        self.follower()?.adopt(&self.parts, from)
    }

    /// Ends following: the database is that of the owner of `log`, whose next group is the one
    /// behind [`Db::applied`], and of which nothing is replayed. Background work begins.
    ///
    /// # Errors
    /// `Invalid` if the database does not follow, or is not loaded. After any other error it takes
    /// no writes.
    pub fn promote(&self, log: Arc<dyn RemoteLog>) -> Result<()> {
        self.follower()?.promote(&self.parts, log)?;
        if self.core.options.background {
            self.workers.lock().start_writing(&self.parts)?;
        }
        Ok(())
    }

    fn follower(&self) -> Result<&Follower> {
        self.follower.as_ref().ok_or_else(|| {
            let message = "the database was not opened to follow a log";
            Error::new(ErrorKind::Invalid, message)
        })
    }
}
