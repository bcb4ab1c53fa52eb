//! The folder of one tablet in the object store.

use super::error::{CheckpointError, Result};
use super::listing::{Listing, ListingRef, Row};
use super::uploads::Uploads;
use latewood_engine::io::Env;
use latewood_offsite::{Content, Place};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The longest name of a cluster.
const NAME_BYTES_MAX: usize = 100;

/// The objects of one tablet, at `PREFIX/CLUSTER/TABLET`.
#[derive(Clone, Debug)]
pub struct Objects {
    pub(super) env: Env,
    pub(super) place: Place,
    pub(super) cluster: String,
    pub(super) tablet: u32,
    pub(super) verified: Verified,
    pub(super) uploads: Arc<Uploads>,
}

/// Files of blocks and series that this process found to have the bytes of their rows: they
/// never change, and no other file of this process has their names. All clones share it.
#[derive(Clone, Debug, Default)]
pub(super) struct Verified(Arc<Mutex<BTreeMap<String, Content>>>);

impl Verified {
    pub(super) fn add(&self, row: &Row) {
        let (path, content) = (row.file.path.clone(), row.file.content.clone());
        self.0.lock().insert(path, content);
    }

    pub(super) fn has(&self, row: &Row) -> bool {
        self.0.lock().get(&row.file.path) == Some(&row.file.content)
    }
}

/// A checkpoint in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// What a record of the tablet's log says of it.
    pub at: ListingRef,
    /// What it is made of.
    pub listing: Listing,
}

impl Objects {
    /// The objects of a tablet below `prefix`. Local files are those of `env`. Asks
    /// the store nothing.
    ///
    /// # Errors
    /// `Name`
    pub fn new(env: Env, prefix: &Place, cluster: &str, tablet: u32) -> Result<Self> {
        let of_names = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = (1..=NAME_BYTES_MAX).contains(&cluster.len())
            && cluster.bytes().all(of_names)
            && !cluster.starts_with('.');
        if !is_name {
            let name = cluster.to_owned();
            return Err(CheckpointError::Name { name });
        }
        Ok(Self {
            env,
            place: prefix.below(&format!("{cluster}/{tablet:05}")),
            cluster: cluster.to_owned(),
            tablet,
            verified: Verified::default(),
            uploads: Arc::default(),
        })
    }

    /// What checkpoints upload through these objects and their clones.
    pub fn uploads(&self) -> &Arc<Uploads> {
        &self.uploads
    }

    /// The same with local files of another environment.
    #[must_use]
    pub(crate) fn with_env(&self, env: Env) -> Self {
        Self {
            env,
            ..self.clone()
        }
    }

    /// Refuses a checkpoint whose names mean other objects.
    pub(super) fn require_own(&self, listing: &Listing) -> Result<()> {
        if (&listing.cluster, listing.tablet) == (&self.cluster, self.tablet) {
            return Ok(());
        }
        Err(CheckpointError::OtherTablet {
            listing: format!("number {}", listing.number),
            cluster: listing.cluster.clone(),
            tablet: listing.tablet,
        })
    }
}
