//! The key of a random series, for RANDOMKEY.

use crate::db::Db;

/// Random places tried before the linear walk. With a quarter of the places in use,
/// all but one call in ten thousand end before the walk.
const TRIES: usize = 32;

impl Db {
    /// The key of a random series, all about equally likely; `None` if there are
    /// no series. Constant time unless most series ever created were removed.
    pub fn random_key(&self) -> Option<Box<[u8]>> {
        let random = || self.core.env.random.next_u64() as usize;
        let shards = self.core.shards.len();
        let mut cursor = 0;
        for _ in 0..TRIES {
            let shard = random() % shards;
            let state = self.core.shards[shard].lock();
            let place = random() % state.next_place.max(1);
            cursor = (shard as u64) << 32 | place as u64;
            if let Some(series) = state.slab.get(place)
                && !self.core.is_expired(&state, place)
                && !state
                    .unnamed
                    .contains(&self.core.shards.id_of(shard, place))
            {
                return Some((*series.key).into());
            }
        }
        // Few series are left: take the next one from here, or from the start.
        let mut found = None;
        for cursor in [cursor, 0] {
            if found.is_none() {
                self.scan(cursor, 1, &mut |key| found = Some(key.into()));
            }
        }
        found
    }
}
