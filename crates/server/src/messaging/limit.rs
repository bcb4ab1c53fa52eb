//! `client-output-buffer-limit`: what a subscriber may be owed.
//!
//! The classes `normal` and `replica` are read and checked like Redis does, but
//! hold no limit here: other clients' commands wait once they leave replies
//! unread, and there are no replicas.

use std::fmt;

/// The limit of the class `pubsub`, which subscribers and monitors belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferLimit {
    /// Closed at once above this; 0: never.
    pub(crate) hard_bytes: usize,
    /// Closed after `soft_s` seconds above this; 0: never.
    pub(crate) soft_bytes: usize,
    /// See `soft_bytes`.
    pub(crate) soft_s: u64,
}

impl Default for BufferLimit {
    fn default() -> Self {
        Self {
            hard_bytes: 32 << 20,
            soft_bytes: 8 << 20,
            soft_s: 60,
        }
    }
}

impl fmt::Display for BufferLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hard, soft) = (self.hard_bytes, self.soft_bytes);
        let seconds = self.soft_s;
        write!(f, "normal 0 0 0 slave 0 0 0 pubsub {hard} {soft} {seconds}")
    }
}

impl BufferLimit {
    /// This limit, changed by `class hard soft seconds` once or several times.
    ///
    /// # Errors
    /// The reason why the text is refused.
    pub(crate) fn changed_by(self, text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if words.is_empty() || !words.len().is_multiple_of(4) {
            return Err("Wrong number of arguments in buffer limit configuration.".to_owned());
        }
        let mut changed = self;
        for class in words.chunks(4) {
            let parse = || {
                Some(Self {
                    hard_bytes: memory_bytes(class[1])?,
                    soft_bytes: memory_bytes(class[2])?,
                    soft_s: class[3].parse().ok()?,
                })
            };
            let limit = parse().ok_or(
                "Error in hard, soft or soft_seconds setting in buffer limit configuration.",
            )?;
            match class[0].to_ascii_lowercase().as_str() {
                "pubsub" => changed = limit,
                "normal" | "slave" | "replica"
                    if limit.hard_bytes == 0 && limit.soft_bytes == 0 => {}
                "normal" | "slave" | "replica" => {
                    let class = class[0];
                    return Err(format!(
                        "class {class} does not support limits, must be 0 0 0"
                    ));
                }
                _ => {
                    return Err(
                        "Invalid client class specified in buffer limit configuration.".to_owned(),
                    );
                }
            }
        }
        Ok(changed)
    }
}

/// Bytes as Redis' configuration has them: a number, with a unit if wanted.
fn memory_bytes(text: &str) -> Option<usize> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor: usize = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" => 1000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    number.parse::<usize>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_with_units() {
        let limit = BufferLimit::default();
        assert_eq!(
            limit.to_string(),
            "normal 0 0 0 slave 0 0 0 pubsub 33554432 8388608 60"
        );
        let changed = limit.changed_by("normal 0 0 0 pubsub 10mb 5k 7").unwrap();
        assert_eq!((changed.hard_bytes, changed.soft_bytes), (10 << 20, 5000));
        assert_eq!(changed.soft_s, 7);
        for wrong in [
            "",
            "pubsub 1 1",
            "pubsub 1 1 x",
            "pubsub 1 -1 1",
            "pubsub 99999999999gb 1 1",
            "foo 1 1 1",
            "normal 1 1 1",
        ] {
            assert!(limit.changed_by(wrong).is_err(), "{wrong} was taken");
        }
    }
}
