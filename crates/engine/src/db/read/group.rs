//! GROUPBY .. REDUCE: reduces the rows of many series to those of one.
//!
//! The series are halved until a few are left. Those are read one after the other,
//! and the reductions of the halves are merged. That bounds the work if the series
//! have no timestamp in common, splits it between threads, and gives the same
//! result for any number of threads. Memory is a few reductions for each thread,
//! none of which is longer than a reply may be.
//!
//! Tested by `tests/query_many.rs`.

use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use crate::db::read::spread::Spread;
use crate::index::SeriesRef;
use crate::query::reduce::{Counts, Extremes, Reduction, State, Total};
use crate::query::{Columns, RangeQuery, reduce};
use latewood_model::Aggregator;

/// Series that are read one after the other.
const LEAF_SERIES: usize = 16;

impl Db {
    /// Evaluates `query` over each of `series` and reduces their rows to one
    /// row for each timestamp, in the order of the query. Removed series are
    /// skipped. Once `cancelled` is true, it returns early, with any rows.
    ///
    /// # Errors
    /// `Corrupt`; `Invalid` if a parameter of the query is out of range, the query
    /// has several aggregators, or `reducer` is not a reducer; `Limit` if the rows
    /// do not fit in a reply.
    pub fn reduce(
        &self,
        series: &[SeriesRef],
        query: &RangeQuery,
        reducer: Aggregator,
        spread: Spread,
        cancelled: Cancelled<'_>,
    ) -> Result<Columns> {
        let invalid = |message: &str| Err(Error::new(ErrorKind::Invalid, message));
        if !reducer.reduces() {
            return invalid("a group cannot be reduced by first, last or twa");
        }
        let aggregation = query.aggregation.as_ref();
        if aggregation.is_some_and(|aggregation| aggregation.aggregators.len() > 1) {
            return invalid("a group must be reduced from one aggregator");
        }
        // As in RedisTimeSeries, FIRST and LAST follow time here, not the direction of
        // the query. The newest rows are the last of all.
        let forward = RangeQuery {
            reverse: false,
            count: query.count.filter(|_| !query.reverse),
            ..query.clone()
        };
        let group = Group {
            db: self,
            query,
            forward: &forward,
            spread,
            cancelled,
        };
        match reducer {
            Aggregator::Count | Aggregator::CountNan | Aggregator::CountAll => {
                group.rows::<Counts>(series, reducer)
            }
            Aggregator::Min | Aggregator::Max | Aggregator::Range => {
                group.rows::<Extremes>(series, reducer)
            }
            Aggregator::Sum | Aggregator::Avg => group.rows::<Total>(series, reducer),
            _ => group.rows::<reduce::Spread>(series, reducer),
        }
    }
}

struct Group<'a> {
    db: &'a Db,
    query: &'a RangeQuery,
    /// The query of each series.
    forward: &'a RangeQuery,
    spread: Spread,
    /// Nobody wants the rows any more.
    cancelled: Cancelled<'a>,
}

impl Group<'_> {
    fn rows<S: State>(&self, series: &[SeriesRef], reducer: Aggregator) -> Result<Columns> {
        Ok(self.fold::<S>(series)?.rows(reducer, self.query))
    }

    fn fold<S: State>(&self, series: &[SeriesRef]) -> Result<Reduction<S>> {
        if series.len() <= LEAF_SERIES {
            return self.leaf(series);
        }
        let (left, right) = series.split_at(series.len() / 2);
        let (left, right) = self
            .spread
            .both(|| self.fold::<S>(left), || self.fold::<S>(right));
        let merged = left?.merge(right?);
        if merged.bytes() > self.db.core.budget.reply_bytes() {
            Err(too_many_rows())
        } else {
            Ok(merged)
        }
    }

    fn leaf<S: State>(&self, series: &[SeriesRef]) -> Result<Reduction<S>> {
        let mut reduction = Reduction::default();
        if is_cancelled(self.cancelled) {
            return Ok(reduction);
        }
        for view in self.db.views_of(series, self.forward).into_iter().flatten() {
            let bytes_max = self.db.core.budget.reply_bytes();
            let mut adding = reduction.adding(bytes_max, self.cancelled);
            view.run(self.forward, &mut adding)?;
            if !adding.finish() {
                return Err(too_many_rows());
            }
        }
        Ok(reduction)
    }
}

#[cold]
fn too_many_rows() -> Error {
    Error::new(ErrorKind::Limit, "the reply has too many rows")
}
