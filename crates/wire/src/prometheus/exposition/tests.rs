//! Texts in, samples, metadata and refusals out; whole and in pieces.

use super::*;
use crate::testing::Collected;

/// The result of a text of Prometheus, the same however it is split.
fn read(text: &str) -> Collected {
    read_as(Format::Prometheus, text)
}

fn read_as(format: Format, text: &str) -> Collected {
    let whole = read_in(format, text, usize::MAX);
    for piece in [1, 2, 7] {
        let pieces = read_in(format, text, piece);
        assert_eq!(pieces.lines(), whole.lines());
        assert_eq!(pieces.refused, whole.refused);
    }
    whole
}

fn read_in(format: Format, text: &str, piece: usize) -> Collected {
    let mut intake = Collected::default();
    intake.now_ms = 77;
    let (mut decoder, mut held) = (Decoder::new(format), Vec::new());
    for bytes in text.as_bytes().chunks(piece) {
        held.extend_from_slice(bytes);
        let taken = decoder.decode(&held, false, &mut intake);
        held.drain(..taken);
    }
    decoder.decode(&held, true, &mut intake);
    intake
}

#[test]
fn comments_tell_what_a_metric_is() {
    let found = read(
        "# TYPE up gauge\n# HELP up a \\\\ b\\nc \\x\n# UNIT  up\tseconds\n#TYPE x counter\n\
         # TYPE y odd\n# TYPE z untyped\n# HELP only\n# a remark of three words\n#\n",
    );
    let expected = [
        "up type=\"gauge\"",
        "up help=\"a \\\\ b\\nc \\\\x\"",
        "up unit=\"seconds\"",
        "x type=\"counter\"",
        "z type=\"unknown\"",
    ];
    assert_eq!(found.metadata, expected);
    assert!(found.refused.is_empty());
}

#[test]
fn comments_about_quoted_names() {
    let found = read(
        "# TYPE \"my metric\" gauge\n# HELP \"my metric\" its \"help\"\n\
         # UNIT \"a\\\"b\\\\\" seconds\n# HELP \"plain\"\ttext\n# HELP \"open text\n\
         # HELP \"close\"text\n# HELP a\"b c\n",
    );
    let expected = [
        "my metric type=\"gauge\"",
        "my metric help=\"its \\\"help\\\"\"",
        "a\"b\\ unit=\"seconds\"",
        "plain help=\"text\"",
        "a\"b help=\"c\"",
    ];
    assert_eq!(found.metadata, expected);
    assert!(found.refused.is_empty());
}

#[test]
fn samples_in_every_spelling() {
    let found = read(
        "# HELP a b\n# TYPE up gauge\nup 1\nup{} 2 5\nup{job=\"a\",} 3 6\r\n\
         up { job = \"a\" , x = \"q\\\"\\\\\\n\" } +Inf 7\n\t m\tNaN\t8\n\
         {\"my.metric\",\"my.label\"=\"}\"} 1e3 9 # {trace=\"x\"} 1\nup{job=\"a\",} 4",
    );
    let expected = [
        "up@77=1",
        "up@5=2",
        "up{job=\"a\"}@6=3",
        "up{job=\"a\",x=\"q\\\"\\\\\\n\"}@7=inf",
        "m@8=NaN",
        "my.metric{my.label=\"}\"}@9=1000",
        "up{job=\"a\"}@77=4",
    ];
    assert_eq!(found.refused, []);
    assert_eq!(found.lines(), expected);
}

#[test]
fn bad_lines_cost_themselves_alone() {
    for (line, reason) in [
        ("up", Reason::Value),
        ("up x", Reason::Value),
        ("up 1e999", Reason::Value),
        ("up{job=\"a\"}", Reason::Value),
        ("up 1 x", Reason::Timestamp),
        ("up 1 1.5", Reason::Timestamp),
        ("up 1 2 3", Reason::Syntax),
        ("up{job=\"a\" 1", Reason::Name),
        ("up{job=a} 1", Reason::Name),
        ("up{job} 1", Reason::Name),
        ("up{job=\"a\"x=\"b\"} 1", Reason::Name),
        ("up{job=\"a\",job=\"b\"} 1", Reason::Name),
        ("{job=\"a\"} 1", Reason::Name),
        ("{} 1", Reason::Name),
    ] {
        let found = read(&format!("a 1 1\n{line}\na 2 2\n"));
        let refused: Vec<_> = found.refused.iter().map(|(n, why, _)| (*n, *why)).collect();
        assert_eq!(refused, [(2, reason)], "{line}");
        assert_eq!(found.lines(), ["a@1=1", "a@2=2"], "{line}");
    }
}

#[test]
fn times_of_openmetrics_are_seconds_with_or_without_a_fraction() {
    for (time, ms, is_rounded) in [
        ("1565133713", 1_565_133_713_000, false),
        ("1565133713.989", 1_565_133_713_989, false),
        ("1565133713.5", 1_565_133_713_500, false),
        ("1565133713.", 1_565_133_713_000, false),
        ("1565133713.9899999", 1_565_133_713_989, true),
        ("1565133713.989000", 1_565_133_713_989, false),
        ("1.565133713e9", 1_565_133_713_000, false),
        ("-1.5", -1500, false),
        ("0", 0, false),
    ] {
        let found = read_as(Format::OpenMetrics, &format!("m 1 {time}\n# EOF\n"));
        let moments: Vec<_> = found.samples.iter().map(|sample| sample.1).collect();
        assert_eq!(moments, [Moment { ms, is_rounded }], "{time}");
    }
    for time in [
        "x",
        "NaN",
        "+Inf",
        "1.5.5",
        "1e300",
        ".",
        "1.234x",
        "1.\u{e9}\u{e9}",
    ] {
        let found = read_as(Format::OpenMetrics, &format!("m 1 {time}\n"));
        assert_eq!(found.refused[0].1, Reason::Timestamp, "{time}");
        let expected = format!("the timestamp is not a number of seconds: 'm 1 {time}'");
        assert_eq!(found.refused[0].2, expected);
    }
}

#[test]
fn openmetrics_ends_with_a_line_that_says_so() {
    for (text, format) in [
        ("m 1\n# EOF\n", Format::OpenMetrics),
        ("m 1\n# EOF", Format::OpenMetrics),
        ("m 1\r\n# EOF\r\n", Format::OpenMetrics),
        ("# EOF", Format::OpenMetrics),
        ("m 1\n# EOF\nm 2\n", Format::Prometheus),
        ("m 1 # EOF\n", Format::Prometheus),
        ("# EOFX\n", Format::Prometheus),
        ("", Format::Prometheus),
    ] {
        assert_eq!(Format::of_end(text.as_bytes()), Ok(format), "{text}");
    }
}

#[test]
fn what_is_nearly_the_end_of_openmetrics_is_refused_before_a_sample_is_read() {
    for last in [" # EOF", "#EOF", "#  EOF", "# eof", "\t#EOF"] {
        let error = Format::of_end(format!("m 1 5\n{last}\n").as_bytes()).unwrap_err();
        assert!(error.contains(&format!("is '{last}'")), "{error}");
    }
}

#[test]
fn an_end_within_a_text_whose_format_was_guessed_is_refused() {
    let text = "m 1 5\n# EOF\nm 2 6\n";
    let format = Format::of_end(text.as_bytes()).unwrap();
    let mut intake = Collected::default();
    let mut decoder = Decoder::new(format).guessed();
    decoder.decode(text.as_bytes(), true, &mut intake);
    assert_eq!(intake.lines(), ["m@5=1", "m@6=2"]);
    let why = "'# EOF' is not the last line: timestamps are read as milliseconds".to_owned();
    assert_eq!(intake.refused, [(2, Reason::Syntax, why)]);
    // Where the type says it is Prometheus' format, that is a comment.
    assert_eq!(read(text).refused, []);
}

#[test]
fn a_name_without_quotes_does_not_begin_with_a_digit() {
    let why = "a name without quotes must begin with a letter, '_' or ':'";
    for line in [
        "1om 1",
        "1700000 5",
        "-x 1",
        ".x 1",
        "up{1a=\"x\"} 1",
        "{1om} 1",
    ] {
        let found = read(&format!("{line}\n"));
        assert_eq!(
            found.refused,
            [(1, Reason::Name, format!("{why}: '{line}'"))]
        );
        assert_eq!(found.lines(), [""; 0]);
    }
    let found = read("a1:x.y 1 1\n_b 1 1\n:c 1 1\n\u{e9}t\u{e9} 1 1\n{\"1om\",\"1a\"=\"x\"} 1 1\n");
    assert_eq!((found.samples.len(), found.refused), (5, Vec::new()));
}

#[test]
fn a_refused_line_is_shown() {
    for (line, expected) in [
        ("up x", "the value is not a number: 'up x'"),
        (
            "up 1 1.5",
            "the timestamp is not an integer number of milliseconds: 'up 1 1.5'",
        ),
    ] {
        assert_eq!(read(line).refused[0].2, expected);
    }
    let long = read(&format!("m{{a=\"{}\"}} x", "y".repeat(300)));
    assert!(long.refused[0].2.ends_with("yyy...'"), "{:?}", long.refused);
}
