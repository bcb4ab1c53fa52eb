//! What the tools write: results to standard output, errors to standard error.

use latewood_engine::Detail;
use latewood_engine::tools::Finding;
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;

/// Exit status where no answer can be given.
const FAILED: u8 = 2;

/// Writes an error.
pub(super) fn failed(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("latewood: {error}");
    ExitCode::from(FAILED)
}

/// One finding as a line of the answer.
pub(super) fn tell(finding: &Finding) {
    let kind = if finding.is_damage {
        "damage"
    } else {
        "notice"
    };
    say(&format!("{kind}: {}", finding.what));
}

/// A line of the answer. A reader that has gone away wants no more of it.
pub(super) fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// What a file or a directory holds, as JSON.
pub(super) fn json(detail: &Detail) -> Value {
    match detail {
        Detail::Number(number) => match (i64::try_from(*number), u64::try_from(*number)) {
            (Ok(number), _) => number.into(),
            (_, Ok(number)) => number.into(),
            _ => number.to_string().into(),
        },
        Detail::Fraction(number) => (*number).into(),
        Detail::Text(text) => text.as_str().into(),
        Detail::List(items) => items.iter().map(json).collect(),
        Detail::Fields(fields) => {
            let named = fields
                .iter()
                .map(|(name, value)| ((*name).to_owned(), json(value)));
            Value::Object(named.collect())
        }
    }
}
