//! Deleting from series that were found by their labels, one after the other, each at a moment of its
//! own: LATEWOOD DELETE of the Redis port, `delete_series` and `/api/v2/delete` of HTTP.

use crate::messaging::Class;
use crate::state::Shared;
use latewood_engine::{ErrorKind, Position, Result};

/// Deletes the samples from one time to another, both included, of the series under `key`, as TS.DEL
/// does; without times the series, as DEL does. How many samples or series that were: none where the
/// series went by itself. Events are published here: hold the exec lock, so that no EXEC sees less
/// before its WATCH does.
///
/// # Errors
/// Those of the engine.
pub(crate) fn delete(
    shared: &Shared,
    key: &[u8],
    span: Option<(i64, i64)>,
) -> Result<(u64, Position)> {
    let (deleted, event) = match span {
        Some((from, to)) => {
            let deleted = shared.db.delete_range(key, from, to);
            (deleted, (Class::Module, "ts.del"))
        }
        None => (shared.db.remove(&[key]), (Class::Generic, "del")),
    };
    match deleted {
        Err(error) if error.kind() == ErrorKind::NoSuchKey => Ok((0, Position::default())),
        deleted => deleted.inspect(|_| shared.changed(event.0, event.1, key)),
    }
}

/// What is in the way of deleting from one of these series: the rule file that owns it.
pub(crate) fn owned<'a>(
    shared: &Shared,
    mut keys: impl Iterator<Item = &'a [u8]>,
) -> Option<String> {
    let key = keys.find(|key| shared.db.owner(key).is_some())?;
    let key = String::from_utf8_lossy(key);
    Some(format!(
        "a rule file owns the series '{key}'; nothing was deleted"
    ))
}
