//! The labels of a series: name=value pairs in the order the client gave them.
//!
//! Held as one allocation: every pair is `name length, name, value length,
//! value` with 32-bit little-endian lengths. The same bytes go into the log.
//! Invariant: names and values are not empty and the blob parses to its end.

use crate::limits::{LABEL_BYTES_MAX, LABELS_MAX};
use std::fmt;

/// The labels of most series fit this many bytes.
const USUAL_BYTES: usize = 256;

/// Name=value pairs, at most [`LABELS_MAX`] and [`LABEL_BYTES_MAX`] bytes.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels(Box<[u8]>);

/// Why a set of labels was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// A name or a value has no bytes.
    #[error("a label name or value is empty")]
    Empty,
    /// More pairs than a series may have.
    #[error("more than {LABELS_MAX} labels")]
    TooMany,
    /// More bytes than a series' labels may take.
    #[error("labels take more than {LABEL_BYTES_MAX} bytes")]
    TooLong,
    /// Stored bytes that are not valid labels.
    #[error("stored labels are damaged")]
    Damaged,
}

impl Labels {
    /// Builds labels from pairs, keeping their order.
    ///
    /// # Errors
    /// Refuses empty names or values and anything over the limits.
    pub fn new<'a, I>(pairs: I) -> Result<Self, LabelError>
    where
        I: IntoIterator<Item = (&'a [u8], &'a [u8])>,
    {
        // One growth costs more than all copying.
        let mut bytes = Vec::with_capacity(USUAL_BYTES);
        for (index, (name, value)) in pairs.into_iter().enumerate() {
            if index == LABELS_MAX {
                return Err(LabelError::TooMany);
            }
            for part in [name, value] {
                if part.is_empty() {
                    return Err(LabelError::Empty);
                }
                if bytes.len() + part.len() + 4 > LABEL_BYTES_MAX {
                    return Err(LabelError::TooLong);
                }
                // Bounded by LABEL_BYTES_MAX, so the length fits 32 bits.
                bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
                bytes.extend_from_slice(part);
            }
        }
        Ok(Self(bytes.into_boxed_slice()))
    }

    /// Labels from the bytes of [`Labels::as_bytes`].
    ///
    /// # Errors
    /// [`LabelError::Damaged`] if the bytes are not valid.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LabelError> {
        let mut rest = bytes;
        let mut parts = 0;
        while !rest.is_empty() {
            let part = take_part(&mut rest).ok_or(LabelError::Damaged)?;
            if part.is_empty() {
                return Err(LabelError::Damaged);
            }
            parts += 1;
        }
        if parts % 2 != 0 || parts / 2 > LABELS_MAX || bytes.len() > LABEL_BYTES_MAX {
            return Err(LabelError::Damaged);
        }
        Ok(Self(bytes.into()))
    }

    /// The stored form, for the log.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The pairs in their order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        Self::pairs_in(&self.0)
    }

    /// The pairs in the bytes of [`Labels::as_bytes`], without a copy; stops at
    /// the first damage.
    pub fn pairs_in(mut bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
        std::iter::from_fn(move || Some((take_part(&mut bytes)?, take_part(&mut bytes)?)))
    }

    /// Whether the series has no labels.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of pairs; linear in the bytes.
    pub fn len(&self) -> usize {
        self.iter().count()
    }
}

fn take_part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    if length > after.len() {
        return None;
    }
    let (part, after) = after.split_at(length);
    *rest = after;
    Some(part)
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        f.debug_map()
            .entries(self.iter().map(|(name, value)| (text(name), text(value))))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_keep_their_order_and_round_trip() {
        let pairs: [(&[u8], &[u8]); 2] = [(b"region", b"eu"), (b"app", b"x=y")];
        let labels = Labels::new(pairs).unwrap();
        assert_eq!(labels.iter().collect::<Vec<_>>(), pairs);
        assert_eq!(labels.len(), 2);
        assert_eq!(Labels::from_bytes(labels.as_bytes()).unwrap(), labels);
    }

    #[test]
    fn empty_parts_and_oversize_are_refused() {
        let empty: [(&[u8], &[u8]); 1] = [(b"a", b"")];
        assert_eq!(Labels::new(empty), Err(LabelError::Empty));
        let long = vec![b'x'; LABEL_BYTES_MAX];
        assert_eq!(
            Labels::new([(&b"a"[..], &long[..])]),
            Err(LabelError::TooLong)
        );
        let many = std::iter::repeat_n((&b"a"[..], &b"b"[..]), LABELS_MAX + 1);
        assert_eq!(Labels::new(many), Err(LabelError::TooMany));
    }

    #[test]
    fn damaged_bytes_are_refused_at_every_prefix() {
        let labels = Labels::new([(&b"name"[..], &b"value"[..])]).unwrap();
        for end in 1..labels.as_bytes().len() {
            let cut = &labels.as_bytes()[..end];
            assert_eq!(Labels::from_bytes(cut), Err(LabelError::Damaged));
        }
    }
}
