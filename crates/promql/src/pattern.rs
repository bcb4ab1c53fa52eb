//! Regular expressions of matchers.

use latewood_wire::selector::{Pattern, Patterns};

/// Compiles one, written for Go.
///
/// # Errors
/// The text of the error.
pub(crate) fn compile(text: &[u8]) -> Result<Pattern, String> {
    let Ok(text) = std::str::from_utf8(text) else {
        let shown = String::from_utf8_lossy(text);
        return Err(format!("error parsing regexp: invalid UTF-8: `{shown}`"));
    };
    Patterns::default().compile(text).map_err(|error| format!("error parsing regexp: {error}"))
}
