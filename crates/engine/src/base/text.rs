//! Keys in messages. Pure; tested through the messages.

/// Maximum bytes of a key that a message shows.
const SHOWN_MAX: usize = 64;

/// A key for a message: printable, and cut after a maximum length.
pub fn shown_key(key: &[u8]) -> String {
    let text = key.get(..SHOWN_MAX).unwrap_or(key).escape_ascii();
    let dots = if key.len() > SHOWN_MAX { "..." } else { "" };
    format!("{text}{dots}")
}
