//! From matchers to series, by the label index.
//!
//! An expression is tried on each value that its label has, not on each
//! series; the values that pass become lists that the index brings together. Where all that it
//! matches is known, that is the list.
//! The metric of a series without `__name__` is its key, which no index knows:
//! exact ones are looked up, others are tried on the keys of those series.

use super::{is_escaped, on_shown, text};
use latewood_engine::{Db, ErrorKind, Result, SeriesRef, Values};
use latewood_model::{Matcher as IndexMatcher, Test as IndexTest};
use latewood_wire::selector::{Matcher, Test};
use latewood_wire::series_name::METRIC;

/// The series that pass all `matchers`, but for those on `__key__`, in no
/// order; a series whose labels change meanwhile may be there twice.
///
/// # Errors
/// Where what is kept in files of one of them cannot be read.
pub(crate) fn select(db: &Db, matchers: &[Matcher]) -> Result<Vec<SeriesRef>> {
    let (mut on_metric, mut by_label) = (Vec::new(), Vec::new());
    let matchers = on_shown(matchers);
    for matcher in matchers
        .iter()
        .filter(|matcher| *matcher.name != *super::KEY.as_bytes())
    {
        if matcher.is_on_metric() {
            on_metric.push(matcher)
        } else {
            by_label.push(to_index(db, matcher))
        }
    }
    if on_metric.is_empty() {
        return db.select(&by_label);
    }
    let mut with_metric = by_label.clone();
    with_metric.push(IndexMatcher::new(METRIC, IndexTest::Present));
    with_metric.extend(on_metric.iter().map(|matcher| to_index(db, matcher)));
    let mut found = db.select(&with_metric)?;
    found.extend(by_their_keys(db, &on_metric, by_label)?);
    Ok(found)
}

/// The series without a metric of their own whose keys pass.
fn by_their_keys(
    db: &Db,
    on_metric: &[&Matcher],
    mut by_label: Vec<IndexMatcher>,
) -> Result<Vec<SeriesRef>> {
    by_label.push(IndexMatcher::new(METRIC, IndexTest::Absent));
    let passes = |series: &SeriesRef| {
        let shown = text(&series.key);
        on_metric.iter().all(|m| m.passes(shown.as_bytes()))
    };
    let exact = on_metric.iter().find_map(|matcher| match &matcher.test {
        Test::Equal(key) => Some(std::slice::from_ref(key)),
        Test::Match(pattern) => pattern.literals(),
        Test::NotEqual(_) | Test::NotMatch(_) => None,
    });
    let exact = exact.filter(|keys| !keys.iter().any(|key| is_escaped(key)));
    let Some(keys) = exact else {
        let mut found = db.select(&by_label)?;
        found.retain(passes);
        return Ok(found);
    };
    let mut found = Vec::new();
    for key in keys {
        match db.resolve(key) {
            Err(error) if error.kind() == ErrorKind::NoSuchKey => {}
            resolved => found.push(resolved?),
        }
    }
    found.retain(|series| {
        let labels = db.labels(series).unwrap_or_default();
        passes(series) && by_label.iter().all(|matcher| matcher.matches(&labels))
    });
    Ok(found)
}

/// The same condition in the words of the index.
fn to_index(db: &Db, matcher: &Matcher) -> IndexMatcher {
    let name = &matcher.name;
    let values = match &matcher.test {
        Test::Match(pattern) | Test::NotMatch(pattern) => pattern.literals(),
        Test::Equal(value) | Test::NotEqual(value) => Some(std::slice::from_ref(value)),
    };
    // A series without the label has the empty value, which the index does not hold; which values
    // are shown with escapes, only a look at all tells.
    let values = values.filter(|all| !all.iter().any(|one| one.is_empty() || is_escaped(one)));
    let shows = |value: &[u8]| matcher.passes(text(value).as_bytes());
    let test = match (&matcher.test, values) {
        (Test::Equal(_) | Test::Match(_), Some(values)) => IndexTest::AnyOf(values.to_vec()),
        (Test::NotEqual(_) | Test::NotMatch(_), Some(values)) => IndexTest::NoneOf(values.to_vec()),
        (Test::Equal(value), None) if value.is_empty() => IndexTest::Absent,
        (Test::NotEqual(value), None) if value.is_empty() => IndexTest::Present,
        // Without the label it passes: so do all but those that fail.
        (_, None) if matcher.passes(b"") => {
            match db.label_values_where(name, |value| !shows(value)) {
                Values::All => IndexTest::Absent,
                Values::Some(values) => IndexTest::NoneOf(values),
            }
        }
        (_, None) => match db.label_values_where(name, shows) {
            Values::All => IndexTest::Present,
            Values::Some(values) => IndexTest::AnyOf(values),
        },
    };
    IndexMatcher::new(name, test)
}
