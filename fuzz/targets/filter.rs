//! Label filters: no text may panic, and names and values of a filter are parts of
//! its text.
#![cfg_attr(fuzzing, no_main)]

use latewood_model::Test;
use latewood_wire::filter::parse;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let Some(matcher) = parse(text) else {
        return;
    };
    let inside = |part: &[u8]| text.windows(part.len()).any(|window| window == part);
    assert!(!matcher.name.is_empty() && inside(&matcher.name));
    if let Test::AnyOf(values) | Test::NoneOf(values) = &matcher.test {
        for value in values {
            assert!(!value.is_empty() && inside(value));
        }
    }
    // The plain spelling of the filter has the same meaning.
    let plain = |byte: &u8| !b"!=(),".contains(byte);
    if matcher.name.iter().all(plain)
        && let Test::AnyOf(values) = &matcher.test
        && values.iter().all(|value| value.iter().all(plain))
    {
        let mut spelled = [&matcher.name, &b"=("[..]].concat();
        spelled.extend(values.join(&b","[..]));
        spelled.push(b')');
        assert_eq!(parse(&spelled), Some(matcher));
    }
});
