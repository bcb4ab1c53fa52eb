//! What databases of one process share: the memory budget, the cache of what was read from
//! blocks, and the threads of queries.
//!
//! A database that is given none has its own. Everything else belongs to each database:
//! series, files, log, disk budget, background threads, and whether its writes have
//! stopped. Tested by `tests/db_shared.rs`.

use crate::background::Parts;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::opaque::opaque;
use crate::base::options::{Defaults, Options};
use crate::db::read::spread::Readers;
use crate::io::Env;
use crate::keyspace::core::Core;
use crate::keyspace::memory_budget::Budget;
use crate::log::RemoteLog;
use crate::storage::block::Cache;
use std::path::Path;
use std::sync::Arc;

/// What databases of one process share; clones are the same.
#[derive(Clone)]
pub struct Resources {
    budget: Arc<Budget>,
    cache: Cache,
    readers: Arc<Readers>,
}

/// What a database does not own.
#[derive(Clone, Default)]
pub struct External {
    /// Shared with other databases. [`Options::memory_bytes`] and
    /// [`Options::query_threads`] must be 0 then.
    pub resources: Option<Resources>,
    /// Keeps the log; see [`crate::Db::open_remote`].
    pub log: Option<Arc<dyn RemoteLog>>,
}

impl Resources {
    /// Resources with a budget as of [`Options::memory_bytes`] and threads as of
    /// [`Options::query_threads`], which the first large query starts. The memory is that of
    /// the process of `env`, whose clock they follow.
    pub fn new(env: &Env, memory_bytes: u64, query_threads: usize) -> Self {
        let budget = Arc::new(Budget::new(env, memory_bytes));
        Self {
            cache: Cache::new(budget.cache_bytes()),
            readers: Arc::new(Readers::new(query_threads)),
            budget,
        }
    }

    /// The parts of a database that has them.
    pub(super) fn parts(
        &self,
        env: &Env,
        dir: &Path,
        options: Options,
        defaults: Defaults,
        log: Option<Arc<dyn RemoteLog>>,
    ) -> Result<Parts> {
        let (budget, cache) = (self.budget.clone(), self.cache.clone());
        let core = Core::new(env.clone(), dir, options, defaults, log, budget, cache)?;
        Ok(Parts::new(core))
    }

    pub(super) fn readers(&self) -> &Arc<Readers> {
        &self.readers
    }
}

impl External {
    /// The resources of a database with these options: those that are shared, or its own.
    pub(super) fn resources_for(&self, env: &Env, options: &Options) -> Result<Resources> {
        let (memory_bytes, query_threads) = (options.memory_bytes, options.query_threads);
        match &self.resources {
            None => Ok(Resources::new(env, memory_bytes, query_threads)),
            Some(shared) if (memory_bytes, query_threads) == (0, 0) => Ok(shared.clone()),
            Some(_) => Err(Error::new(
                ErrorKind::Invalid,
                "memory_bytes and query_threads must be 0: the database shares those of others",
            )),
        }
    }
}

opaque!(Resources);
