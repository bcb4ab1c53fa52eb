//! From matchers to series, by the label index.
//!
//! An expression is tried on each value that its label has, not on each
//! series; the values that pass become lists that the index brings together. Where all that it
//! matches is known, that is the list.
//! The metric of a series without `__name__` is its key, which no index knows:
//! exact ones are looked up, others are tried on the keys of those series.

use super::{is_escaped, on_shown, text};
use latewood_engine::{Cancelled, Db, ErrorKind, Result, SeriesRef, SeriesSet, Values};
use latewood_model::{Matcher as IndexMatcher, Test as IndexTest};
use latewood_wire::selector::{Matcher, Test};
use latewood_wire::series_name::METRIC;

/// The series that pass all `matchers`, but for those on `__key__`, in no
/// order; a series whose labels change meanwhile may be there twice. With a span of time, both ends
/// included, some may be left out that have no sample in it. Once `cancelled` is true, it returns
/// early, with any series.
///
/// # Errors
/// Where what is kept in files of one of them cannot be read.
pub(crate) fn select(
    db: &Db,
    matchers: &[Matcher],
    span: Option<(i64, i64)>,
    cancelled: Cancelled<'_>,
) -> Result<Vec<SeriesRef>> {
    let span = span.filter(|_| !matchers.iter().any(is_on_key));
    let selected = |matchers: &[IndexMatcher]| match span {
        Some(span) => db.select_in(matchers, span, cancelled),
        None => db.select_until(matchers, cancelled),
    };
    let matchers = on_shown(matchers);
    let sought = Sought::new(db, &matchers, span, cancelled)?;
    let mut found = selected(&sought.labelled)?;
    if !sought.on_metric.is_empty() {
        found.extend(by_their_keys(
            db,
            &sought.on_metric,
            sought.by_label,
            selected,
        )?);
    }
    Ok(found)
}

/// The same for who takes some series after others: those that have all labels that are shown as a set,
/// and those whose key is their metric. `None` where what is looked for is told from the others by
/// `__key__`.
///
/// # Errors
/// As [`select()`].
pub(super) fn select_set(
    db: &Db,
    matchers: &[Matcher],
    span: Option<(i64, i64)>,
    cancelled: Cancelled<'_>,
) -> Result<Option<(SeriesSet, Vec<SeriesRef>)>> {
    if matchers.iter().any(is_on_key) {
        return Ok(None);
    }
    let matchers = on_shown(matchers);
    let sought = Sought::new(db, &matchers, span, cancelled)?;
    let set = db.select_set(&sought.labelled, span, cancelled)?;
    let mut more = Vec::new();
    if !sought.on_metric.is_empty() {
        let selected = |matchers: &[IndexMatcher]| db.select_until(matchers, cancelled);
        more = by_their_keys(db, &sought.on_metric, sought.by_label, selected)?;
    }
    Ok(Some((set, more)))
}

/// What looks the same shows which one it is only beside the others.
fn is_on_key(matcher: &Matcher) -> bool {
    *matcher.name == *super::KEY.as_bytes()
}

/// What is looked for, in the words of the index.
struct Sought<'a> {
    /// Matchers on the metric, of which a series without the label has its key.
    on_metric: Vec<&'a Matcher>,
    /// The others.
    by_label: Vec<IndexMatcher>,
    /// All of them, for series that have the label if any is on the metric.
    labelled: Vec<IndexMatcher>,
}

impl<'a> Sought<'a> {
    /// `matchers` are on what is shown.
    fn new(
        db: &Db,
        matchers: &'a [Matcher],
        span: Option<(i64, i64)>,
        cancelled: Cancelled<'_>,
    ) -> Result<Self> {
        let to_index = |matcher: &Matcher| to_index(db, matcher, span, cancelled);
        let (mut on_metric, mut by_label) = (Vec::new(), Vec::new());
        for matcher in matchers.iter().filter(|matcher| !is_on_key(matcher)) {
            if matcher.is_on_metric() {
                on_metric.push(matcher)
            } else {
                by_label.push(to_index(matcher)?)
            }
        }
        let mut labelled = by_label.clone();
        if !on_metric.is_empty() {
            labelled.push(IndexMatcher::new(METRIC, IndexTest::Present));
        }
        for matcher in &on_metric {
            labelled.push(to_index(matcher)?);
        }
        Ok(Self {
            on_metric,
            by_label,
            labelled,
        })
    }
}

/// The series without a metric of their own whose keys pass.
fn by_their_keys(
    db: &Db,
    on_metric: &[&Matcher],
    mut by_label: Vec<IndexMatcher>,
    selected: impl Fn(&[IndexMatcher]) -> Result<Vec<SeriesRef>>,
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
        let mut found = selected(&by_label)?;
        found.retain(passes);
        return Ok(found);
    };
    let mut found = Vec::new();
    for key in keys {
        let series = match db.resolve(key) {
            Err(error) if error.kind() == ErrorKind::NoSuchKey => continue,
            resolved => resolved?,
        };
        let labels = db.labels(&series)?.unwrap_or_default();
        if passes(&series) && by_label.iter().all(|matcher| matcher.matches(&labels)) {
            found.push(series);
        }
    }
    Ok(found)
}

/// The same condition in the words of the index.
fn to_index(
    db: &Db,
    matcher: &Matcher,
    span: Option<(i64, i64)>,
    cancelled: Cancelled<'_>,
) -> Result<IndexMatcher> {
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
            match db.label_values_where(name, |value| !shows(value), span, cancelled)? {
                Values::All => IndexTest::Absent,
                Values::Some(values) => IndexTest::NoneOf(values),
            }
        }
        (_, None) => match db.label_values_where(name, shows, span, cancelled)? {
            Values::All => IndexTest::Present,
            Values::Some(values) => IndexTest::AnyOf(values),
        },
    };
    Ok(IndexMatcher::new(name, test))
}
