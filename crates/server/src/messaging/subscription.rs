//! A subscription that is not entered yet: its name and, for a pattern, the
//! compiled form. Tested by `tests/resp/pubsub.rs`.

use super::kind::Kind;
use crate::base::glob::{Glob, TooLong};
use std::sync::Arc;

/// About what the tables of subscriptions take for one, names aside.
const ENTRY_BYTES: usize = 256;

/// What a client asks to subscribe to.
pub(crate) struct Subscription {
    pub(super) kind: Kind,
    name: Arc<[u8]>,
    /// Of a pattern.
    pub(super) glob: Option<Arc<Glob>>,
}

impl Subscription {
    /// A subscription of `kind` to `name`.
    ///
    /// # Errors
    /// [`TooLong`] for a pattern that is.
    pub(crate) fn new(kind: Kind, name: &[u8]) -> Result<Self, TooLong> {
        let is_pattern = kind == Kind::Pattern;
        let glob = is_pattern.then(|| Glob::new(name)).transpose()?;
        Ok(Self {
            kind,
            name: name.into(),
            glob: glob.map(Arc::new),
        })
    }

    pub(crate) fn name(&self) -> Arc<[u8]> {
        Arc::clone(&self.name)
    }

    /// The memory it takes.
    pub(crate) fn len_bytes(&self) -> usize {
        let glob_bytes = self.glob.as_ref().map_or(0, |glob| glob.len_bytes());
        ENTRY_BYTES + self.name.len() + glob_bytes
    }
}
