//! The codings of content that a reader accepts.

use axum::http::{HeaderMap, header};

/// What `Accept-Encoding` names.
pub(super) struct Encodings<'a>(Vec<&'a str>);

impl<'a> Encodings<'a> {
    /// The codings that the headers name and do not rule out.
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let lines = headers.get_all(header::ACCEPT_ENCODING).iter();
        let words = lines.filter_map(|line| line.to_str().ok());
        let words = words.flat_map(|line| line.split(','));
        let names = words.filter_map(|word| {
            let (name, weight) = word.split_once(';').unwrap_or((word, ""));
            (!is_zero(weight)).then(|| name.trim())
        });
        Self(names.collect())
    }

    pub(super) fn has(&self, wanted: &str) -> bool {
        let mut names = self.0.iter();
        names.any(|name| name.eq_ignore_ascii_case(wanted))
    }
}

/// Whether a weight such as `q=0.000` says that a coding is not acceptable.
fn is_zero(weight: &str) -> bool {
    let value = weight.trim().strip_prefix(['q', 'Q']);
    let value = value.and_then(|value| value.trim_start().strip_prefix('='));
    value.is_some_and(|value| value.trim().parse() == Ok(0.0))
}
