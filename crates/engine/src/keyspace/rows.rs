//! The row of a series in its series file. Tested by `tests/flush`.

use crate::keyspace::core::Core;
use crate::log::Position;
use crate::series::rules::Links;
use crate::series::shard::ShardState;
use crate::storage::files::row::SeriesRow;
use latewood_model::SeriesId;

impl Core {
    /// What a series file keeps of a series, right after its head was frozen.
    pub(crate) fn row_of(
        &self,
        state: &ShardState,
        id: SeriesId,
        position: Position,
    ) -> Option<SeriesRow> {
        let place = self.shards.place_of(id);
        let series = state.slab.get(place)?;
        let persisted = series.persisted();
        let source = match series.links() {
            Some(Links::Source(source)) => Some(Box::new(source.row())),
            _ => None,
        };
        Some(SeriesRow {
            id,
            key: series.key.clone(),
            unnamed: state.unnamed.contains(&id),
            options: series.options(self.labels_of(id)),
            // During a replay the files may be ahead of it.
            position: position.0.max(state.restored_position(place)),
            newest: persisted.newest,
            last_value: persisted.newest_value,
            flushed_last: persisted.flushed_last,
            holds_nan: persisted.holds_nan,
            expires_at_ms: state.expiries.get(place),
            source,
        })
    }
}
