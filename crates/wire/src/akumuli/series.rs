//! Series lines: `metric|metric... name=value name=value...`.

use super::error::MessageError;

/// A series line, split into metrics and tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Series<'a> {
    /// One metric, or several separated by `|`.
    pub metrics: &'a [u8],
    /// The tags, separated by blanks; not empty.
    pub tags: &'a [u8],
}

impl<'a> Series<'a> {
    /// Splits a series line without its type byte and ending.
    ///
    /// # Errors
    /// `Series` without a metric or a tag, `Event` for the name of an event.
    #[inline]
    pub fn cut(line: &'a [u8]) -> Result<Self, MessageError> {
        let line = line.trim_ascii();
        let end = memchr::memchr(b' ', line).ok_or(MessageError::Series)?;
        let (metrics, tags) = (&line[..end], line[end..].trim_ascii_start());
        if metrics[0] == b'!' {
            return Err(MessageError::Event);
        }
        Ok(Self { metrics, tags })
    }

    /// The metrics, in order.
    #[inline]
    pub fn metrics(&self) -> impl Iterator<Item = &'a [u8]> {
        self.metrics.split(|byte| *byte == b'|')
    }

    /// The number of metrics: at least one.
    #[inline]
    pub fn width(&self) -> usize {
        self.metrics.iter().filter(|byte| **byte == b'|').count() + 1
    }

    /// The tags, in order; `Series` for a word other than `name=value`.
    pub fn tags(&self) -> impl Iterator<Item = Result<(&'a [u8], &'a [u8]), MessageError>> {
        let words = self
            .tags
            .split(|byte| *byte == b' ')
            .filter(|word| !word.is_empty());
        words.map(|word| match memchr::memchr(b'=', word) {
            Some(at) if at > 0 && at + 1 < word.len() => Ok((&word[..at], &word[at + 1..])),
            _ => Err(MessageError::Series),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_and_tags() {
        let series = Series::cut(b"cpu.user|cpu.sys  host=a  path=/x=y ").unwrap();
        assert_eq!(series.width(), 2);
        assert_eq!(
            series.metrics().collect::<Vec<_>>(),
            [b"cpu.user", &b"cpu.sys"[..]]
        );
        let tags: Result<Vec<_>, _> = series.tags().collect();
        let expected = [(&b"host"[..], &b"a"[..]), (b"path", b"/x=y")];
        assert_eq!(tags.unwrap(), expected);
    }

    #[test]
    fn what_is_no_series() {
        for line in ["", "cpu", " cpu ", "  "] {
            assert_eq!(Series::cut(line.as_bytes()), Err(MessageError::Series));
        }
        assert_eq!(Series::cut(b"!boot host=a"), Err(MessageError::Event));
        for line in ["cpu host", "cpu =a", "cpu host="] {
            let series = Series::cut(line.as_bytes()).unwrap();
            assert_eq!(
                series.tags().next(),
                Some(Err(MessageError::Series)),
                "{line}"
            );
        }
    }
}
