//! The records of a group that are no samples, but for the coming of a series
//! with a key, which [`crate::log::created`] writes.
//!
//! They are rare beside samples, so they are written part by part, each part
//! reserving the bytes it needs. `record.rs` says what each holds.
//!
//! Invariant: what concerns series of more than one shard, or takes the key of one, makes the group a
//! barrier; but for series that ended, whose keys a replay does not look at. Tested by `tests/log_group.rs`.

use crate::format::rule::RuleSpec;
use crate::format::varint::{VARINT_BYTES_MAX, put, zigzag};
use crate::log::created::Created;
use crate::log::group::GroupBuilder;
use crate::log::record::ended::{Ended, gather};
use crate::log::record::{CONTROL, CONTROL_SHIFT, Cut, EXPIRED, kind};
use latewood_model::{MadeBy, SeriesId, SeriesOptions, Timestamp};

impl GroupBuilder {
    /// Adds the coming of a series.
    pub fn create(&mut self, id: SeriesId, key: &[u8], made_by: MadeBy, options: &SeriesOptions) {
        if !self.put_difference(id, key, made_by, options) {
            self.control(kind::CREATE, id);
            self.put_bytes(key);
            self.put_options(options);
            self.put_raw(&[made_by as u8]);
        }
        self.created.note(id, key, made_by, options);
        self.note_id(id);
    }

    /// Writes a creation as its difference from the one before; whether it could.
    fn put_difference(
        &mut self,
        id: SeriesId,
        key: &[u8],
        made_by: MadeBy,
        options: &SeriesOptions,
    ) -> bool {
        if !self.created.has_options_of(made_by, options) {
            return false;
        }
        self.reserve(Created::put_bytes_max(key, options));
        let end = self
            .created
            .put(&mut self.buffer, self.end, id, key, options);
        self.end = end.unwrap_or(self.end);
        end.is_some()
    }

    /// Adds a series' new options, all of them.
    pub fn alter(&mut self, id: SeriesId, options: &SeriesOptions) {
        self.control(kind::ALTER, id);
        self.put_options(options);
        self.note_id(id);
    }

    /// Adds that the record behind this one removed what had expired before `before`, if
    /// it had to.
    pub fn expired(&mut self, id: SeriesId, before: Option<Timestamp>) {
        if let Some(before) = before {
            self.delete_range(id, before, EXPIRED);
        }
    }

    /// Adds the deletion of the samples from `from` to `to`, both included.
    pub fn delete_range(&mut self, id: SeriesId, from: Timestamp, to: Timestamp) {
        self.control(kind::DELETE_RANGE, id);
        self.put_varint(zigzag(from));
        self.put_varint(zigzag(to));
        self.note_id(id);
    }

    /// Adds the deletion of a series; the group becomes a barrier.
    pub fn delete_series(&mut self, id: SeriesId) {
        self.control(kind::DELETE_SERIES, id);
        self.note_id(id);
        self.barrier = true;
    }

    /// Adds that series ended, which nobody removed: retention took their samples. The ids are of one
    /// shard and ascend. The group becomes no barrier: whoever takes a key anew says so behind it, and
    /// no living source writes to a series that ends.
    pub fn end_series(&mut self, ids: &[SeriesId]) {
        let (mut bits, mut rest) = (Vec::new(), ids);
        while let Some(&first) = rest.first() {
            let stride_log2 = self.stride_log2;
            let count = gather(rest, stride_log2, &mut bits);
            self.ended(&Ended {
                first,
                stride_log2,
                bits: &bits,
            });
            rest = &rest[count..];
        }
    }

    /// The same as one record.
    pub fn ended(&mut self, ended: &Ended<'_>) {
        self.tag(kind::ENDED, ended.first);
        self.put_varint(u64::from(ended.stride_log2));
        self.put_bytes(ended.bits);
        ended.ids().for_each(|id| self.note_id(id));
    }

    /// Adds a series' new key; the group becomes a barrier.
    pub fn rename(&mut self, id: SeriesId, key: &[u8]) {
        self.control(kind::RENAME, id);
        self.put_bytes(key);
        self.note_id(id);
        self.barrier = true;
    }

    /// Adds a series' new expiry time, milliseconds since the Unix epoch and
    /// above 0; `None` takes it away.
    pub fn expire(&mut self, id: SeriesId, at_ms: Option<i64>) {
        self.control(kind::EXPIRE, id);
        self.put_varint(at_ms.map_or(0, i64::unsigned_abs));
        self.note_id(id);
    }

    /// Adds a compaction rule; the group becomes a barrier.
    pub fn create_rule(&mut self, id: SeriesId, destination: SeriesId, spec: RuleSpec) {
        self.control(kind::CREATE_RULE, id);
        self.put_varint(destination.0);
        self.put_varint(spec.aggregator as u64);
        self.put_varint(zigzag(spec.bucket_ms));
        self.put_varint(zigzag(spec.align));
        self.note_id(id);
        self.barrier = true;
    }

    /// Adds the end of a compaction rule; the group becomes a barrier.
    pub fn delete_rule(&mut self, id: SeriesId, destination: SeriesId) {
        self.control(kind::DELETE_RULE, id);
        self.put_varint(destination.0);
        self.note_id(id);
        self.barrier = true;
    }

    /// Adds that the dirty buckets of a source are being recomputed.
    pub fn rule_take(&mut self, id: SeriesId, all: bool) {
        self.control(kind::RULE_TAKE, id);
        self.put_varint(u64::from(all));
        self.note_id(id);
    }

    /// Adds that they have been.
    pub fn rule_done(&mut self, id: SeriesId) {
        self.control(kind::RULE_DONE, id);
        self.note_id(id);
    }

    /// Adds a span of buckets that could not be read for the rule of a source
    /// and a destination; behind [`Self::rule_done`] or [`Self::rule_filled`].
    pub fn rule_left(
        &mut self,
        id: SeriesId,
        destination: SeriesId,
        first: Timestamp,
        last: Timestamp,
    ) {
        self.rule_span(kind::RULE_LEFT, id, destination, (first, last));
    }

    /// Adds that a rule is to be computed over the history of its source, which begins at `first`
    /// or later and ends at `newest`; behind [`Self::create_rule`].
    pub fn rule_history(
        &mut self,
        id: SeriesId,
        destination: SeriesId,
        first: Timestamp,
        newest: Timestamp,
    ) {
        self.rule_span(kind::RULE_HISTORY, id, destination, (first, newest));
    }

    /// Adds that the buckets of a part of that history have been computed.
    pub fn rule_filled(
        &mut self,
        id: SeriesId,
        destination: SeriesId,
        first: Timestamp,
        last: Timestamp,
    ) {
        self.rule_span(kind::RULE_FILLED, id, destination, (first, last));
    }

    fn rule_span(
        &mut self,
        kind: u8,
        id: SeriesId,
        destination: SeriesId,
        (from, to): (Timestamp, Timestamp),
    ) {
        self.control(kind, id);
        self.put_varint(destination.0);
        self.put_varint(zigzag(from));
        self.put_varint(zigzag(to));
        self.note_id(id);
    }

    /// Adds the coming of a series that has no key yet.
    pub fn build(&mut self, id: SeriesId, options: &SeriesOptions) {
        self.control(kind::BUILD, id);
        self.put_options(options);
        self.note_id(id);
    }

    /// Adds that series were frozen for a flush. The log is not needed for it, so no partition owes
    /// it.
    pub fn cut(&mut self, cut: Cut) {
        let at = self.end;
        self.tag(kind::CUT, cut.first);
        self.put_varint(cut.flush);
        self.put_varint(u64::from(cut.stride_log2));
        self.put_varint(cut.count);
        self.note_alike(cut.first);
        self.cut = Some((at, self.end, cut));
    }

    /// The same. If the newest record says so of those just before them, it grows instead: nobody
    /// wrote to the shard between the two.
    pub(crate) fn join_cut(&mut self, mut cut: Cut) {
        if let Some((at, end, before)) = self.cut
            && end == self.end
            && before.flush == cut.flush
            && before.count > 0
            && before.stride_log2 == cut.stride_log2
            && before.end() == cut.first.0
        {
            self.end = at;
            cut.first = before.first;
            cut.count += before.count;
        }
        self.cut(cut);
    }

    /// Adds the deletion of everything; the group becomes a barrier.
    pub fn flush_all(&mut self) {
        self.tag_of_all(kind::FLUSH_ALL);
    }

    /// Adds that no sample before `floor`, in milliseconds and above 0, is kept; the group becomes a
    /// barrier, since it is about all series.
    pub fn floor(&mut self, floor: Timestamp) {
        self.tag_of_all(kind::FLOOR);
        self.put_varint(floor.unsigned_abs());
    }

    /// Adds that a reader uses samples up to `at`, in milliseconds; the group becomes a barrier,
    /// since it is about all series.
    pub fn horizon(&mut self, reader: u64, at: Timestamp) {
        self.tag_of_all(kind::HORIZON);
        self.put_varint(reader);
        self.put_varint(zigzag(at));
    }

    /// Adds that what follows from changes up to the group at `position` is written for a reader;
    /// the group becomes a barrier.
    pub fn done(&mut self, reader: u64, position: u64) {
        self.tag_of_all(kind::DONE);
        self.put_varint(reader);
        self.put_varint(position);
    }

    /// Adds that steps of a reader are to be computed again, those at `from..=to` in milliseconds; the
    /// group becomes a barrier.
    pub fn steps(&mut self, reader: u64, from: Timestamp, to: Timestamp) {
        self.tag_of_all(kind::STEPS);
        self.put_varint(reader);
        self.put_varint(zigzag(from));
        self.put_varint(zigzag(to));
    }

    /// Adds that steps of a reader before `at`, in milliseconds, are not to be touched; the group
    /// becomes a barrier.
    pub fn since(&mut self, reader: u64, at: Timestamp) {
        self.tag_of_all(kind::SINCE);
        self.put_varint(reader);
        self.put_varint(zigzag(at));
    }

    /// Adds all that is known of a reader; the group becomes a barrier.
    pub fn pending(&mut self, reader: u64, state: &[u8]) {
        self.tag_of_all(kind::PENDING);
        self.put_varint(reader);
        self.put_bytes(state);
    }

    /// The tag of a record that is about all series.
    fn tag_of_all(&mut self, kind: u8) {
        self.put_raw(&[CONTROL | (kind << CONTROL_SHIFT)]);
        self.barrier = true;
    }

    /// The tag of a record and the series it is about.
    pub(crate) fn control(&mut self, kind: u8, id: SeriesId) {
        self.tag(kind, id);
        if !matches!(kind, kind::CREATE | kind::BUILD | kind::DELETE_SERIES) {
            self.changed.push(id);
        }
    }

    fn tag(&mut self, kind: u8, id: SeriesId) {
        self.reserve(1);
        self.buffer[self.end] = CONTROL | (kind << CONTROL_SHIFT);
        self.end += 1;
        self.put_varint(id.0);
    }

    fn put_varint(&mut self, value: u64) {
        self.reserve(VARINT_BYTES_MAX);
        self.end = put(&mut self.buffer, self.end, value);
    }

    fn put_raw(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        self.buffer[self.end..self.end + bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    pub(crate) fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_varint(bytes.len() as u64);
        self.put_raw(bytes);
    }

    pub(crate) fn put_options(&mut self, options: &SeriesOptions) {
        self.put_varint(options.retention_ms);
        self.put_varint(u64::from(options.chunk_size_bytes));
        let policy = options
            .duplicate_policy
            .map_or(0, |policy| policy as u8 + 1);
        self.put_raw(&[options.encoding as u8, policy]);
        self.put_varint(options.ignore.max_time_diff_ms);
        self.put_raw(&options.ignore.max_value_diff.to_le_bytes());
        self.put_bytes(options.labels.as_bytes());
    }
}
