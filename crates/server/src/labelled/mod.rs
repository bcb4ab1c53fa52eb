//! Series as readers see them that know labels and no keys.
//!
//! To such a reader a series is its set of labels. What Latewood keeps fits that
//! by these rules:
//! - a series without the label `__name__` shows its key as one;
//! - of a name that a series has twice, the first value is shown, and a matcher
//!   must pass it; one that a missing label passes (`!=`, mostly) must pass the
//!   others too;
//! - bytes that are no UTF-8 are shown as `\xff`, and matchers see that;
//! - series that would look the same are told apart by `__key__`, the key.
//!
//! Since matchers see nothing but labels, they pass all series that look the
//! same or none of them: so `__key__` does not depend on the query.
//!
//! Tested by `tests.rs`.

mod select;
#[cfg(test)]
mod tests;
mod views;

pub(crate) use crate::state::Named;
pub(crate) use select::select;
pub(crate) use views::{PART_SERIES, Reader, TakeNamed, Views, interrupted, raw};

use latewood_engine::{Cancelled, Db, ErrorKind, Result, SeriesRef};
use latewood_promql::labels::Labels;
use latewood_promql::source::Hold;
use latewood_wire::selector::{Matcher, Test};
use latewood_wire::series_name::{METRIC, NameError, SeriesName};
use std::borrow::Cow;
use std::fmt::Write;
use std::ops::ControlFlow;

/// The label that tells apart what would look the same.
pub(crate) const KEY: &str = "__key__";

/// Bytes of names that are accounted for together.
const HELD_BYTES: usize = 1 << 20;

/// How a series with `labels` under `key` looks.
pub(crate) fn shown(labels: &latewood_model::Labels, key: &[u8]) -> Labels {
    shown_packed(labels.as_bytes(), key)
}

/// The same of labels that are packed as those of a series are.
fn shown_packed(labels: &[u8], key: &[u8]) -> Labels {
    // Most are in order and have a metric.
    let ready = Labels::from_packed(labels);
    if let Some(ready) = ready.filter(|ready| !ready.get_bytes(METRIC).is_empty()) {
        return ready;
    }
    let pairs = latewood_model::Labels::pairs_in(labels);
    let mut pairs: Vec<_> = pairs.map(|(n, v)| (text(n), text(v))).collect();
    // Stable, so that the first of a name stays the first.
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    pairs.dedup_by(|later, first| later.0 == first.0);
    let (metric, key) = (text(METRIC), text(key));
    if let Err(at) = pairs.binary_search_by(|pair| pair.0.cmp(&metric)) {
        pairs.insert(at, (metric, key));
    }
    Labels::from_sorted(pairs.iter().map(|(name, value)| (&**name, &**value)))
}

/// How `series` look, in the order of their labels; those that went meanwhile
/// are left out, and what is there twice stays once. Where `series` lacks some that have no sample in a
/// span (`are_some`), one of these can still look the same. `hold` is told of the bytes that are about
/// to be held, many at a time, and may end it early; then it says anything.
///
/// Linear in their labels, but for sorting.
///
/// # Errors
/// Where the labels of one of them cannot be read.
pub(crate) fn named(
    db: &Db,
    series: Vec<SeriesRef>,
    are_some: bool,
    hold: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<Vec<Named>> {
    let mut looks: Vec<Option<Labels>> = vec![None; series.len()];
    let mut bytes = series.len() * size_of::<Named>();
    let mut flow = ControlFlow::Continue(());
    db.labels_of_all(&series, &mut |at, labels| {
        let (look, key) = (shown_packed(labels, &series[at].key), &series[at].key);
        bytes += look.len_bytes() + key.len();
        looks[at] = Some(look);
        if bytes >= HELD_BYTES {
            flow = hold(std::mem::take(&mut bytes));
        }
        flow
    })?;
    // Less may be granted after more was refused: what is named by then is not all.
    if flow.is_break() || hold(bytes).is_break() {
        return Ok(Vec::new());
    }
    let named = series.into_iter().zip(looks);
    let named = named.filter_map(|(series, labels)| {
        Some(Named {
            series,
            labels: labels?,
        })
    });
    let mut named: Vec<Named> = named.collect();
    sort(&mut named);
    named.dedup_by(|a, b| a.series.id == b.series.id);
    let mut collided = false;
    let mut key = (are_some && db.parked_len() > 0).then(SeriesName::new);
    for same in named.chunk_by_mut(|a, b| a.labels == b.labels) {
        let other = key.as_mut().map(|key| looks_the_same(db, &same[0], key));
        if same.len() > 1 || other.transpose()? == Some(true) {
            collided = true;
            for one in same {
                one.labels = one.labels.with(KEY, &text(&one.series.key));
            }
        }
    }
    if collided {
        sort(&mut named);
    }
    Ok(named)
}

/// Hands the series that pass all `matchers` to `take`, about a thousand at a time and each once, where
/// their number `is_many`; otherwise `false`, and nothing is taken. Those that look the same are told apart
/// where they are taken together. With a span, some may be left out that have no sample in it. Once
/// `cancelled` is true, or `take` or `hold` has enough, it returns early.
///
/// # Errors
/// Where they are more than a query may be about, or what is kept in files of one cannot be read.
pub(crate) fn each(
    db: &Db,
    (matchers, span): (&[Matcher], Option<(i64, i64)>),
    is_many: impl Fn(usize) -> bool,
    cancelled: Cancelled<'_>,
    hold: &mut Hold<'_>,
    take: &mut TakeNamed<'_>,
) -> Result<bool> {
    let Some((set, more)) = select::select_set(db, matchers, span, cancelled)? else {
        return Ok(false);
    };
    let count = set.len() + more.len();
    if !is_many(count) {
        return Ok(false);
    }
    db.check_query(count)?;
    let selectors = [matchers.to_vec()];
    let mut take_some = |some: Vec<SeriesRef>| {
        let mut ended = false;
        let mut named = named(db, some, false, &mut |bytes| {
            let flow = hold(bytes);
            ended |= flow.is_break();
            flow
        })?;
        if ended {
            return Ok(ControlFlow::Break(()));
        }
        retain_matching(&mut named, &selectors);
        Ok(take(named, hold))
    };
    for some in more.chunks(PART_SERIES) {
        if take_some(some.to_vec())?.is_break() {
            return Ok(true);
        }
    }
    db.each_of(&set, cancelled, &mut take_some)?;
    Ok(true)
}

/// Whether a series that a sender made looks the same, which has the key that its labels say.
fn looks_the_same(db: &Db, one: &Named, key: &mut SeriesName) -> Result<bool> {
    if key_of(key, &one.labels).is_err() || *key.key() == *one.series.key {
        return Ok(false);
    }
    let other = match db.resolve(key.key()) {
        Err(error) if error.kind() == ErrorKind::NoSuchKey => return Ok(false),
        other => other?,
    };
    let labels = db.labels(&other)?;
    Ok(labels.is_some_and(|labels| shown(&labels, &other.key) == one.labels))
}

/// Makes `name` that of the series of a sender with these labels.
///
/// # Errors
/// Where no series may have them.
pub(crate) fn key_of(name: &mut SeriesName, labels: &Labels) -> std::result::Result<(), NameError> {
    name.begin(labels.metric().as_bytes());
    for (label, value) in labels.bytes() {
        if label != METRIC {
            name.label(label, value);
        }
    }
    name.finish()
}

/// Leaves those that pass one of `selectors` as they are shown: [`select()`]
/// does not look at `__key__`, passes a series by any value of a name that it has
/// twice, and asks the values that a label had before it asks for the series,
/// which may have become more.
pub(crate) fn retain_matching(named: &mut Vec<Named>, selectors: &[Vec<Matcher>]) {
    let selectors: Vec<_> = selectors.iter().map(|one| on_shown(one)).collect();
    named.retain(|one| {
        let passes = |matcher: &Matcher| matcher.passes(one.labels.get_bytes(&matcher.name));
        selectors.iter().any(|matchers| matchers.iter().all(passes))
    });
}

fn sort(named: &mut [Named]) {
    // Mostly sorted already, in the order of keys, of which this sort makes use.
    named.sort_by(|a, b| {
        let by_labels = a.labels.cmp(&b.labels);
        by_labels.then_with(|| a.series.key.cmp(&b.series.key))
    });
}

/// Bytes as they are shown.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return text.into();
    }
    let mut shown = String::with_capacity(bytes.len() + 16);
    for chunk in bytes.utf8_chunks() {
        shown.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown.into()
}

/// Whether bytes that are no UTF-8 may be shown as `shown`, too.
fn is_escaped(shown: &[u8]) -> bool {
    shown.windows(2).any(|pair| pair == b"\\x")
}

/// The same conditions on what is shown: a value that is no UTF-8 stands for how it is shown.
pub(crate) fn on_shown(matchers: &[Matcher]) -> Vec<Matcher> {
    let shown = |value: &[u8]| text(value).into_owned().into_bytes().into();
    let one = |matcher: &Matcher| {
        let mut matcher = matcher.clone();
        if let Test::Equal(value) | Test::NotEqual(value) = &mut matcher.test {
            *value = shown(value);
        }
        matcher
    };
    matchers.iter().map(one).collect()
}
