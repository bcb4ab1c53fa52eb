//! How keys appear in messages. Pure.

/// Bytes of a key that a message shows.
const SHOWN_MAX: usize = 64;

/// A key for a message: what of it can be shown, and not too much of that.
pub fn shown_key(key: &[u8]) -> String {
    let text = key.get(..SHOWN_MAX).unwrap_or(key).escape_ascii();
    let dots = if key.len() > SHOWN_MAX { "..." } else { "" };
    format!("{text}{dots}")
}
