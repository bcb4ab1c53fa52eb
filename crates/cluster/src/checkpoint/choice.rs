//! Which checkpoint is taken where no log says which one counts: after the log is lost.
//!
//! `LATEST` names one that counted, and may lag behind; a listing behind it may be of a checkpoint
//! that never counted, and is whole all the same. A person chooses, who is told of both.
//!
//! Tested by `tests/tablet/alone.rs`.

use super::error::{CheckpointError, Result};
use super::listing::ListingRef;
use super::names;
use super::objects::{Checkpoint, Objects};
use latewood_offsite::{Content, Error, Place, run};
use std::collections::BTreeSet;

/// How many listings a message names.
const NAMED_MAX: usize = 10;

/// The checkpoint that is taken.
#[derive(Clone, Debug)]
pub struct Choice {
    /// It.
    pub checkpoint: Checkpoint,
    /// The listings behind it that are in the store.
    pub later: Vec<String>,
}

impl Objects {
    /// The checkpoint whose listing is `object`, or the one that `LATEST` names.
    ///
    /// # Errors
    /// `NoCheckpoint`, with the listings in the store, if its listing is missing or damaged;
    /// `Store`; `OtherTablet`.
    pub fn choose(&self, object: Option<&str>) -> Result<Choice> {
        let found = match object {
            Some(object) => self.named(object),
            None => match self.latest() {
                Ok(Some(latest)) => self.find(&latest.listing),
                Ok(None) => {
                    Err(Error::damaged(format!("{} is missing", self.call_latest())).into())
                }
                Err(error) => Err(error),
            },
        };
        // A web server lists nothing.
        let mut listings = self.listings().unwrap_or_default();
        match found {
            Ok(checkpoint) => {
                listings.retain(|name| *name > checkpoint.at.object);
                let later = listings;
                Ok(Choice { checkpoint, later })
            }
            Err(error) if error.is_damage() => {
                let newest = listings.split_off(listings.len().saturating_sub(NAMED_MAX));
                Err(CheckpointError::NoCheckpoint {
                    why: error.to_string(),
                    listings: match newest.len() {
                        0 => "none".to_owned(),
                        _ => newest.join(", "),
                    },
                })
            }
            Err(error) => Err(error),
        }
    }

    /// The checkpoint whose listing is `object`, whose name has the digest of its bytes.
    fn named(&self, object: &str) -> Result<Checkpoint> {
        let called = self.place.call(object);
        let bytes = run(self.bytes_of_listing(object))?;
        let content = Content::of(&bytes);
        let object = object.to_owned();
        let checkpoint = self.decoded(ListingRef { object, content }, &bytes)?;
        let Checkpoint { at, listing } = &checkpoint;
        if names::listing(listing.epoch, listing.number, &at.content) != at.object {
            let what = format!("{called} is not the listing that its name says");
            return Err(Error::damaged(what).into());
        }
        Ok(checkpoint)
    }

    /// The listings in the store, oldest first.
    fn listings(&self) -> Result<Vec<String>> {
        let held = run(self.place.list())?;
        let names = held.into_iter().map(|held| held.name);
        let mut listings: Vec<String> = names.filter(|name| names::is_listing(name)).collect();
        listings.sort_unstable();
        Ok(listings)
    }

    /// A listing in the store that cannot be of a log which names no checkpoint and had owners in
    /// these epochs only: each of them may have saved one that does not count.
    ///
    /// # Errors
    /// `Store`
    pub(crate) fn foreign_listing(&self, epochs: &[u64]) -> Result<Option<String>> {
        let is_own = |name: &String| {
            names::is_first_listing(name)
                && names::epoch(name).is_some_and(|epoch| epochs.contains(&epoch))
        };
        let mut listings = self.listings()?;
        listings.retain(|name| !is_own(name));
        Ok(listings.pop().map(|name| self.place.call(&name)))
    }

    /// The databases that have checkpoints below `prefix`, by name.
    ///
    /// # Errors
    /// `Store`
    pub fn databases(prefix: &Place) -> Result<BTreeSet<String>> {
        let held = run(prefix.list())?;
        let databases = held.iter().filter_map(|held| {
            let (database, rest) = held.name.split_once('/')?;
            let (tablet, object) = rest.split_once('/')?;
            let is_tablet = tablet.len() >= 5 && tablet.bytes().all(|byte| byte.is_ascii_digit());
            (is_tablet && names::is_listing(object)).then(|| database.to_owned())
        });
        Ok(databases.collect())
    }
}
