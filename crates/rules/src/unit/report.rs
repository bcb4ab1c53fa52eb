//! Outcomes as XML of JUnit.

use super::Outcome;
use latewood_promql::rfc3339;
use std::fmt::Write;

/// The outcomes of files that were tested at a time, in seconds since 1970.
pub fn junit(outcomes: &[Outcome], at_s: i64) -> String {
    let mut xml = "<testsuites>".to_owned();
    for outcome in outcomes {
        let failures: usize = outcome.cases.iter().map(|case| case.failures.len()).sum();
        let errors = usize::from(!outcome.aborted.is_empty());
        let time = rfc3339(at_s);
        // Writing to a text cannot fail.
        let _ = write!(
            xml,
            "<testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" errors=\"{errors}\" \
             skipped=\"0\" timestamp=\"{}\">",
            escaped(&outcome.file),
            outcome.cases.len() + errors,
            time.trim_end_matches('Z'),
        );
        if errors > 0 {
            let text = escaped(&outcome.aborted.join("\n"));
            let _ = write!(
                xml,
                "<testcase name=\"unknown\"><error>{text}</error></testcase>"
            );
        }
        for case in &outcome.cases {
            let _ = write!(xml, "<testcase name=\"{}\">", escaped(&case.name));
            for failure in &case.failures {
                let _ = write!(xml, "<failure>{}</failure>", escaped(failure));
            }
            xml.push_str("</testcase>");
        }
        xml.push_str("</testsuite>");
    }
    xml.push_str("</testsuites>");
    xml
}

/// What XML may hold.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&#34;"),
            '\t' | '\r' => _ = write!(out, "&#{};", letter as u32),
            '\n' => out.push_str("&#xA;"),
            _ if letter.is_control() => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}
