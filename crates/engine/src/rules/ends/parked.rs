//! The parked series of a pass: it goes through the pages of their files, and reads those of which
//! some row may have ended (`PageTerms`). No lock is held meanwhile. What has ended is brought to
//! hand, and judged again under the lock under which it wakes and goes.
//!
//! Invariant: a row counts if its series is parked, and no newer file has one. What parks or wakes
//! in the course of a pass was judged awake, or waits for the next one.
//!
//! Tested by `recovery/tests/filed.rs`.

use super::terms::SLACK_MS_MIN;
use super::{ENDS_MAX, Ending, Found, Pass, WATCHED_ENDS_MAX};
use crate::base::error::Result;
use crate::io::waiting::no_wait;
use crate::observe::notices::About;
use crate::rules::Rules;
use crate::series::presence::Parked;
use crate::storage::files::parked::{ParkedFile, ParkedFiles};
use crate::storage::files::row::SeriesRow;
use latewood_model::SeriesId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a pass is in the files of parked series.
pub(super) struct Files {
    all: Arc<ParkedFiles>,
    /// Those that it has not looked through; it goes on in the last one.
    left: Vec<Arc<ParkedFile>>,
    page: usize,
}

impl Files {
    /// The files as they are.
    fn new(all: Arc<ParkedFiles>) -> Self {
        Self {
            left: all.all().cloned().collect(),
            page: 0,
            all,
        }
    }

    fn is_newest(&self, file: &Arc<ParkedFile>, id: SeriesId) -> bool {
        let newest = self.all.file_of(id);
        newest.is_some_and(|newest| Arc::ptr_eq(newest, file))
    }
}

impl Rules {
    /// Looks at the next page of a pass, and removes those of its series that have ended, which it
    /// adds to `ended`. Returns whether the pass goes on.
    pub(super) fn end_next_parked(&self, pass: &mut Pass, ended: &mut u64) -> Result<bool> {
        let terms = self.terms(pass.now_ms);
        let parked = &self.core.store.parked;
        let files = pass.files.get_or_insert_with(|| Files::new(parked.get()));
        let Some(file) = files.left.last().cloned() else {
            return Ok(false);
        };
        while files.page < file.pages() {
            let page = files.page;
            files.page += 1;
            let bounds = file.terms(page);
            if bounds.may_have_ended(terms.floor, terms.now_ms) {
                *ended += self.end_in_page(pass, &file, page)?;
                return Ok(true);
            }
            let end_ms = bounds.ends_min_ms.saturating_add_unsigned(SLACK_MS_MIN);
            pass.next_own_end = pass.next_own_end.min(end_ms);
        }
        files.left.pop();
        files.page = 0;
        Ok(true)
    }

    fn end_in_page(&self, pass: &mut Pass, file: &Arc<ParkedFile>, page: usize) -> Result<u64> {
        let rows = match file.read_page(page) {
            Ok(rows) => rows,
            Err(error) => {
                // Its series stay, as all do that cannot be read.
                self.core.observe.notices.tell(About::Damage, error);
                return Ok(0);
            }
        };
        let terms = self.terms(pass.now_ms);
        let mut by_shard: BTreeMap<usize, Vec<Ending>> = BTreeMap::new();
        for row in rows {
            let ending = Ending {
                id: row.id,
                is_source: row.source.is_some(),
                source: row.link,
            };
            if self.may_go(pass, file, row) {
                let shard = by_shard.entry(self.core.shards.shard_of(ending.id));
                shard.or_default().push(ending);
            }
        }
        let (_no_wait, mut ended) = (no_wait(), 0);
        for (shard, mut series) in by_shard {
            series.retain(|ending| self.make_ready(ending, &terms));
            let is_watched = self.core.shards[shard].lock().watched.is_on();
            let ends_max = if is_watched {
                WATCHED_ENDS_MAX
            } else {
                ENDS_MAX
            };
            while !series.is_empty() {
                let series: Vec<Ending> = series.drain(..ends_max.min(series.len())).collect();
                let ids: Vec<SeriesId> = series.iter().map(|ending| ending.id).collect();
                // One that cannot be read stays.
                let _ = self.core.bring(&ids);
                ended += self.end(shard, pass.now_ms, &Found { is_watched, series })?;
            }
        }
        Ok(ended)
    }

    /// Whether the series of a row is parked and has ended.
    fn may_go(&self, pass: &mut Pass, file: &Arc<ParkedFile>, row: SeriesRow) -> bool {
        let shards = &self.core.shards;
        let (shard, place) = (shards.shard_of(row.id), shards.place_of(row.id));
        let is_newest = |files: &Files| files.is_newest(file, row.id);
        if place >= pass.ends[shard]
            || !pass.files.as_ref().is_some_and(is_newest)
            || !shards[shard].lock().parked.is_filed(place)
        {
            return false;
        }
        let terms = self.terms(pass.now_ms);
        let series = Parked { row }.into_series(&self.core.store.blocks);
        let has_ended = terms.ended(&series).is_some();
        if !has_ended && let Some(at_ms) = terms.next_own_end(&series) {
            pass.next_own_end = pass.next_own_end.min(at_ms);
        }
        has_ended
    }
}
