//! Times of rules and alerts in JSON.

/// A time of milliseconds as Go writes it in JSON; 0 is none.
pub(crate) fn rfc3339_ms(at_ms: i64) -> String {
    if at_ms == 0 {
        return "0001-01-01T00:00:00Z".to_owned();
    }
    let mut text = latewood_promql::rfc3339(at_ms.div_euclid(1000));
    let millis = format!(".{:03}", at_ms.rem_euclid(1000));
    // It ends with a Z.
    text.insert_str(
        text.len() - 1,
        millis.trim_end_matches('0').trim_end_matches('.'),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_go_does() {
        for (at_ms, text) in [
            (0, "0001-01-01T00:00:00Z"),
            (1_500, "1970-01-01T00:00:01.5Z"),
            (1_700_000_000_000, "2023-11-14T22:13:20Z"),
        ] {
            assert_eq!(rfc3339_ms(at_ms), text);
        }
    }
}
