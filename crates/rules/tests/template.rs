//! What templates make.

use latewood_promql::labels::Labels;
use latewood_rules::template::{Data, Template};

fn data(labels: &Labels) -> Data<'_> {
    Data {
        labels,
        value: 1_234_567.0,
        external_labels: labels,
        external_url: "http://testhost:9090/path/prefix",
        now_ms: 1_353_755_652_000,
    }
}

/// What a template makes; `query` finds two samples, and none where it asks for `none`.
fn expanded(text: &str) -> Result<String, String> {
    let labels = Labels::from_pairs([("__name__", "up"), ("instance", "foo.example.com:80")]);
    let of = |instance, value| {
        let labels = Labels::from_pairs([("__name__", "m"), ("instance", instance)]);
        (labels, value)
    };
    let template = Template::parse("T", text)?;
    template.expand(&data(&labels), &mut |query| match query {
        "none" => Ok(Vec::new()),
        "inf" => Ok(vec![of("a", f64::INFINITY)]),
        "bad" => Err("it is bad".to_owned()),
        _ => Ok(vec![of("b", 21.0), of("a", 11.5)]),
    })
}

/// Templates and what they make.
const TEXTS: &[(&str, &str)] = &[
    ("plain text", "plain text"),
    ("{{ 1 }}", "1"),
    ("{{ $value }} {{ .Value }}", "1.234567e+06 1.234567e+06"),
    (
        "{{ $labels.instance }}{{ $labels.missing }}|",
        "foo.example.com:80|",
    ),
    (
        "{{ .Labels.instance }} {{ $externalLabels.instance }}",
        "foo.example.com:80 foo.example.com:80",
    ),
    (
        "{{ if eq $labels.missing \"x\" }}a{{ else }}b{{ end }}",
        "b",
    ),
    (
        "{{ with $labels.missing }}a{{ else }}{{ len $labels }}{{ end }}",
        "2",
    ),
    (
        "{{ range $name, $value := $labels }}{{ $name }}={{ $value }} {{ end }}",
        "__name__=up instance=foo.example.com:80 ",
    ),
    (
        "{{ $x := 3 }}{{ if gt $x 2 }}{{ $x = 4 }}{{ end }}{{ $x }}",
        "4",
    ),
    (
        "{{ printf \"%.2f %s %q %05d\" $value $labels.instance \"a\" 7 }}",
        "1234567.00 foo.example.com:80 \"a\" 00007",
    ),
    (
        "{{ define \"x\" }}{{ .arg0 }} {{ .arg1 }}{{ end }}{{ template \"x\" (args 1 \"2\") }}",
        "1 2",
    ),
    ("a {{- /* gone */ -}} b", "ab"),
    ("{{ query \"m\" | first | value }}", "21"),
    (
        "{{ query \"m\" | first | label \"instance\" }}{{ query \"m\" | first | label \"x\" }}",
        "b",
    ),
    (
        "{{ $x := query \"m\" | first }}{{ $x.Labels.foo }}{{ $x.Value }}",
        "21",
    ),
    (
        "{{ range query \"m\" | sortByLabel \"instance\" }}{{ .Labels.instance }}:{{ .Value }}: {{ end }}",
        "a:11.5: b:21: ",
    ),
    (
        "{{ range query \"none\" }}x{{ else }}nothing{{ end }}",
        "nothing",
    ),
    (
        "{{ with query \"m\" }}{{ . | first | value | humanize }}{{ end }}",
        "21",
    ),
    ("{{ query \"m\" | first | strvalue }}|", "|"),
    (
        "{{ humanize 0.0 }}:{{ humanize 1234567.0 }}:{{ humanize .12 }}:{{ humanize -1 }}",
        "0:1.235M:120m:-1",
    ),
    (
        "{{ humanize \"1234567\" }} {{ humanize1024 1048576.0 }} {{ humanize1024 .12 }}",
        "1.235M 1Mi 0.12",
    ),
    (
        "{{ humanizeDuration 899.99 }}:{{ humanizeDuration .12345 }}:{{ humanizeDuration 1.2345 }}:{{ humanizeDuration -183845 }}",
        "14m 59s:123.5ms:1.234s:-2d 3h 4m 5s",
    ),
    (
        "{{ -0.22222 | humanizePercentage }}:{{ 1.23456 | humanizePercentage }}",
        "-22.22%:123.5%",
    ),
    (
        "{{ \"+Inf\" | humanize }}{{ \"NaN\" | humanizeTimestamp }}",
        "+InfNaN",
    ),
    (
        "{{ 1435065584.128 | humanizeTimestamp }}",
        "2015-06-23 13:19:44.128 +0000 UTC",
    ),
    (
        "{{ (1435065584.128 | toTime).Format \"2006\" }} {{ 0 | toTime }}",
        "2015 1970-01-01 00:00:00 +0000 UTC",
    ),
    (
        "{{ (1800 | toDuration).String }} {{ 90 | toDuration }}",
        "30m0s 1m30s",
    ),
    (
        "{{ now }} {{ (now | toTime).Unix }}",
        "1.353755652e+09 1353755652",
    ),
    (
        "{{ (\"-30m\" | parseDuration | toDuration | (now | toTime).Add).UnixMilli }}",
        "1353753852000",
    ),
    (
        "{{ \"aa bb CC\" | title }} {{ toUpper \"a\" }} {{ toLower \"B\" }}",
        "Aa Bb CC A b",
    ),
    (
        "{{ match \"a+\" \"xaa\" }} {{ reReplaceAll \"(a)b\" \"x$1\" \"ab\" }}",
        "true xa",
    ),
    ("{{ $labels.instance | stripPort | stripDomain }}", "foo"),
    (
        "{{ graphLink \"up == 0\" }} {{ tableLink \"up\" }}",
        "/graph?g0.expr=up+%3D%3D+0&g0.tab=0 /graph?g0.expr=up&g0.tab=1",
    ),
    (
        "{{ pathPrefix }} {{ externalURL }} {{ $externalURL }}",
        "/path/prefix http://testhost:9090/path/prefix http://testhost:9090/path/prefix",
    ),
    (
        "{{ printf \"%0.2f\" (parseDuration \"1h2m10ms\") }}",
        "3720.01",
    ),
    (
        "{{ safeHtml \"<b>\" }} {{ urlQueryEscape \"a b\" }} {{ index $labels \"instance\" }}",
        "<b> a+b foo.example.com:80",
    ),
    (
        "{{ print $value 2 \"a\" }} {{ printf \"%v|%8v|%-4v|%g|%.1f|%d%%\" $value $value 1.5 0.25 1.25 3 }}",
        "1.234567e+06 2a 1.234567e+06|1.234567e+06|1.5 |0.25|1.2|3%",
    ),
    (
        "{{ printf \"%.2f\" (query \"inf\" | first | value) }} {{ $labels }}",
        "+Inf map[__name__:up instance:foo.example.com:80]",
    ),
    (
        "{{ if and (gt $value 1.0) (not (match \"x\" \"y\")) }}yes{{ end }}",
        "yes",
    ),
];

#[test]
fn texts_are_those_of_prometheus() {
    for (text, expected) in TEXTS {
        assert_eq!(expanded(text).as_deref(), Ok(*expected), "{text}");
    }
}

#[test]
fn what_a_template_cannot_do_is_told() {
    for (text, why) in [
        (
            "{{ query \"none\" | first }}",
            "first() called on vector with no elements",
        ),
        ("{{ query \"bad\" }}", "error calling query: it is bad"),
        (
            "{{ (query \"none\").banana }}",
            "can't evaluate field banana",
        ),
        (
            "{{ humanize \"one\" }}",
            "strconv.ParseFloat: parsing \"one\": invalid syntax",
        ),
        (
            "{{ reReplaceAll \"(\" \"\" \"x\" }}",
            "error parsing regexp",
        ),
        ("{{ toUpper 1 }}", "wrong type for value; expected string"),
        ("{{ toUpper }}", "wrong number of arguments: toUpper"),
        (
            "{{ define \"x\" }}{{ template \"x\" }}{{ end }}{{ template \"x\" }}",
            "recursion limit",
        ),
        (
            "{{ range 1000000 }}x{{ end }}",
            "range iteration budget exhausted",
        ),
        (
            "{{ range 100000 }}0123456789abcdef{{ end }}",
            "more than 1048576 bytes of text",
        ),
        (
            "{{ range $i := 200 }}{{ query (printf \"m%d\" $i) }}{{ end }}",
            "more than 100 queries",
        ),
        (
            "{{ toTime 1e19 }}",
            "cannot be represented as a nanoseconds timestamp",
        ),
    ] {
        let error = expanded(text).unwrap_err();
        assert!(
            error.starts_with("error executing template __alert_T: "),
            "{error}"
        );
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn what_does_not_parse_is_told() {
    for (text, why) in [
        ("{{", "unclosed action"),
        ("{{ end }}", "unexpected {{end}}"),
        ("a{{ else }}b", "unexpected {{end}} or {{else}}"),
        ("{{ if true }}", "unexpected"),
        (
            "{{ nothing }}",
            "template: __alert_T:1: function \"nothing\" not defined",
        ),
        (
            "{{ if true }}{{ $x := 1 }}{{ end }}\n{{ $x }}",
            "template: __alert_T:2: undefined variable \"$x\"",
        ),
        (
            "{{ define \"a\" }}{{ $labels.x }}{{ end }}",
            "undefined variable \"$labels\"",
        ),
    ] {
        let error = Template::parse("T", text).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}
