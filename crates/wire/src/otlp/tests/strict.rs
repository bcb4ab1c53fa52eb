//! Requests that could be stored as something else than was meant, and what is said of them.

use super::*;

/// What is refused of one point of a metric with this data.
fn refused(data: &str) -> Vec<(u32, Reason, String)> {
    let found = take(&request(&format!(r#"{{"name":"m",{data}}}"#)));
    assert_eq!(found.samples, [], "{data}");
    assert_eq!(found.metadata, [""; 0], "{data}");
    found.refused
}

#[test]
fn sums_and_histograms_without_a_known_temporality_are_refused() {
    let point = r#""dataPoints":[{"timeUnixNano":"1000000","asInt":"1"}]"#;
    let histogram = r#""dataPoints":[{"timeUnixNano":"1000000","count":"1"}]"#;
    for (given, number) in [
        ("", 0),
        (r#""aggregationTemporality":0,"#, 0),
        (r#""aggregationTemporality":7,"#, 7),
        (r#""aggregationTemporality":"CUMULATIV","#, 0),
    ] {
        let why = format!(
            "m: aggregationTemporality is missing or unknown ({number}): it must be 1 (delta) or 2 \
             (cumulative)"
        );
        let expected = [(1, Reason::Value, why)];
        assert_eq!(refused(&format!(r#""sum":{{{given}{point}}}"#)), expected);
        let data = format!(r#""histogram":{{{given}{histogram}}}"#);
        assert_eq!(refused(&data), expected);
    }
    for known in ["1", "2", r#""AGGREGATION_TEMPORALITY_DELTA""#] {
        let data = format!(r#""sum":{{"aggregationTemporality":{known},{point}}}"#);
        let found = take(&request(&format!(r#"{{"name":"m",{data}}}"#)));
        assert_eq!((found.samples.len(), found.refused), (1, Vec::new()));
    }
}

/// The samples of a histogram with this point.
fn histogram(point: &str) -> Vec<String> {
    let point = format!(r#"{{"timeUnixNano":"1000000",{point}}}"#);
    let data = format!(r#"{{"aggregationTemporality":2,"dataPoints":[{point}]}}"#);
    let found = take(&request(&format!(r#"{{"name":"h","histogram":{data}}}"#)));
    assert_eq!(found.refused, []);
    found.lines()
}

#[test]
fn the_last_bucket_always_has_the_count() {
    let all = |count| format!(r#"h_bucket{{{LABELS},le="+Inf"}}@1={count}"#);
    let count = |count| format!("h_count{{{LABELS}}}@1={count}");
    let plain = histogram(r#""count":"3","sum":6"#);
    assert_eq!(plain, [all(3), count(3), format!("h_sum{{{LABELS}}}@1=6")]);
    let one = |le: &str, value| format!(r#"h_bucket{{{LABELS},le="{le}"}}@1={value}"#);
    let more = histogram(r#""count":"30","bucketCounts":[1,1,1],"explicitBounds":[1,2]"#);
    assert_eq!(more, [one("1", 1), one("2", 2), all(30), count(30)]);
    // A bound that says the same does not write the bucket twice.
    let infinite =
        histogram(r#""count":"3","bucketCounts":[1,2,0],"explicitBounds":[1,"Infinity"]"#);
    assert_eq!(infinite, [one("1", 1), all(3), count(3)]);
}

#[test]
fn a_bound_or_quantile_that_is_no_number_is_refused() {
    for bounds in [r#"["NaN"]"#, r#"[1,"NaN"]"#] {
        let counts = if bounds.contains('1') {
            "[1,1,1]"
        } else {
            "[1,1]"
        };
        let point = format!(
            r#"{{"timeUnixNano":"1","count":"1","bucketCounts":{counts},"explicitBounds":{bounds}}}"#
        );
        let data = format!(r#""histogram":{{"aggregationTemporality":2,"dataPoints":[{point}]}}"#);
        let expected = "m: histogram bounds must ascend".to_owned();
        assert_eq!(refused(&data), [(1, Reason::Value, expected)]);
    }
    let data = r#""summary":{"dataPoints":[{"timeUnixNano":"1","count":"1",
        "quantileValues":[{"quantile":"NaN","value":1}]}]}"#;
    let expected = "m: a quantile is not a number".to_owned();
    assert_eq!(refused(data), [(1, Reason::Value, expected)]);
}

/// The warning about a request, of which nothing is stored or refused.
fn warning(json: &str) -> Option<String> {
    let request = read(Encoding::Json, json.as_bytes()).unwrap();
    let (naming, mut intake) = (Naming::default(), Collected::default());
    let mut decoder = Decoder::new(&naming);
    decoder.decode(&request, &mut intake);
    assert_eq!((intake.samples, intake.refused), (Vec::new(), Vec::new()));
    assert_eq!(intake.metadata, [""; 0]);
    decoder.warning()
}

#[test]
fn what_an_unknown_field_leaves_empty_is_told() {
    let good = r#"{"timeUnixNano":"1000000","asInt":"1"}"#;
    for (json, expected) in [
        (
            request(&format!(
                r#"{{"name":"z","Gauge":{{"dataPoints":[{good}]}}}}"#
            )),
            "the metric \"z\" has no data points",
        ),
        (
            request(&format!(
                r#"{{"name":"z","gauge":{{"datapoints":[{good}]}}}},{{"name":"y"}}"#
            )),
            "the metric \"z\" has no data points (and 1 more are empty)",
        ),
        (request(""), "a scope has no metrics"),
        (
            r#"{"resourceMetrics":[{"instrumentationLibraryMetrics":[{}]}]}"#.to_owned(),
            "a resource has no scopeMetrics",
        ),
    ] {
        assert_eq!(warning(&json).as_deref(), Some(expected), "{json}");
    }
    assert_eq!(warning("{}"), None);
}

#[test]
fn a_field_that_is_given_twice_is_refused_by_either_name() {
    let good = r#"[{"timeUnixNano":"1000000","asInt":"1"}]"#;
    let at = "metric \"temp\": resourceMetrics[0].scopeMetrics[0].metrics[0].gauge";
    for (first, second) in [
        ("dataPoints", "data_points"),
        ("data_points", "dataPoints"),
        ("dataPoints", "dataPoints"),
    ] {
        let gauge = format!(r#"{{"{first}":{good},"{second}":{good}}}"#);
        let json = request(&format!(r#"{{"name":"temp","gauge":{gauge}}}"#));
        let error = read(Encoding::Json, json.as_bytes()).unwrap_err();
        let expected = "the field \"dataPoints\" is given twice";
        assert!(error.starts_with(at) && error.contains(expected), "{error}");
    }
    let twice = r#"{"resource_metrics":[],"resourceMetrics":[]}"#;
    let error = read(Encoding::Json, twice.as_bytes()).unwrap_err();
    assert!(
        error.contains("\"resourceMetrics\" is given twice"),
        "{error}"
    );
    // Names of attributes are values.
    let pair = r#"{"key":"a","value":{"stringValue":"x"}}"#;
    let json =
        format!(r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{pair},{pair}]}}}}]}}"#);
    assert!(read(Encoding::Json, json.as_bytes()).is_ok());
}

#[test]
fn an_error_names_its_metric_also_where_the_body_is_no_json() {
    for value in ["NaN", "1e999", "1 2", "\"x", "01"] {
        let point = format!(r#"{{"timeUnixNano":"1000000","asDouble":{value}}}"#);
        let metrics = format!(
            r#"{{"name":"first"}},{{"name":"t\u0065mp","gauge":{{"dataPoints":[{point}]}}}}"#
        );
        let error = read(Encoding::Json, request(&metrics).as_bytes()).unwrap_err();
        let at =
            "metric \"temp\": resourceMetrics[0].scopeMetrics[0].metrics[1].gauge.dataPoints[0]";
        assert!(error.starts_with(at), "{value}: {error}");
    }
}

#[test]
fn a_metric_of_which_nothing_is_taken_gets_no_metadata() {
    let found = take(&request(
        r#"{"name":"e","description":"d","exponentialHistogram":{"dataPoints":[
            {"timeUnixNano":"1000000","count":"1"}]}},
           {"name":"none","description":"d","gauge":{"dataPoints":[{"timeUnixNano":"1000000"}]}},
           {"name":"some","description":"d","gauge":{"dataPoints":[{"timeUnixNano":"1000000"},
            {"timeUnixNano":"2000000","asInt":"1"}]}}"#,
    ));
    let one = r#"some type="gauge" help="d""#;
    // Each request tells it.
    assert_eq!(found.metadata, [one, one]);
}

#[test]
fn names_that_become_the_same_are_joined_and_names_of_nothing_refused() {
    let naming = Naming {
        translation: Translation::UnderscoreEscapingWithoutSuffixes,
        ..Naming::default()
    };
    let json = request(
        r#"{"name":"\u00e9","gauge":{"dataPoints":[{"timeUnixNano":"1000000","asInt":"1"}]}},
           {"name":"m","gauge":{"dataPoints":[
            {"timeUnixNano":"1000000","asInt":"1","attributes":[
                {"key":"a.b","value":{"stringValue":"2"}},{"key":"a-b","value":{"stringValue":"1"}}]},
            {"timeUnixNano":"2000000","asInt":"1","attributes":[
                {"key":"..","value":{"stringValue":"1"}}]}]}}"#,
    );
    let request = read(Encoding::Json, json.as_bytes()).unwrap();
    let mut intake = Collected::default();
    Decoder::new(&naming).decode(&request, &mut intake);
    assert_eq!(intake.lines(), [r#"m{a_b="1;2",job="shop"}@1=1"#]);
    let refused: Vec<_> = intake.refused.iter().map(|one| (one.0, one.1)).collect();
    assert_eq!(refused, [(1, Reason::Name), (3, Reason::Name)]);
    assert_eq!(
        intake.refused[1].2,
        "m: the name \"..\" has no character that can be kept"
    );
}
