//! The encoding of rows of a series file: each row is encoded by its differences
//! from the row before.
//!
//! Series of one partition were created about the same time and are similar: their
//! keys have common prefixes, their labels have the same names and often the same
//! values, their options are the same. A repetition takes one byte, so that a row
//! takes a few dozen bytes even before compression. The bytes are described in
//! `docs/format/series.md`. Tested with the files that hold them
//! ([`crate::storage::files::series_file`]).

use crate::base::window::Bucket;
use crate::format::expired_buckets::ExpiredBuckets;
use crate::format::rule::RuleSpec;
use crate::storage::files::bytes::{Put, Take};
use crate::storage::files::late_tally::LateTally;
use crate::storage::files::row::{DirtyRow, RuleRow, SeriesRow, SourceRow};
use latewood_model::limits::KEY_BYTES_MAX;
use latewood_model::{
    Aggregator, DuplicatePolicy, Encoding, Ignore, Labels, MadeBy, SeriesId, SeriesOptions,
    Timestamp,
};

/// Flags of a row, one bit each.
mod flag {
    pub(crate) const UNNAMED: u8 = 1;
    pub(crate) const SAME_OPTIONS: u8 = 1 << 1;
    pub(crate) const NEWEST: u8 = 1 << 2;
    pub(crate) const LAST_VALUE: u8 = 1 << 3;
    pub(crate) const FLUSHED: u8 = 1 << 4;
    pub(crate) const HOLDS_NAN: u8 = 1 << 5;
    pub(crate) const EXPIRES: u8 = 1 << 6;
    /// A source of rules; in a file of parked series also a destination.
    pub(crate) const LINKED: u8 = 1 << 7;
}

/// In the byte of the maker: samples came late.
const LATE: u8 = 1 << 7;

/// What rules a linked row has, in a file of parked series.
mod link_flag {
    pub(crate) const DESTINATION: u8 = 1;
    pub(crate) const SOURCE: u8 = 1 << 1;
    pub(crate) const ALL: u8 = DESTINATION | SOURCE;
}

/// Flags of a rule.
mod rule_flag {
    pub(crate) const OPEN: u8 = 1;
    pub(crate) const EXPIRED: u8 = 1 << 1;
    pub(crate) const FAILED: u8 = 1 << 2;
    pub(crate) const BACKFILL: u8 = 1 << 3;
    pub(crate) const ALL: u8 = OPEN | EXPIRED | FAILED | BACKFILL;
}

/// The first version whose rows name the source of the rule that writes to the series.
const VERSION_LINKS: u16 = 4;

/// The policy byte of a series without one of its own.
const NO_POLICY: u8 = u8::MAX;

/// The previous row, which the next row refers to. Each section starts anew.
#[derive(Default)]
pub(crate) struct Before {
    id: Option<SeriesId>,
    key: Vec<u8>,
    /// Without labels.
    options: SeriesOptions,
    /// As [`Labels::as_bytes`] has them.
    labels: Vec<u8>,
    position: u64,
    newest: Timestamp,
    scratch: Vec<u8>,
}

/// What a row says beside what [`Before`] keeps of it.
pub(crate) struct Own {
    unnamed: bool,
    made_by: MadeBy,
    newest: Option<Timestamp>,
    last_value: Option<f64>,
    flushed_last: Option<Timestamp>,
    holds_nan: bool,
    late: LateTally,
    expires_at_ms: Option<i64>,
    source: Option<Box<SourceRow>>,
    link: Option<SeriesId>,
}

impl Before {
    /// Writes the next row of a file of this version.
    pub(crate) fn put(&mut self, out: &mut Put, row: &SeriesRow, version: u16) {
        let plain = SeriesOptions {
            labels: Labels::default(),
            ..row.options
        };
        let same_options = plain == self.options;
        let link = row.link.filter(|_| version >= VERSION_LINKS);
        let is_linked = row.source.is_some() || link.is_some();
        let bits = [
            (row.unnamed, flag::UNNAMED),
            (same_options, flag::SAME_OPTIONS),
            (row.newest.is_some(), flag::NEWEST),
            (row.last_value.is_some(), flag::LAST_VALUE),
            (row.flushed_last.is_some(), flag::FLUSHED),
            (row.holds_nan, flag::HOLDS_NAN),
            (row.expires_at_ms.is_some(), flag::EXPIRES),
            (is_linked, flag::LINKED),
        ];
        out.byte(
            bits.iter()
                .fold(0, |byte, &(set, bit)| if set { byte | bit } else { byte }),
        );
        let late = u8::from(!row.late.is_none()) * LATE;
        out.byte(row.made_by as u8 | late);
        out.number(row.id.0 - self.id.map_or(0, |before| before.0));
        let shared = shared_bytes(&self.key, &row.key);
        out.number(shared as u64);
        out.string(&row.key[shared..]);
        if !same_options {
            put_options(out, &plain);
        }
        self.put_labels(out, &row.options.labels);
        out.signed(row.position.wrapping_sub(self.position) as i64);
        self.put_times(out, row);
        if is_linked && version >= VERSION_LINKS {
            let source = u8::from(row.source.is_some()) * link_flag::SOURCE;
            let destination = u8::from(link.is_some()) * link_flag::DESTINATION;
            out.byte(source | destination);
        }
        if let Some(link) = link {
            out.number(link.0);
        }
        if let Some(source) = &row.source {
            put_source(out, source);
        }
        self.note(row, plain);
    }

    fn put_times(&mut self, out: &mut Put, row: &SeriesRow) {
        let newest = row.newest.unwrap_or(self.newest);
        if row.newest.is_some() {
            out.step(self.newest, newest);
        }
        if let Some(value) = row.last_value {
            out.value(value);
        }
        if let Some(flushed_last) = row.flushed_last {
            out.step(flushed_last, newest);
        }
        if let Some(at_ms) = row.expires_at_ms {
            out.signed(at_ms);
        }
        row.late.put(out);
    }

    fn put_labels(&self, out: &mut Put, labels: &Labels) {
        out.number(labels.len() as u64);
        let mut before = Labels::pairs_in(&self.labels);
        for (name, value) in labels.iter() {
            let (old_name, old_value) = before.next().unwrap_or_default();
            // No part is empty: a length of 0 means "as before".
            for (part, old) in [(name, old_name), (value, old_value)] {
                out.string(if part == old { &[] } else { part });
            }
        }
    }

    /// Reads the next row of a file of this version; `None` if it is damaged.
    pub(crate) fn take(&mut self, bytes: &mut Take<'_>, version: u16) -> Option<SeriesRow> {
        let own = self.step(bytes, version)?;
        self.row(own)
    }

    /// Goes to the next row, without making one of it: see [`Before::row`]. `None` if it is damaged;
    /// labels that are none are found when a row is made.
    pub(crate) fn step(&mut self, bytes: &mut Take<'_>, version: u16) -> Option<Own> {
        let bits = bytes.byte()?;
        let has = |bit: u8| bits & bit != 0;
        let maker = match version {
            // It does not say.
            1 => MadeBy::Create as u8,
            _ => bytes.byte()?,
        };
        let made_by = MadeBy::from_number(maker & !LATE)?;
        let step = bytes.number()?;
        let id = match self.id {
            Some(before) => before.0.checked_add(step).filter(|_| step > 0)?,
            None => step,
        };
        self.id = Some(SeriesId::new(id)?);
        let shared = usize::try_from(bytes.number()?).ok()?;
        let rest = bytes.string()?;
        if shared > self.key.len() || shared + rest.len() > KEY_BYTES_MAX {
            return None;
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(rest);
        if !has(flag::SAME_OPTIONS) {
            self.options = take_options(bytes)?;
        }
        self.take_labels(bytes)?;
        self.position = self.position.wrapping_add(bytes.signed()? as u64);
        let mut own = Own {
            unnamed: has(flag::UNNAMED),
            made_by,
            newest: None,
            last_value: None,
            flushed_last: None,
            holds_nan: has(flag::HOLDS_NAN),
            late: LateTally::default(),
            expires_at_ms: None,
            source: None,
            link: None,
        };
        if has(flag::NEWEST) {
            self.newest = bytes.step(self.newest)?;
            own.newest = Some(self.newest);
        }
        if has(flag::LAST_VALUE) {
            own.last_value = Some(bytes.value()?);
        }
        if has(flag::FLUSHED) {
            own.flushed_last = Some(self.newest.wrapping_sub(bytes.signed()?));
        }
        if has(flag::EXPIRES) {
            own.expires_at_ms = Some(bytes.signed().filter(|&at_ms| at_ms > 0)?);
        }
        if maker & LATE != 0 {
            own.late = LateTally::take(bytes)?;
        }
        if has(flag::LINKED) {
            (own.link, own.source) = take_ends(bytes, version)?;
        }
        Some(own)
    }

    /// The row that [`Before::step`] went to; `None` if it is damaged.
    pub(crate) fn row(&self, own: Own) -> Option<SeriesRow> {
        Some(SeriesRow {
            id: self.id?,
            key: self.key.as_slice().into(),
            unnamed: own.unnamed,
            made_by: own.made_by,
            options: SeriesOptions {
                labels: Labels::from_bytes(&self.labels).ok()?,
                ..self.options.clone()
            },
            position: self.position,
            newest: own.newest,
            last_value: own.last_value,
            flushed_last: own.flushed_last,
            holds_nan: own.holds_nan,
            late: own.late,
            expires_at_ms: own.expires_at_ms,
            source: own.source,
            link: own.link,
        })
    }

    /// Whether the row that [`Before::step`] went to is that of a series, and in a log up to `position`.
    pub(crate) fn is_at(&self, id: SeriesId, position: u64) -> bool {
        self.id == Some(id) && self.position <= position
    }

    fn take_labels(&mut self, bytes: &mut Take<'_>) -> Option<()> {
        let labels = std::mem::take(&mut self.labels);
        let mut before = Labels::pairs_in(&labels);
        self.scratch.clear();
        for _ in 0..bytes.count()? {
            let (old_name, old_value) = before.next().unwrap_or_default();
            for old in [old_name, old_value] {
                let part = bytes.string()?;
                let part = if part.is_empty() { old } else { part };
                // A section cannot hold more than 32 bits of length.
                let len = u32::try_from(part.len()).ok()?;
                self.scratch.extend_from_slice(&len.to_le_bytes());
                self.scratch.extend_from_slice(part);
            }
        }
        drop(before);
        self.labels = std::mem::replace(&mut self.scratch, labels);
        Some(())
    }

    fn note(&mut self, row: &SeriesRow, plain: SeriesOptions) {
        self.id = Some(row.id);
        self.key.clear();
        self.key.extend_from_slice(&row.key);
        self.options = plain;
        self.labels.clear();
        self.labels.extend_from_slice(row.options.labels.as_bytes());
        self.position = row.position;
        self.newest = row.newest.unwrap_or(self.newest);
    }
}

/// How many bytes both begin with.
pub(super) fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

fn put_options(out: &mut Put, options: &SeriesOptions) {
    out.number(options.retention_ms);
    out.number(u64::from(options.chunk_size_bytes));
    out.byte(options.encoding as u8);
    let policy = options.duplicate_policy;
    out.byte(policy.map_or(NO_POLICY, |policy| policy as u8));
    out.number(options.ignore.max_time_diff_ms);
    out.value(options.ignore.max_value_diff);
}

fn take_options(bytes: &mut Take<'_>) -> Option<SeriesOptions> {
    let options = SeriesOptions {
        retention_ms: bytes.number()?,
        chunk_size_bytes: u32::try_from(bytes.number()?).ok()?,
        encoding: match bytes.byte()? {
            0 => Encoding::Compressed,
            1 => Encoding::Uncompressed,
            _ => return None,
        },
        duplicate_policy: match bytes.byte()? {
            NO_POLICY => None,
            number => Some(DuplicatePolicy::from_number(number)?),
        },
        ignore: Ignore {
            max_time_diff_ms: bytes.number()?,
            max_value_diff: bytes.value()?,
        },
        labels: Labels::default(),
    };
    options.check().is_ok().then_some(options)
}

/// Reads the source of the rule that writes to a linked row, and its own rules.
fn take_ends(
    bytes: &mut Take<'_>,
    version: u16,
) -> Option<(Option<SeriesId>, Option<Box<SourceRow>>)> {
    let ends = match version {
        VERSION_LINKS.. => bytes.byte()?,
        _ => link_flag::SOURCE,
    };
    if ends == 0 || ends & !link_flag::ALL != 0 {
        return None;
    }
    let link = match ends & link_flag::DESTINATION {
        0 => None,
        _ => Some(SeriesId::new(bytes.number()?)?),
    };
    let source = match ends & link_flag::SOURCE {
        0 => None,
        _ => Some(Box::new(take_source(bytes)?)),
    };
    Some((link, source))
}

fn put_source(out: &mut Put, source: &SourceRow) {
    out.signed(source.lost_to);
    out.number(source.kept);
    for dirty in [&source.prompt, &source.late, &source.in_flight] {
        dirty.put(out);
    }
    out.number(source.rules.len() as u64);
    for rule in &source.rules {
        out.number(rule.destination.0);
        out.byte(rule.spec.aggregator as u8);
        out.signed(rule.spec.bucket_ms);
        out.signed(rule.spec.align);
        out.signed(rule.since);
        let open = u8::from(rule.open.is_some()) * rule_flag::OPEN;
        let expired = u8::from(rule.expired.is_some()) * rule_flag::EXPIRED;
        let failed = u8::from(!rule.failed.is_empty()) * rule_flag::FAILED;
        let backfill = u8::from(!rule.backfill.is_empty()) * rule_flag::BACKFILL;
        out.byte(open | expired | failed | backfill);
        if let Some(open) = rule.open {
            put_bucket(out, 0, open);
        }
        rule.own.put(out);
        rule.own_in_flight.put(out);
        if let Some(expired) = &rule.expired {
            put_spans(out, &expired.touched);
            put_spans(out, &expired.lost);
        }
        if !rule.failed.is_empty() {
            put_spans(out, &rule.failed);
        }
        if !rule.backfill.is_empty() {
            put_spans(out, &rule.backfill);
        }
    }
}

fn put_bucket(out: &mut Put, before: Timestamp, bucket: Bucket) {
    out.step(before, bucket.first);
    out.step(bucket.first, bucket.last);
}

fn take_bucket(bytes: &mut Take<'_>, before: Timestamp) -> Option<Bucket> {
    let first = bytes.step(before)?;
    let last = bytes.step(first).filter(|&last| last >= first)?;
    Some(Bucket { first, last })
}

fn put_spans(out: &mut Put, spans: &[Bucket]) {
    out.number(spans.len() as u64);
    let mut before = 0;
    for &span in spans {
        put_bucket(out, before, span);
        before = span.last;
    }
}

/// Spans that ascend without meeting.
fn take_spans(bytes: &mut Take<'_>) -> Option<Vec<Bucket>> {
    let mut spans: Vec<Bucket> = Vec::new();
    for _ in 0..bytes.count()? {
        let before = spans.last().map(|span| span.last);
        let span = take_bucket(bytes, before.unwrap_or(0))?;
        spans.push(Some(span).filter(|span| before.is_none_or(|last| span.first > last))?);
    }
    Some(spans)
}

fn take_source(bytes: &mut Take<'_>) -> Option<SourceRow> {
    let mut source = SourceRow {
        lost_to: bytes.signed()?,
        kept: bytes.number()?,
        prompt: DirtyRow::take(bytes)?,
        late: DirtyRow::take(bytes)?,
        in_flight: DirtyRow::take(bytes)?,
        rules: Vec::new(),
    };
    for _ in 0..bytes.count()? {
        source.rules.push(take_rule(bytes)?);
    }
    Some(source)
}

fn take_rule(bytes: &mut Take<'_>) -> Option<RuleRow> {
    let mut rule = RuleRow {
        destination: SeriesId::new(bytes.number()?)?,
        spec: RuleSpec {
            aggregator: Aggregator::from_number(bytes.byte()?)?,
            bucket_ms: bytes.signed().filter(|&width| width > 0)?,
            align: bytes.signed()?,
        },
        since: bytes.signed()?,
        open: None,
        own: DirtyRow::default(),
        own_in_flight: DirtyRow::default(),
        expired: None,
        failed: Vec::new(),
        backfill: Vec::new(),
    };
    let bits = bytes.byte()?;
    if bits & !rule_flag::ALL != 0 {
        return None;
    }
    if bits & rule_flag::OPEN != 0 {
        rule.open = Some(take_bucket(bytes, 0)?);
    }
    rule.own = DirtyRow::take(bytes)?;
    rule.own_in_flight = DirtyRow::take(bytes)?;
    if bits & rule_flag::EXPIRED != 0 {
        rule.expired = Some(ExpiredBuckets {
            touched: take_spans(bytes)?,
            lost: take_spans(bytes)?,
        });
    }
    if bits & rule_flag::FAILED != 0 {
        rule.failed = take_spans(bytes).filter(|spans| !spans.is_empty())?;
    }
    if bits & rule_flag::BACKFILL != 0 {
        rule.backfill = take_spans(bytes).filter(|spans| !spans.is_empty())?;
    }
    Some(rule)
}
