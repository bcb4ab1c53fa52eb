//! `LATEST`: which checkpoint was newest when it was written.
//!
//! For tools and people who look into the store. It is replaced after a checkpoint
//! counts, by whoever believes to own the tablet; it decides nothing.

use super::error::Result;
use super::listing::ListingRef;
use super::names::{LATEST, PROBE};
use super::objects::Objects;
use latewood_offsite::{Error, run};
use serde::{Deserialize, Serialize};

/// The format version.
const FORMAT: u64 = 1;
/// Limit of the object.
const BYTES_MAX: u64 = 64 << 10;

/// The hint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Latest {
    format: u64,
    /// The listing of the checkpoint.
    #[serde(flatten)]
    pub listing: ListingRef,
    /// The offset of its record in the tablet's log.
    pub offset: u64,
}

impl Objects {
    /// Replaces the hint, after the record at `offset`, which names this listing, counts.
    ///
    /// # Errors
    /// `Store`
    pub fn put_latest(&self, listing: &ListingRef, offset: u64) -> Result<()> {
        let latest = Latest {
            format: FORMAT,
            listing: listing.clone(),
            offset,
        };
        let mut bytes =
            serde_json::to_vec_pretty(&latest).expect("text and numbers can be written as JSON");
        bytes.push(b'\n');
        self.place.require_writable()?;
        run(async { Ok(self.place.put(LATEST, bytes).await?) })
    }

    /// The name of the hint in messages.
    pub fn call_latest(&self) -> String {
        self.place.call(LATEST)
    }

    /// Writes an object of no use, to find a store that cannot be written before anything
    /// depends on it.
    ///
    /// # Errors
    /// `Store`
    pub fn probe(&self) -> Result<()> {
        self.place.require_writable()?;
        run(async { Ok(self.place.put(PROBE, b"latewood\n".to_vec()).await?) })
    }

    /// The hint, if there is one.
    ///
    /// # Errors
    /// `Store`
    pub fn latest(&self) -> Result<Option<Latest>> {
        run(async {
            let Some(bytes) = self.place.get(LATEST, BYTES_MAX).await? else {
                return Ok(None);
            };
            let latest = serde_json::from_slice(&bytes);
            let called = self.place.call(LATEST);
            Ok(latest.map_err(|error| Error::damaged(format!("{called}: {error}")))?)
        })
    }
}
