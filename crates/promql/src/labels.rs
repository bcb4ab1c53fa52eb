//! Labels of series in results: sorted by name, each name once, no empty value.
//!
//! Held as one shared allocation: every pair is `name length, name, value length, value` with
//! 32-bit little-endian lengths, so a clone costs a counter and equality is that of bytes.

use crate::quote::quoted;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The label of the metric's name.
pub const METRIC: &str = "__name__";
/// Labels that describe the metric and go with its name.
pub const METADATA: [&str; 3] = [METRIC, "__type__", "__unit__"];

/// A set of labels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Labels(Arc<[u8]>);

impl Default for Labels {
    fn default() -> Self {
        Self(Arc::from([]))
    }
}

impl Labels {
    /// Of pairs in ascending order of names; empty values are left out.
    pub fn from_sorted<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut bytes = Vec::with_capacity(128);
        for (name, value) in pairs {
            if !value.is_empty() {
                for part in [name, value] {
                    // Labels of a series are far below 4 GiB.
                    bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
                    bytes.extend_from_slice(part.as_bytes());
                }
            }
        }
        Self(bytes.into())
    }

    /// Of pairs in any order; of a name that is there twice, the last value counts.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut pairs: Vec<_> = pairs.into_iter().collect();
        // Stable, so that the last of a name stays the last.
        pairs.sort_by(|a, b| a.0.cmp(b.0));
        let mut kept: Vec<(&str, &str)> = Vec::with_capacity(pairs.len());
        for pair in pairs {
            match kept.last_mut() {
                Some(last) if last.0 == pair.0 => *last = pair,
                _ => kept.push(pair),
            }
        }
        Self::from_sorted(kept)
    }

    /// Of bytes in the form in which they are held, if they are that: names ascending and each
    /// once, no empty value, text in UTF-8.
    pub fn from_packed(bytes: &[u8]) -> Option<Self> {
        let mut last: &[u8] = &[];
        let mut rest = bytes;
        // Most are, and so are their lengths: all is looked at together.
        let is_ascii = bytes.is_ascii();
        while !rest.is_empty() {
            let (name, value);
            (name, rest) = part(rest)?;
            (value, rest) = part(rest)?;
            let is_text =
                is_ascii || std::str::from_utf8(name).is_ok() && std::str::from_utf8(value).is_ok();
            if name <= last || value.is_empty() || !is_text {
                return None;
            }
            last = name;
        }
        Some(Self(bytes.into()))
    }

    /// Names and values, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        // Only made of text, by the constructors.
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        let pairs = self.bytes();
        pairs.map(move |(name, value)| (text(name), text(value)))
    }

    /// The same as bytes.
    pub fn bytes(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut rest: &[u8] = &self.0;
        std::iter::from_fn(move || {
            let (name, value);
            (name, rest) = part(rest)?;
            (value, rest) = part(rest)?;
            Some((name, value))
        })
    }

    /// The value of a label; empty where there is none.
    pub fn get(&self, name: &str) -> &str {
        std::str::from_utf8(self.get_bytes(name.as_bytes())).unwrap_or_default()
    }

    /// The same as bytes.
    pub fn get_bytes(&self, name: &[u8]) -> &[u8] {
        let mut pairs = self.bytes();
        let found = pairs.find(|(held, _)| *held == name);
        found.map_or(b"", |(_, value)| value)
    }

    /// The name of the metric; empty where there is none.
    pub fn metric(&self) -> &str {
        self.get(METRIC)
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same without the labels that `drops` names.
    pub fn without(&self, drops: impl Fn(&[u8]) -> bool) -> Self {
        let mut bytes = Vec::with_capacity(self.0.len());
        self.put_without(drops, &mut bytes);
        Self(bytes.into())
    }

    /// Appends the packed bytes of the same.
    pub(crate) fn put_without(&self, drops: impl Fn(&[u8]) -> bool, out: &mut Vec<u8>) {
        let mut rest: &[u8] = &self.0;
        while let Some((name, behind)) = part(rest)
            && let Some((_, behind)) = part(behind)
        {
            if !drops(name) {
                out.extend_from_slice(&rest[..rest.len() - behind.len()]);
            }
            rest = behind;
        }
    }

    /// The same with one label set; an empty value removes it.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let before = self.iter().filter(|(held, _)| *held != name);
        Self::from_pairs(before.chain([(name, value)]))
    }

    /// The same without the metric's name, type and unit.
    pub fn without_metric(&self) -> Self {
        if self.bytes().any(|(name, _)| is_metadata(name)) {
            self.without(is_metadata)
        } else {
            self.clone()
        }
    }

    /// The packed bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Bytes of memory beside its own place.
    pub fn len_bytes(&self) -> usize {
        self.0.len()
    }

    /// The same with the counters of the allocation; 0 while another clone shares it.
    pub(crate) fn own_bytes(&self) -> usize {
        match Arc::strong_count(&self.0) {
            1 => 2 * size_of::<usize>() + self.0.len(),
            _ => 0,
        }
    }
}

/// How many bytes both begin with, rounded down to whole words.
fn shared_len(a: &[u8], b: &[u8]) -> usize {
    let (a, b) = (a.as_chunks::<16>().0, b.as_chunks::<16>().0);
    16 * a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Whether a label is one of [`METADATA`].
pub(crate) fn is_metadata(name: &[u8]) -> bool {
    name.starts_with(b"__") && METADATA.iter().any(|one| one.as_bytes() == name)
}

/// The part at the start of packed bytes and what follows it.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

impl fmt::Display for Labels {
    /// As in errors: `{__name__="up", job="a"}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (at, (name, value)) in self.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            let first = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
            let is_plain = name
                .bytes()
                .all(|byte| first(byte) || byte.is_ascii_digit())
                && name.bytes().next().is_some_and(first);
            if is_plain {
                write!(f, "{name}={}", quoted(value))?
            } else {
                write!(f, "{}={}", quoted(name), quoted(value))?
            }
        }
        f.write_str("}")
    }
}

impl Ord for Labels {
    /// Label by label, as Prometheus orders series. Most neighbours begin alike: what is the same is
    /// skipped by its bytes, and only the first part that differs is compared as a text.
    fn cmp(&self, other: &Self) -> Ordering {
        let same = shared_len(&self.0, &other.0);
        let (mut own, mut others): (&[u8], &[u8]) = (&self.0, &other.0);
        loop {
            let (Some((left, own_rest)), Some((right, others_rest))) = (part(own), part(others))
            else {
                return own.len().cmp(&others.len());
            };
            // A part that ends within them is one of both.
            if self.0.len() - own_rest.len() > same {
                match left.cmp(right) {
                    Ordering::Equal => {}
                    differs => return differs,
                }
            }
            (own, others) = (own_rest, others_rest);
        }
    }
}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_sorted_once_and_not_empty() {
        let labels = Labels::from_pairs([("b", "2"), ("a", "0"), ("c", ""), ("a", "1")]);
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
        assert_eq!((labels.get("b"), labels.get("c")), ("2", ""));
        assert_eq!(labels.with("a", "").iter().count(), 1);
        assert_eq!(labels.with("a", "1"), labels);
    }

    #[test]
    fn order_is_that_of_labels() {
        let of = |pairs: &[(&str, &str)]| Labels::from_pairs(pairs.iter().copied());
        assert!(of(&[("a", "1")]) < of(&[("a", "1"), ("b", "1")]));
        assert!(of(&[("a", "2")]) > of(&[("a", "10"), ("b", "1")]));
        assert!(of(&[("ab", "1")]) > of(&[("a", "9")]));
    }

    proptest::proptest! {
        #[test]
        fn the_order_is_that_of_pairs(
            a in proptest::collection::btree_map("[a-c]{1,3}", "[a-c]{1,20}", 0..5),
            b in proptest::collection::btree_map("[a-c]{1,3}", "[a-c]{1,20}", 0..5),
            is_shared in proptest::bool::ANY,
        ) {
            let pairs = |map: &std::collections::BTreeMap<String, String>| {
                let shared = ("aaaa".to_owned(), "a value that both of them have".to_owned());
                let own = map.clone().into_iter();
                own.chain(is_shared.then_some(shared)).collect::<std::collections::BTreeMap<_, _>>()
            };
            let (a, b) = (pairs(&a), pairs(&b));
            let of = |map: &std::collections::BTreeMap<String, String>| {
                Labels::from_pairs(map.iter().map(|(name, value)| (&**name, &**value)))
            };
            let expected = a.iter().cmp(b.iter());
            proptest::prop_assert_eq!(of(&a).cmp(&of(&b)), expected);
            proptest::prop_assert_eq!(of(&a).cmp(&of(&a.clone())), Ordering::Equal);
        }
    }
}
