//! The log of a tablet before it is claimed or followed: whether it belongs to what is in the store.
//!
//! Nothing is appended, and nobody is deposed, before all of the log can be read and belongs
//! together with the store.
//!
//! Tested by `tests/tablet/starts.rs`.

use super::{Error, Place};
use crate::checkpoint::{Latest, Objects};
use crate::owner::{self, Claimed, Look, Stop};
use crate::retry::Retry;
use std::sync::Arc;

/// How often a log is read that seems to lack what the store has, before a start is refused.
const LOOKS_MAX: u32 = 20;

/// Reads the log, as far as brokers show it, and waits for brokers and store: nothing is claimed
/// before all of it can be read and belongs together.
pub(crate) fn look(place: &Place) -> Result<Look, Error> {
    let Place { objects, retry, .. } = place;
    let latest = at_last(retry, || Ok(objects.latest()?))?;
    let mut pauses = retry.pauses("cannot read the log");
    let mut looks = 0;
    loop {
        let kafka = Arc::clone(&place.kafka);
        let seen = Look::new(
            kafka,
            place.partition.clone(),
            place.topic_id,
            retry.clone(),
        );
        let why = match seen {
            Ok(seen) => match why_foreign(objects, retry, latest.as_ref(), &seen)? {
                None => return Ok(seen),
                Some(why) => why,
            },
            Err(error @ owner::Error::Stopped(Stop::Beginning { .. } | Stop::Missing { .. })) => {
                error.into()
            }
            Err(error) => return Err(error.into()),
        };
        // A broker that has fallen behind shows a part of the log only.
        looks += 1;
        if looks == LOOKS_MAX {
            return Err(why);
        }
        pauses.pause(&why).map_err(owner::Error::from)?;
    }
}

/// Why the log is not that of the store, if so: what `LATEST` names, or where there is none any
/// checkpoint, is of another log.
fn why_foreign(
    objects: &Objects,
    retry: &Retry,
    latest: Option<&Latest>,
    seen: &Look,
) -> Result<Option<Error>, Error> {
    let newest = seen.checkpoint().map(|(offset, _)| *offset);
    if let Some(latest) = latest {
        let offset = latest.offset;
        return Ok((newest < Some(offset)).then_some(Error::OtherLog { offset }));
    }
    if newest.is_some() {
        return Ok(None);
    }
    let listing = at_last(retry, || Ok(objects.foreign_listing(seen.epochs())?))?;
    Ok(listing.map(|object| Error::NewLog { object }))
}

/// Refuses a log that lacks the record of a checkpoint in the store: `LATEST` is written after
/// its record counts, so no log that belongs to the store is shorter.
pub(crate) fn require_own_log(
    objects: &Objects,
    retry: &Retry,
    claimed: &Claimed,
) -> Result<(), Error> {
    let Some(latest) = at_last(retry, || Ok(objects.latest()?))? else {
        return Ok(());
    };
    let offset = latest.offset;
    if claimed.checkpoint.is_some() && claimed.owner.epoch() > offset {
        return Ok(());
    }
    Err(Error::OtherLog { offset })
}

/// Calls the store until it answers.
pub(crate) fn at_last<T>(
    retry: &Retry,
    call: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    let answer = retry.repeat("cannot use the object store", call, Error::is_temporary);
    answer.map_err(owner::Error::from)?
}
