//! Series that come one after the other, each written as what tells it apart.
//!
//! The series of a fleet differ in little: their options and label names are
//! the same, and key and label values begin as those of the series before. A
//! creation whose options and names are those of the creation before it in the
//! same group holds only the rest, a fifth of the bytes. Every byte of the log
//! is a share of a page to be had from the kernel, so that is most of what a
//! new series' record costs.
//!
//! Tested by `tests/log_group.rs`.

use crate::format::varint::{VARINT_BYTES_MAX, put, take, take_bytes, zigzag};
use crate::log::record::{CONTROL, CONTROL_SHIFT, GroupForm, kind};
use latewood_model::limits::KEY_BYTES_MAX;
use latewood_model::{Labels, MadeBy, SeriesId, SeriesOptions};

/// The largest number of shared and of rest bytes in a head byte. This many rest
/// bytes mean that the number of further ones follows.
const NIBBLE_MAX: usize = 15;
/// What the record needs at most beside key and labels: its tag and three
/// integers, and the slack of whole-word stores.
const FIXED_BYTES_MAX: usize = 1 + 4 * VARINT_BYTES_MAX;

/// The creation before, which the next one may be like.
#[derive(Clone, Debug, Default)]
pub(crate) struct Created {
    id: u64,
    key: Vec<u8>,
    made_by: Option<MadeBy>,
    /// Its options but for the labels, which stand beside.
    options: SeriesOptions,
    labels: Vec<u8>,
}

impl Created {
    pub(crate) fn none() -> Self {
        Self::default()
    }

    /// Forgets the creation, keeping its memory.
    pub(crate) fn clear(&mut self) {
        self.made_by = None;
    }

    /// Remembers a creation.
    pub(crate) fn note(
        &mut self,
        id: SeriesId,
        key: &[u8],
        made_by: MadeBy,
        options: &SeriesOptions,
    ) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.labels.clear();
        self.labels.extend_from_slice(options.labels.as_bytes());
        self.options = without_labels(options);
        self.id = id.0;
        self.made_by = Some(made_by);
    }

    /// Whether a series of this maker with these options can be told by its difference, but
    /// for its label names.
    pub(crate) fn has_options_of(&self, made_by: MadeBy, options: &SeriesOptions) -> bool {
        let bits = |options: &SeriesOptions| options.ignore.max_value_diff.to_bits();
        self.made_by == Some(made_by)
            && self.options.retention_ms == options.retention_ms
            && self.options.chunk_size_bytes == options.chunk_size_bytes
            && self.options.encoding == options.encoding
            && self.options.duplicate_policy == options.duplicate_policy
            && self.options.ignore.max_time_diff_ms == options.ignore.max_time_diff_ms
            && bits(&self.options) == bits(options)
    }

    /// Bytes that [`Created::put`] may write for such a creation.
    pub(crate) fn put_bytes_max(key: &[u8], options: &SeriesOptions) -> usize {
        // A value takes a byte and perhaps an integer more; as stored, names
        // and lengths take more than the one, and a long value than the other.
        FIXED_BYTES_MAX + key.len() + 2 * options.labels.as_bytes().len()
    }

    /// Writes a creation to `out` from `at` on as its difference from this one;
    /// the end of it, or `None` where they differ in more than key and label
    /// values.
    pub(crate) fn put(
        &self,
        out: &mut [u8],
        mut at: usize,
        id: SeriesId,
        key: &[u8],
        options: &SeriesOptions,
    ) -> Option<usize> {
        out[at] = CONTROL | (kind::CREATE_ALIKE << CONTROL_SHIFT);
        at = put(out, at + 1, zigzag(id.0.wrapping_sub(self.id) as i64));
        let shared = shared_bytes(&self.key, key);
        at = put(out, at, shared as u64);
        at = put(out, at, (key.len() - shared) as u64);
        at = put_raw(out, at, &key[shared..]);
        let mut pairs_before = Labels::pairs_in(&self.labels);
        for (name, value) in options.labels.iter() {
            match pairs_before.next() {
                Some((name_before, value_before)) if name_before == name => {
                    at = put_value(out, at, value_before, value);
                }
                _ => return None,
            }
        }
        pairs_before.next().is_none().then_some(at)
    }

    /// Reads a creation that is told by its difference from this one, and
    /// remembers it.
    pub(crate) fn take(
        &mut self,
        bytes: &mut &[u8],
        form: GroupForm,
    ) -> Option<(SeriesId, MadeBy)> {
        let made_by = self.made_by?;
        let id = form.step(self.id, form.take_step(bytes)?)?;
        let shared = usize::try_from(take(bytes)?).ok()?;
        let rest = take_bytes(bytes)?;
        if shared > self.key.len() || shared + rest.len() > KEY_BYTES_MAX {
            return None;
        }
        let mut labels = Vec::with_capacity(self.labels.len());
        for (name, before) in Labels::pairs_in(&self.labels) {
            let (shared, rest) = take_value(bytes, before)?;
            put_part(&mut labels, &[name]);
            put_part(&mut labels, &[shared, rest]);
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(rest);
        self.labels = labels;
        self.id = id;
        Some((SeriesId(id), made_by))
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The options of the creation, where they are within the limits.
    pub(crate) fn options(&self) -> Option<SeriesOptions> {
        Some(SeriesOptions {
            labels: Labels::from_bytes(&self.labels).ok()?,
            ..self.options.clone()
        })
    }
}

fn without_labels(options: &SeriesOptions) -> SeriesOptions {
    SeriesOptions {
        labels: Labels::default(),
        retention_ms: options.retention_ms,
        chunk_size_bytes: options.chunk_size_bytes,
        encoding: options.encoding,
        duplicate_policy: options.duplicate_policy,
        ignore: options.ignore,
    }
}

/// Writes a label's value as its difference from the one before.
fn put_value(out: &mut [u8], at: usize, before: &[u8], value: &[u8]) -> usize {
    let shared = shared_bytes(before, value).min(NIBBLE_MAX);
    let rest = &value[shared..];
    // Both are below 16.
    out[at] = (shared << 4 | rest.len().min(NIBBLE_MAX)) as u8;
    let at = match rest.len().checked_sub(NIBBLE_MAX) {
        None => at + 1,
        Some(more) => put(out, at + 1, more as u64),
    };
    put_raw(out, at, rest)
}

fn put_raw(out: &mut [u8], at: usize, bytes: &[u8]) -> usize {
    out[at..at + bytes.len()].copy_from_slice(bytes);
    at + bytes.len()
}

/// What a value shares with the one before, and its rest.
fn take_value<'a, 'b>(bytes: &mut &'a [u8], before: &'b [u8]) -> Option<(&'b [u8], &'a [u8])> {
    let (&head, rest) = bytes.split_first()?;
    *bytes = rest;
    let shared = before.get(..usize::from(head >> 4))?;
    let length = match usize::from(head) & NIBBLE_MAX {
        NIBBLE_MAX => NIBBLE_MAX.checked_add(usize::try_from(take(bytes)?).ok()?)?,
        length => length,
    };
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some((shared, taken))
}

/// Writes a name or a value as [`Labels`] hold it.
fn put_part(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    let length: usize = pieces.iter().map(|piece| piece.len()).sum();
    // A value too long for the limits is refused with the labels it stands in.
    out.extend_from_slice(&(length as u32).to_le_bytes());
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
}

/// How many bytes two strings begin with alike.
fn shared_bytes(a: &[u8], b: &[u8]) -> usize {
    let ((a_words, _), (b_words, _)) = (a.as_chunks(), b.as_chunks());
    let mut shared = 0;
    for (a, b) in a_words.iter().zip(b_words) {
        let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        if differ != 0 {
            return shared + differ.trailing_zeros() as usize / 8;
        }
        shared += 8;
    }
    let rest = a[shared..].iter().zip(&b[shared..]);
    shared + rest.take_while(|(a, b)| a == b).count()
}
