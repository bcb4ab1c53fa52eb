//! What the TOML reader says, without the names of types.

/// What it expects, and how a person calls that.
const KINDS: [(&str, &str); 5] = [
    ("expected usize", WHOLE_NUMBER),
    ("expected u64", WHOLE_NUMBER),
    ("expected u32", WHOLE_NUMBER),
    ("expected f64", "expected a number without quotes"),
    ("wanted string or table", "expected a name in quotes"),
];
const WHOLE_NUMBER: &str = "expected a whole number without quotes, not below 0";

/// The message for people.
pub(super) fn plain(message: &str) -> String {
    // The last line says what is wrong; those before it quote the file.
    let (quoted, said) = match message.trim_end().rsplit_once('\n') {
        Some((quoted, said)) => (format!("{quoted}\n"), said),
        None => (String::new(), message),
    };
    let said = KINDS
        .iter()
        .fold(said.to_owned(), |said, (from, to)| said.replace(from, to));
    quoted + &said
}
