//! Samples of one series after the other, in parts of bounded length.
//!
//! A long series is read in several parts. Each is a query of its own that
//! begins behind the last row of the part before, so that nothing is held of
//! the series while the reader takes its time. A bucket is never cut: the next
//! part begins with the bucket behind the last. What a bucket takes from the
//! one before comes along, so that the rows are those of one query: the engine
//! leads the line of TWA on from the last number, LAST is carried here.

use super::asked::Asked;
use crate::http::answer::Answer;
use crate::labelled::Named;
use latewood_engine::RangeQuery;
use latewood_engine::query::Columns;
use latewood_model::Aggregator;
use latewood_promql::labels::Labels;

/// What is read of one series.
pub(super) struct Job {
    pub(super) named: Named,
    /// Which of several queries this answers.
    pub(super) number: usize,
    /// One value a row, oldest first; buckets are stamped with their start.
    pub(super) query: RangeQuery,
}

/// Some rows of one series. Only the last part may be empty, where the part
/// before was full.
pub(super) struct Part<'a> {
    pub(super) labels: &'a Labels,
    /// That of the job.
    pub(super) number: usize,
    pub(super) timestamps: &'a [i64],
    pub(super) values: &'a [f64],
    /// Whether it is the first of its series.
    pub(super) is_first: bool,
    /// Whether no other of its series follows.
    pub(super) is_last: bool,
}

/// What a step of a walk comes to.
pub(super) enum Next<'a> {
    /// Rows.
    Part(Part<'a>),
    /// A series without rows was passed over.
    Nothing,
    /// There is no more.
    End,
}

/// Jobs under way.
pub(super) struct Walk {
    jobs: std::vec::IntoIter<Job>,
    current: Option<Job>,
    /// Where the next part of `current` begins, if there is one.
    next_from: Option<i64>,
    rows_max: usize,
    rows: Columns,
}

impl Walk {
    /// Parts of at most `rows_max` rows.
    pub(super) fn new(jobs: Vec<Job>, rows_max: usize) -> Self {
        Self {
            jobs: jobs.into_iter(),
            current: None,
            next_from: None,
            rows_max,
            rows: Columns::default(),
        }
    }

    /// The next part. A series without rows has none; it is passed over in a
    /// step of its own, so that the caller can see between two whether somebody
    /// still waits. May block.
    ///
    /// # Errors
    /// Where samples cannot be read.
    pub(super) fn next(&mut self, asked: &Asked) -> Result<Next<'_>, Answer> {
        let is_first = self.next_from.is_none();
        if is_first {
            self.current = self.jobs.next();
        }
        let Some(job) = &self.current else {
            return Ok(Next::End);
        };
        let from = self.next_from.unwrap_or(job.query.from);
        self.read(asked, from)?;
        if is_first && self.rows.timestamps.is_empty() {
            return Ok(Next::Nothing);
        }
        let part = self.current.as_ref().map(|job| Part {
            labels: &job.named.labels,
            number: job.number,
            timestamps: &self.rows.timestamps,
            values: &self.rows.values,
            is_first,
            is_last: self.next_from.is_none(),
        });
        Ok(part.map_or(Next::End, Next::Part))
    }

    /// Reads the rows of the current job from `from` on.
    fn read(&mut self, asked: &Asked, from: i64) -> Result<(), Answer> {
        let before = match self.next_from.take() {
            Some(_) => self.rows.values.last().copied(),
            None => None,
        };
        self.rows.timestamps.clear();
        self.rows.values.clear();
        let Some(job) = &self.current else {
            return Ok(());
        };
        let query = RangeQuery {
            from,
            count: Some(self.rows_max as u64),
            ..job.query.clone()
        };
        let shared = asked.shared();
        let series = std::slice::from_ref(&job.named.series);
        shared.db.prepare(series, &query);
        let found = {
            let _shared_lock = shared.exec_lock.share_beside_loops();
            shared.db.views(series, &query, false).pop()
        };
        // A series that is gone by now has no more rows.
        let Some(found) = found else {
            return Ok(());
        };
        let read = found.view.run(&query, &mut self.rows);
        read.map_err(|error| Answer::of_series(&error, &job.named.series.key))?;
        if let Some(before) = before
            && let Some(by) = &query.aggregation
            && by.aggregators == [Aggregator::Last]
        {
            carry(before, &mut self.rows.values);
        }
        if self.rows.timestamps.len() == self.rows_max {
            let width = query.aggregation.as_ref().map_or(1, |by| by.bucket_ms);
            let last = self.rows.timestamps.last();
            let next = last.and_then(|last| last.checked_add(width));
            self.next_from = next.filter(|next| *next <= query.to);
        }
        Ok(())
    }
}

/// Gives the first buckets, as long as all samples in them are NaN, the value
/// that LAST had before them.
fn carry(before: f64, values: &mut [f64]) {
    let silent = values.iter_mut().take_while(|value| value.is_nan());
    silent.for_each(|value| *value = before);
}
