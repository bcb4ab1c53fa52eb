//! What is known of a reader, as bytes of the log (`docs/format/wal.md`).
//!
//! It is written at each flush, since the log before it may go. Tested below and by
//! `tests/watches`.

use super::reader::{Change, ChangedSeries, Pending, Reader, joined};
use crate::log::Position;
use crate::storage::files::bytes::{Put, Take};
use latewood_model::{Labels, SeriesId, Timestamp};
use std::sync::Arc;

const ANY: u8 = 0;
const SAME: u8 = 1;
const NAMED: u8 = 2;

/// What a log says of a reader.
pub(super) struct State {
    pub(super) horizon: Timestamp,
    pub(super) since: Timestamp,
    /// All changes up to here are among `changes`, or done.
    pub(super) position: u64,
    pub(super) changes: Vec<Pending>,
}

/// The state of a reader. If it is longer than `bytes_max`, its changes are joined.
pub(super) fn of(reader: &Reader, position: Position, bytes_max: usize) -> Vec<u8> {
    let bytes = put(reader, position, &reader.pending);
    if bytes.len() <= bytes_max {
        return bytes;
    }
    put(reader, position, &joined(&reader.pending))
}

fn put(reader: &Reader, position: Position, changes: &[Pending]) -> Vec<u8> {
    let mut bytes = Put::default();
    bytes.signed(reader.horizon);
    bytes.signed(reader.since);
    bytes.number(position.0);
    bytes.number(changes.len() as u64);
    let mut before: Option<&Arc<ChangedSeries>> = None;
    for Pending { change, .. } in changes {
        bytes.number(u64::from(change.selector));
        bytes.signed(change.from);
        bytes.signed(change.to);
        match &change.series {
            None => bytes.byte(ANY),
            Some(series) if before.is_some_and(|before| Arc::ptr_eq(before, series)) => {
                bytes.byte(SAME);
            }
            Some(series) => {
                bytes.byte(NAMED);
                put_series(&mut bytes, series);
                before = Some(series);
            }
        }
    }
    bytes.0
}

fn put_series(bytes: &mut Put, series: &ChangedSeries) {
    bytes.number(series.id.0);
    bytes.string(&series.key);
    bytes.string(series.labels.as_bytes());
    bytes.signed(series.floor);
    bytes.byte(u8::from(series.is_gone));
    bytes.number(series.expires_at_ms.map_or(0, i64::unsigned_abs));
}

/// Reads a state; `None` if it is none.
pub(super) fn read(bytes: &[u8]) -> Option<State> {
    let mut bytes = Take(bytes);
    let (horizon, since) = (bytes.signed()?, bytes.signed()?);
    let position = bytes.number()?;
    let mut changes = Vec::new();
    let mut before = None;
    for _ in 0..bytes.count()? {
        let selector = u32::try_from(bytes.number()?).ok()?;
        let (from, to) = (bytes.signed()?, bytes.signed()?);
        let series = match bytes.byte()? {
            ANY => None,
            SAME => Some(Option::clone(&before)?),
            NAMED => {
                before = Some(Arc::new(take_series(&mut bytes)?));
                before.clone()
            }
            _ => return None,
        };
        let change = Change {
            selector,
            series,
            from,
            to,
        };
        changes.push(Pending {
            change,
            at: position,
        });
    }
    let state = State {
        horizon,
        since,
        position,
        changes,
    };
    bytes.is_empty().then_some(state)
}

fn take_series(bytes: &mut Take<'_>) -> Option<ChangedSeries> {
    Some(ChangedSeries {
        id: SeriesId::new(bytes.number()?)?,
        key: bytes.string()?.into(),
        labels: Labels::from_bytes(bytes.string()?).ok()?,
        floor: bytes.signed()?,
        is_gone: match bytes.byte()? {
            0 => false,
            1 => true,
            _ => return None,
        },
        expires_at_ms: match i64::try_from(bytes.number()?).ok()? {
            0 => None,
            at_ms => Some(at_ms),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written_and_no_part_of_it_is_one() {
        let labels = Labels::new([(&b"a"[..], &b"b"[..])]).unwrap_or_default();
        let series = Arc::new(ChangedSeries {
            id: SeriesId(7),
            key: b"key"[..].into(),
            labels,
            floor: -5,
            is_gone: true,
            expires_at_ms: Some(9),
        });
        let change = |selector, series, from| Pending {
            change: Change {
                selector,
                series,
                from,
                to: 8,
            },
            at: 44,
        };
        let mut reader = Reader::new();
        (reader.horizon, reader.since) = (100, -7);
        reader.pending = vec![
            change(3, Some(series.clone()), 1),
            change(3, Some(series), 2),
            change(4, None, i64::MIN),
            change(Change::STEPS, None, 5),
        ];
        let bytes = of(&reader, Position(44), usize::MAX);
        let state = read(&bytes).unwrap();
        assert_eq!((state.horizon, state.since), (100, -7));
        assert_eq!((state.position, state.changes), (44, reader.pending));
        assert!((0..bytes.len()).all(|end| read(&bytes[..end]).is_none()));
    }
}
