//! FILTER: selects the series of a query.
//!
//! The conditions are read by [`latewood_wire::filter`]; here are what
//! RedisTimeSeries asks of all of them together, in its order and its words,
//! and what the connection's user may read.

use super::call::Call;
use super::fault::Fault;
use latewood_engine::{SeriesRef, is_cancelled};
use latewood_model::Matcher;
use latewood_wire::filter;

/// Reads the conditions of a FILTER, one a word.
pub(crate) fn matchers<'a>(words: impl Iterator<Item = &'a [u8]>) -> Result<Vec<Matcher>, Fault> {
    let matchers: Option<Vec<Matcher>> = words.map(filter::parse).collect();
    let matchers = matchers.ok_or(Fault::line("ERR TSDB: failed parsing labels"))?;
    if !matchers.iter().any(Matcher::is_positive) {
        return Fault::refuse("ERR TSDB: please provide at least one matcher");
    }
    Ok(matchers)
}

impl Call<'_> {
    /// Whether the connection's user may read `key` with this command.
    pub(crate) fn readable(&self, key: &[u8]) -> bool {
        let name = String::from_utf8_lossy(self.args.word(0)).to_ascii_lowercase();
        self.session.user().may_read(&name, key)
    }

    /// The series that pass `matchers`, by key; refused where the user may not
    /// read one of them, or where they are more than a query may be about.
    pub(crate) fn select(&self, matchers: &[Matcher]) -> Result<Vec<SeriesRef>, Fault> {
        let series = self.shared.db.select_until(matchers, self.cancelled)?;
        self.shared.db.check_query(series.len())?;
        let is_readable =
            |series: &SeriesRef| is_cancelled(self.cancelled) || self.readable(&series.key);
        if series.iter().all(is_readable) {
            return Ok(series);
        }
        Fault::refuse(
            "NOPERM TSDB: current user doesn't have read permission to one or more keys \
             that match the specified filter",
        )
    }
}
