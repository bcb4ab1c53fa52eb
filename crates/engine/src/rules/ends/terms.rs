//! Which series have ended: what retention left nothing of, and nobody made to stay.
//!
//! | ends | when |
//! |---|---|
//! | by the floor | its newest sample is below the floor of the database: nothing of it is visible, and nothing can be written to it that brings a sample back |
//! | by its own retention | its newest sample is older than that, and by a [`slack`], at the time on which the clock and the newest samples agree |
//! | empty | it has no sample, makes no rows for others, and some retention is in force |
//!
//! Invariant: a series whose samples a sender may still want is not ended for a clock alone.
//! Tested by the table below and by `tests/ends`.

use crate::base::options::DropEmpty;
use crate::keyspace::ended::EndedBy;
use crate::series::Series;
use latewood_model::{MadeBy, Timestamp};

/// How long a series stays beyond its own retention: whoever sends a sample once in that time finds
/// it there.
pub(super) const SLACK_MS_MIN: u64 = 60_000;
const SLACK_MS_MAX: u64 = 86_400_000;

/// By what series are judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) which: DropEmpty,
    /// The oldest timestamp that the database keeps.
    pub(super) floor: Timestamp,
    /// The time by which the retention of single series counts; the smallest one ends none.
    pub(super) now_ms: i64,
}

/// How long a series stays beyond a retention of its own, milliseconds.
fn slack(retention_ms: u64) -> u64 {
    (retention_ms / 16).clamp(SLACK_MS_MIN, SLACK_MS_MAX)
}

impl Terms {
    /// Why a series has ended, if it has. Whether it has a key, or a source that is there, is not
    /// looked at.
    pub(super) fn ended(&self, series: &Series) -> Option<EndedBy> {
        let Some(newest) = series.newest() else {
            return self.is_left_empty(series).then_some(EndedBy::Floor);
        };
        if !self.may_end(series) {
            return None;
        }
        if newest < self.floor {
            return Some(EndedBy::Floor);
        }
        (own_end(series, newest)? < self.now_ms).then_some(EndedBy::Own)
    }

    /// Whether a destination has nothing left that its source would have to go on with.
    pub(super) fn is_over(&self, series: &Series) -> bool {
        match series.newest() {
            None => self.may_end(series),
            Some(_) => self.ended(series).is_some(),
        }
    }

    /// From when on a series that is not written to ends by its own retention, if it ever does.
    pub(super) fn next_own_end(&self, series: &Series) -> Option<i64> {
        let end_ms = own_end(series, series.newest()?)?;
        self.may_end(series).then_some(end_ms)
    }

    fn may_end(&self, series: &Series) -> bool {
        match self.which {
            DropEmpty::Sent => is_sent(series),
            DropEmpty::All => true,
            DropEmpty::None => false,
        }
    }

    /// Whether a series has no sample and nobody made it to be empty, such as the destination of a
    /// compaction policy whose source ended before a bucket closed.
    fn is_left_empty(&self, series: &Series) -> bool {
        let is_in_force = self.floor > Timestamp::MIN || series.retention_ms() > 0;
        self.which != DropEmpty::None && is_in_force && is_sent(series) && series.rules().is_none()
    }
}

/// Whether a sender or a rule of the server made it.
fn is_sent(series: &Series) -> bool {
    matches!(series.marks.made_by(), MadeBy::Sender | MadeBy::Rule)
}

/// When a series with a retention of its own has been past it for the slack.
fn own_end(series: &Series, newest: Timestamp) -> Option<i64> {
    let retention_ms = series.retention_ms();
    let past_ms = newest.saturating_add_unsigned(retention_ms);
    (retention_ms > 0).then(|| past_ms.saturating_add_unsigned(slack(retention_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Disk;
    use crate::io::sim::{SimDisk, SimRandom};
    use crate::series::presence::Parked;
    use crate::storage::files::chance::random_rows;
    use crate::storage::files::series_file::ParkedFile;
    use crate::storage::files::{SeriesFileWriter, SeriesRow};
    use std::path::Path;
    use std::sync::Arc;

    /// Some rows have no sample, some a retention of their own, which may end before or after the
    /// floor.
    fn rows(random: &SimRandom) -> Vec<SeriesRow> {
        let mut rows = random_rows(random, 3, 3_000);
        for row in &mut rows {
            let newest = 1_000_000_000 + random.below(500_000_000) as i64;
            row.newest = (random.below(200) > 0).then_some(newest);
            row.options.retention_ms = random.below(3) * random.below(300_000_000);
            row.made_by = [MadeBy::Sender, MadeBy::Rule, MadeBy::Create][random.below(3) as usize];
            (row.flushed_last, row.source) = (None, None);
        }
        rows
    }

    /// That a page need not be read for a series that ended.
    #[test]
    fn no_row_ends_before_the_terms_of_its_page() {
        let random = SimRandom::new(8);
        let (disk, path) = (SimDisk::new(), Path::new("/parked"));
        disk.create_dir_all(Path::new("/")).unwrap();
        let env = disk.env(1);
        let mut writer = SeriesFileWriter::create_paged(&env, path, 1, 3, 1).unwrap();
        rows(&random)
            .iter()
            .for_each(|row| writer.row(row).unwrap());
        let file = ParkedFile::open(&env, path, &writer.finish().unwrap()).unwrap();
        let (mut ended, mut passed) = (0, 0);
        for page in 0..file.pages() {
            let series: Vec<Series> = file
                .read_page(page)
                .unwrap()
                .into_iter()
                .map(|row| Parked { row }.into_series(&Arc::default()))
                .collect();
            for _ in 0..200 {
                let at =
                    || random.below(2) as i64 * (900_000_000 + random.below(600_000_000) as i64);
                let (floor, now_ms) = (at(), at());
                let at = |at| if at == 0 { Timestamp::MIN } else { at };
                let terms = Terms {
                    which: DropEmpty::All,
                    floor: at(floor),
                    now_ms: at(now_ms),
                };
                let may = file.terms(page).may_have_ended(terms.floor, terms.now_ms);
                let has = series.iter().any(|series| terms.ended(series).is_some());
                assert!(may || !has, "{terms:?} of {:?}", file.terms(page));
                (ended, passed) = (ended + u32::from(has), passed + u32::from(!may));
            }
        }
        assert!(ended > 100 && passed > 100, "{ended} {passed}");
    }
}
