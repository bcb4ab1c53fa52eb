//! Small objects of a place, and what the place holds.
//!
//! Nothing here depends on conditions that a store may not know, or on the clock
//! of this machine.

use crate::error::{Error, Result};
use crate::place::Place;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::{ObjectStoreExt, PutPayload};

/// An object as the store lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Its name below the place.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// When it was written, milliseconds since 1970 by the clock of the store.
    pub modified_ms: i64,
}

impl Place {
    /// Writes an object, or replaces what has its name.
    ///
    /// # Errors
    /// `Store`
    pub async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<()> {
        let object = self.object(name);
        let put = self.store.put(&object, PutPayload::from(bytes)).await;
        let failed = Error::store(format!("write {}", self.call(name)));
        put.map(drop).map_err(failed)
    }

    /// The bytes of an object, if there is one.
    ///
    /// # Errors
    /// `Damaged` if it has more than `bytes_max`, `Store`.
    pub async fn get(&self, name: &str, bytes_max: u64) -> Result<Option<Vec<u8>>> {
        let failed = |error| Error::store(format!("read {}", self.call(name)))(error);
        let found = match self.store.get(&self.object(name)).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(failed)?,
        };
        if found.meta.size > bytes_max {
            let what = format!("{} has {} bytes", self.call(name), found.meta.size);
            return Err(Error::damaged(what));
        }
        Ok(Some(found.bytes().await.map_err(failed)?.to_vec()))
    }

    /// The length of an object, if there is one.
    ///
    /// # Errors
    /// `Store`
    pub async fn len_bytes(&self, name: &str) -> Result<Option<u64>> {
        match self.store.head(&self.object(name)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(Error::store(format!("read {}", self.call(name)))(error)),
        }
    }

    /// Copies an object, within the store. Returns whether it is there.
    ///
    /// # Errors
    /// `Store`
    pub async fn copy(&self, from: &str, to: &str) -> Result<bool> {
        match self.store.copy(&self.object(from), &self.object(to)).await {
            Ok(()) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(Error::store(format!("copy {}", self.call(from)))(error)),
        }
    }

    /// All objects of the place, in no order.
    ///
    /// # Errors
    /// `Store`
    pub async fn list(&self) -> Result<Vec<Held>> {
        let failed = |error| Error::store(format!("list {}", self.url))(error);
        let skipped = self.prefix().map_or(0, |prefix| prefix.as_ref().len() + 1);
        let listed = self.store.list(self.prefix()).map_ok(|meta| Held {
            name: meta.location.as_ref()[skipped..].to_owned(),
            bytes: meta.size,
            modified_ms: meta.last_modified.timestamp_millis(),
        });
        listed.try_collect().await.map_err(failed)
    }

    /// Deletes objects; one that does not exist is deleted already.
    ///
    /// # Errors
    /// `Store`; any of them may be gone then.
    pub async fn delete(&self, names: &[String]) -> Result<()> {
        let objects: Vec<_> = names.iter().map(|name| Ok(self.object(name))).collect();
        let mut deleted = self.store.delete_stream(stream::iter(objects).boxed());
        while let Some(outcome) = deleted.next().await {
            match outcome {
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => {
                    return Err(Error::store(format!("delete below {}", self.url))(error));
                }
            }
        }
        Ok(())
    }
}
