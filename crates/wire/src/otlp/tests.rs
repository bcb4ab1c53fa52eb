//! Requests in, samples out.

mod strict;

use super::*;
use crate::intake::Reason;
use crate::testing::Collected;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics,
};
use opentelemetry_proto::tonic::resource::v1::Resource;

/// The samples of a JSON request, which must equal those of the same request in protobuf.
fn take(json: &str) -> Collected {
    let request = read(Encoding::Json, json.as_bytes()).unwrap();
    let bytes = request.encode_to_vec();
    // By their bytes: NaN does not equal itself.
    let again = read(Encoding::Protobuf, &bytes).unwrap();
    assert_eq!(again.encode_to_vec(), bytes);
    let naming = Naming::default();
    let mut intake = Collected::default();
    let mut decoder = Decoder::new(&naming);
    decoder.decode(&request, &mut intake);
    // Known rows are found again.
    let known = intake.keys.len();
    let samples = intake.samples.len();
    decoder.decode(&request, &mut intake);
    assert_eq!(
        (intake.keys.len(), intake.samples.len()),
        (known, 2 * samples)
    );
    intake.samples.truncate(samples);
    intake.refused.truncate(intake.refused.len() / 2);
    intake
}

/// A request of one resource with these metrics.
fn request(metrics: &str) -> String {
    format!(
        r#"{{"resourceMetrics":[{{"resource":{{"attributes":[
            {{"key":"service.name","value":{{"stringValue":"shop"}}}}]}},
            "scopeMetrics":[{{"scope":{{"name":"lib"}},"metrics":[{metrics}]}}]}}]}}"#
    )
}

const LABELS: &str = r#"job="shop""#;

#[test]
fn gauges_and_sums_with_attributes_of_every_kind() {
    let found = take(&request(
        r#"{"name":"temp","gauge":{"dataPoints":[
            {"timeUnixNano":"1700000000000999999","asDouble":21.5,"attributes":[
                {"key":"host","value":{"stringValue":"inner"}},
                {"key":"n","value":{"intValue":"7"}},
                {"key":"b","value":{"boolValue":true}},
                {"key":"e","value":{"stringValue":""}},
                {"key":"l","value":{"arrayValue":{"values":[{"stringValue":"x"},{"doubleValue":1.5}]}}}]}]}},
           {"name":"hits","sum":{"aggregationTemporality":2,"isMonotonic":true,"dataPoints":[
            {"timeUnixNano":"1700000000000000000","asInt":"-3"}]}}"#,
    ));
    let expected = [
        r#"temp{b="true",host="inner",job="shop",l="[\"x\",1.5]",n="7"}@1700000000000=21.5"#
            .to_owned(),
        format!("hits{{{LABELS}}}@1700000000000=-3"),
    ];
    assert_eq!(found.lines(), expected);
    assert!(found.samples[0].1.is_rounded && !found.samples[1].1.is_rounded);
    assert_eq!(found.refused, []);
}

#[test]
fn histograms_and_summaries_become_the_series_prometheus_has() {
    let found = take(&request(
        r#"{"name":"lat","histogram":{"aggregationTemporality":2,"dataPoints":[
            {"timeUnixNano":"1000000","count":"6","sum":9.5,"min":1,
             "bucketCounts":["1","2","3"],"explicitBounds":[0.5,10]}]}},
           {"name":"sm","summary":{"dataPoints":[{"timeUnixNano":"2000000","count":"4","sum":8,
             "quantileValues":[{"quantile":0.5,"value":2},{"quantile":1,"value":3}]}]}}"#,
    ));
    let key = |metric: &str, extra: &str| match extra {
        "" => format!("{metric}{{{LABELS}}}"),
        extra => format!("{metric}{{{LABELS},{extra}}}"),
    };
    let expected = [
        format!("{}@1=1", key("lat_bucket", r#"le="0.5""#)),
        format!("{}@1=3", key("lat_bucket", r#"le="10""#)),
        format!("{}@1=6", key("lat_bucket", r#"le="+Inf""#)),
        format!("{}@1=6", key("lat_count", "")),
        format!("{}@1=9.5", key("lat_sum", "")),
        format!("{}@1=1", key("lat_min", "")),
        format!("{}@2=2", key("sm", r#"quantile="0.5""#)),
        format!("{}@2=3", key("sm", r#"quantile="1""#)),
        format!("{}@2=4", key("sm_count", "")),
        format!("{}@2=8", key("sm_sum", "")),
    ];
    assert_eq!(found.lines(), expected);
}

#[test]
fn points_that_cannot_be_kept_are_refused_by_number() {
    let found = take(&request(
        r#"{"name":"a","gauge":{"dataPoints":[
            {"asInt":"1"},{"timeUnixNano":"1000000"},
            {"timeUnixNano":"2000000","flags":1},{"timeUnixNano":"3000000","asInt":"3"}]}},
           {"name":"e","exponentialHistogram":{"dataPoints":[{"timeUnixNano":"1","count":"1"}]}},
           {"name":"h","histogram":{"aggregationTemporality":2,"dataPoints":[
            {"timeUnixNano":"1","count":"1","bucketCounts":["1"],"explicitBounds":[1]},
            {"timeUnixNano":"1","count":"1","bucketCounts":["1","2","3"],"explicitBounds":[2,1]}]}},
           {"name":"","gauge":{"dataPoints":[{"timeUnixNano":"1000000","asInt":"1"}]}}"#,
    ));
    let refused: Vec<_> = found
        .refused
        .iter()
        .map(|(point, why, _)| (*point, *why))
        .collect();
    let expected = [
        (1, Reason::Timestamp),
        (2, Reason::Value),
        (5, Reason::Value),
        (6, Reason::Value),
        (7, Reason::Value),
        (8, Reason::Name),
    ];
    assert_eq!(refused, expected);
    assert_eq!(found.samples.len(), 2);
    assert_eq!(found.samples[0].2.to_bits(), 0x7ff0_0000_0000_0002);
}

#[test]
fn answers_in_both_encodings() {
    assert_eq!(answer(Encoding::Protobuf, 0, ""), b"");
    assert_eq!(answer(Encoding::Json, 0, ""), b"{}");
    let json = answer(Encoding::Json, 3, "no time");
    let text = r#"{"partialSuccess":{"errorMessage":"no time","rejectedDataPoints":"3"}}"#;
    assert_eq!(String::from_utf8(json).unwrap(), text);
    let response = ExportMetricsServiceResponse::decode(&*answer(Encoding::Protobuf, 3, "no time"));
    let partial = response.unwrap().partial_success.unwrap();
    assert_eq!(
        (partial.rejected_data_points, &*partial.error_message),
        (3, "no time")
    );
    assert_eq!(
        status(Encoding::Json, 3, "bad"),
        br#"{"code":3,"message":"bad"}"#
    );
    assert!(read(Encoding::Json, b"{").is_err());
    assert!(read(Encoding::Protobuf, b"\x0a\xff").is_err());
}

#[test]
fn what_is_no_request_in_json_is_refused() {
    for text in ["", "[]", " [{}]", "1", "null", "{\"resourceMetrics\":1}"] {
        assert!(read(Encoding::Json, text.as_bytes()).is_err(), "{text}");
    }
    assert!(read(Encoding::Json, b" {}").is_ok());
}

#[test]
fn attributes_with_names_of_control_characters_are_series_of_their_own() {
    let point = |attributes: &[(&str, &str)]| {
        let pairs = attributes
            .iter()
            .map(|(key, value)| serde_json::json!({"key": key, "value": {"stringValue": value}}));
        serde_json::json!({"timeUnixNano": "1000000", "asInt": "1",
            "attributes": pairs.collect::<Vec<_>>()})
    };
    let of_resource = |attributes: &[(&str, &str)], points: &[serde_json::Value]| {
        serde_json::json!({"resource": {"attributes": point(attributes)["attributes"]},
            "scopeMetrics": [{"metrics": [{"name": "m", "gauge": {"dataPoints": points}}]}]})
    };
    let zeros = "\0".repeat(5);
    let plain = point(&[]);
    let odd = point(&[(&zeros, "x")]);
    let other = point(&[("x", "y")]);
    let first = of_resource(&[], &[other.clone(), plain.clone(), other, odd]);
    let own = of_resource(&[], &[point(&[("a", &zeros[..3]), ("b", "c")])]);
    let outer = of_resource(&[(&zeros[..3], "a")], &[point(&[("b", "c")])]);
    let found = take(&serde_json::json!({"resourceMetrics": [first, own, outer]}).to_string());
    let expected = [
        "m{x=\"y\"}@1=1".to_owned(),
        "m@1=1".to_owned(),
        "m{x=\"y\"}@1=1".to_owned(),
        format!("m{{\"{zeros}\"=\"x\"}}@1=1"),
        "m{a=\"\0\0\0\",b=\"c\"}@1=1".to_owned(),
        "m{b=\"c\"}@1=1".to_owned(),
    ];
    assert_eq!(found.lines(), expected);
}

/// All attributes of resources become labels.
fn promoting() -> Naming {
    Naming {
        promoted: vec!["*".into()],
        ..Naming::default()
    }
}

/// A request of one resource with empty attributes and gauges without a name.
fn hollow(attributes: usize, metrics: usize, points: usize) -> ExportMetricsServiceRequest {
    let point = NumberDataPoint {
        time_unix_nano: 1_000_000,
        ..NumberDataPoint::default()
    };
    let data_points = vec![point; points];
    let metric = Metric {
        data: (points > 0).then_some(Data::Gauge(Gauge { data_points })),
        ..Metric::default()
    };
    let resource = Resource {
        attributes: vec![KeyValue::default(); attributes],
        ..Resource::default()
    };
    let of_scope = ScopeMetrics {
        metrics: vec![metric; metrics],
        ..ScopeMetrics::default()
    };
    let of_resource = ResourceMetrics {
        resource: Some(resource),
        scope_metrics: vec![of_scope],
        ..ResourceMetrics::default()
    };
    ExportMetricsServiceRequest {
        resource_metrics: vec![of_resource],
    }
}

#[test]
fn attributes_are_not_gone_through_again_for_each_metric_and_point() {
    // A small body: reading the attributes for every metric or point would take
    // forever.
    let mut intake = Collected::default();
    Decoder::new(&Naming::default()).decode(&hollow(200_000, 200_000, 0), &mut intake);
    assert_eq!(intake.refused, []);
    Decoder::new(&Naming::default()).decode(&hollow(200_000, 100_000, 1), &mut intake);
    let (_, reason, text) = &intake.refused[99_999];
    assert_eq!(
        (*reason, &**text),
        (Reason::Name, ": more than 1024 labels")
    );
    assert_eq!(intake.samples, []);
}

#[test]
fn what_points_have_in_common_is_bounded_as_often_as_it_counts() {
    let mut request = hollow(1, 1, 12_000);
    let of_resource = &mut request.resource_metrics[0];
    let long = AnyValue {
        value: Some(any_value::Value::StringValue("x".repeat(200_000))),
    };
    if let Some(resource) = &mut of_resource.resource {
        resource.attributes[0].key = "a".into();
        resource.attributes[0].value = Some(long);
    }
    of_resource.scope_metrics[0].metrics[0].name = "m".into();
    set_values(&mut request);
    let mut intake = Collected::default();
    Decoder::new(&promoting()).decode(&request, &mut intake);
    let reasons: Vec<_> = intake.refused.iter().map(|refused| refused.1).collect();
    assert_eq!(reasons.len(), 12_000);
    assert_eq!((reasons[0], reasons[11_999]), (Reason::Name, Reason::Limit));
}

#[test]
fn long_names_and_values_are_refused_in_short_words() {
    let mut request = hollow(0, 1, 3);
    let metric = &mut request.resource_metrics[0].scope_metrics[0].metrics[0];
    metric.name = "\u{e9}".repeat(1 << 20);
    let mut untimed = request.clone();
    set_values(&mut request);
    let metric = &mut untimed.resource_metrics[0].scope_metrics[0].metrics[0];
    if let Some(Data::Gauge(gauge)) = &mut metric.data {
        gauge
            .data_points
            .iter_mut()
            .for_each(|point| point.time_unix_nano = 0);
    }
    let mut intake = Collected::default();
    Decoder::new(&Naming::default()).decode(&request, &mut intake);
    Decoder::new(&Naming::default()).decode(&untimed, &mut intake);
    assert_eq!(intake.refused.len(), 6);
    assert!(intake.refused.iter().all(|(_, _, text)| text.len() < 300));
    assert_eq!(intake.refused[0].1, Reason::Name);

    // A list of numbers is much longer as text.
    let number = AnyValue {
        value: Some(any_value::Value::DoubleValue(f64::MIN_POSITIVE)),
    };
    let list = any_value::Value::ArrayValue(ArrayValue {
        values: vec![number; 10_000],
    });
    let mut request = hollow(1, 1, 1);
    if let Some(resource) = &mut request.resource_metrics[0].resource {
        resource.attributes[0].key = "a".into();
        resource.attributes[0].value = Some(AnyValue { value: Some(list) });
    }
    set_values(&mut request);
    let mut intake = Collected::default();
    Decoder::new(&promoting()).decode(&request, &mut intake);
    assert_eq!(intake.refused[0].1, Reason::Name);
}

fn set_values(request: &mut ExportMetricsServiceRequest) {
    let metric = &mut request.resource_metrics[0].scope_metrics[0].metrics[0];
    if let Some(Data::Gauge(gauge)) = &mut metric.data {
        let value = Some(Value::AsDouble(1.0));
        gauge
            .data_points
            .iter_mut()
            .for_each(|point| point.value = value);
    }
}

/// The error for a JSON metric with this data.
fn said_of(data: &str) -> String {
    let json = request(&format!(r#"{{"name":"temp",{data}}}"#));
    read(Encoding::Json, json.as_bytes()).unwrap_err()
}

#[test]
fn a_metric_in_json_whose_data_cannot_be_read_is_named() {
    let good = r#"{"timeUnixNano":"1000000","asInt":"1"}"#;
    for data in [
        format!(r#""gauge":{{"dataPoints":[{good},{{"timeUnixNano":-5}}]}}"#),
        r#""gauge":{"dataPoints":{}}"#.to_owned(),
        r#""histogram":{"dataPoints":[{"timeUnixNano":"1","count":1.5}]}"#.to_owned(),
        r#""summary":{"dataPoints":[{"attributes":[{"key":"a","value":{"intValue":"x"}}]}]}"#
            .to_owned(),
        format!(r#""gauge":{{"dataPoints":[{good}]}},"sum":{{"dataPoints":[]}}"#),
        r#""gauge":{"dataPoints":[{"asDouble":"many"}]}"#.to_owned(),
    ] {
        let said = said_of(&data);
        let place = "metric \"temp\": resourceMetrics[0].scopeMetrics[0].metrics[0]";
        assert!(said.starts_with(place), "{data}: {said}");
        assert!(said.contains(" at line 3 column "), "{data}: {said}");
    }
    let field = said_of(r#""gauge":{"dataPoints":[{"asDouble":"many"}]}"#);
    let path = ".gauge.dataPoints[0].asDouble: invalid float literal at line 3";
    assert!(field.contains(path), "{field}");
    let long = format!(r#"{{"name":"{}","gauge":5}}"#, "x".repeat(10_000));
    let said = read(Encoding::Json, request(&long).as_bytes()).unwrap_err();
    assert!(said.len() < 400, "{said}");
}

#[test]
fn a_metric_in_json_may_have_no_data_and_what_is_not_known() {
    let found = take(&request(
        r#"{"name":"none"},{"name":"null","gauge":null},{},
           {"later":{"a":[1]},"gauge":{"dataPoints":[{"timeUnixNano":"1000000","asInt":"1"}]},
            "description":"d","unit":"s","metadata":[],"sum":null,"name":"temp"}"#,
    ));
    let expected = [format!("temp{{{LABELS}}}@1=1")];
    assert_eq!((found.lines(), found.refused), (expected.to_vec(), vec![]));
}

#[test]
fn json_is_read_by_the_mapping_of_protobuf() {
    let found = take(&request(
        r#"{"name":"d","description":null,"unit":null,"gauge":{"data_points":[
            {"timeUnixNano":1000000,"asDouble":"1.5"},{"time_unix_nano":"2000000","as_double":"NaN"},
            {"timeUnixNano":3e6,"asDouble":"-Infinity"},{"timeUnixNano":"4000000","asDouble":2},
            {"timeUnixNano":"5000000","asInt":5.0,"exemplars":null,"attributes":[
                {"key":"d","value":{"doubleValue":"1.5"}},{"key":"i","value":{"intValue":7}},
                {"key":"b","value":{"bytesValue":"_-8"}},{"key":"n","value":null}]}]}},
           {"name":"h","histogram":{"aggregationTemporality":"AGGREGATION_TEMPORALITY_CUMULATIVE",
            "dataPoints":[{"timeUnixNano":"6000000","count":"2","sum":"NaN","max":"Infinity",
            "bucketCounts":[1,"1"],"explicitBounds":["0.5"],"attributes":[]}]}}"#,
    ));
    assert_eq!(found.refused, []);
    let expected = [
        "d{L}@1=1.5",
        "d{L}@2=NaN",
        "d{L}@3=-inf",
        "d{L}@4=2",
        r#"d{b="ffef",d="1.5",i="7",L}@5=5"#,
        r#"h_bucket{L,le="0.5"}@6=1"#,
        r#"h_bucket{L,le="+Inf"}@6=2"#,
        "h_count{L}@6=2",
        "h_sum{L}@6=NaN",
        "h_max{L}@6=inf",
    ];
    assert_eq!(
        found.lines(),
        expected.map(|line| line.replace('L', LABELS))
    );
}

/// A gauge without attributes at these seconds, of a resource and a scope with many attributes.
fn described(seconds: &[u64]) -> ExportMetricsServiceRequest {
    let points = seconds.iter().map(|second| {
        format!(
            r#"{{"timeUnixNano":"{second}000000000","asInt":"1","attributes":[
            {{"key":"http.path","value":{{"stringValue":"/"}}}}]}}"#
        )
    });
    let points: Vec<_> = points.collect();
    let text = |key: &str, value: &str| {
        format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#)
    };
    let resource = [
        text("service.namespace", "eu"),
        text("service.name", "shop"),
        text("service.instance.id", "i-1"),
        text("host.name", "a"),
        text("http.path", "outer"),
    ];
    let json = format!(
        r#"{{"resourceMetrics":[{{"resource":{{"attributes":[{}]}},"scopeMetrics":[
            {{"scope":{{"name":"lib","version":"2","attributes":[{}]}},"schemaUrl":"s","metrics":[
            {{"name":"temp.now","unit":"Cel","gauge":{{"dataPoints":[{}]}}}}]}}]}}]}}"#,
        resource.join(","),
        text("x.y", "z"),
        points.join(",")
    );
    read(Encoding::Json, json.as_bytes()).unwrap()
}

fn lines_of(request: &ExportMetricsServiceRequest, naming: &Naming) -> Vec<String> {
    let mut intake = Collected::default();
    Decoder::new(naming).decode(request, &mut intake);
    assert_eq!(intake.refused, []);
    intake.lines()
}

#[test]
fn a_resource_is_a_job_and_an_instance_and_is_described_by_target_info() {
    let naming = Naming::default();
    let expected = [
        r#"temp.now{http.path="/",instance="i-1",job="eu/shop"}@1000=1"#,
        r#"target_info{host.name="a",http.path="outer",instance="i-1",job="eu/shop"}@1000=1"#,
    ];
    assert_eq!(lines_of(&described(&[1]), &naming), expected);
    // A sample of it is found wherever PromQL looks for one, and no more than that.
    let lines = lines_of(&described(&[401, 1, 2, 150, 151, 161, 402, 402]), &naming);
    let infos = lines.iter().filter(|line| line.starts_with("target_info"));
    let times: Vec<_> = infos.map(|line| line.rsplit_once('@').unwrap().1).collect();
    assert_eq!(times, ["1000=1", "151000=1", "401000=1", "402000=1"]);
    // Nothing to tell, or nobody to tell it of.
    for kept in [0..3, 3..5] {
        let mut request = described(&[1]);
        let resource = request.resource_metrics[0].resource.as_mut().unwrap();
        resource.attributes = resource.attributes[kept].to_vec();
        assert_eq!(lines_of(&request, &naming).len(), 1);
    }
    // One that is too long is refused, as no data point.
    let (mut request, mut intake) = (described(&[1]), Collected::default());
    let resource = request.resource_metrics[0].resource.as_mut().unwrap();
    let long = any_value::Value::StringValue("x".repeat(300 << 10));
    resource.attributes[3].value = Some(AnyValue { value: Some(long) });
    Decoder::new(&naming).decode(&request, &mut intake);
    assert_eq!((intake.samples.len(), intake.refused.len()), (1, 1));
    assert_eq!(intake.refused[0].0, 0);
}

#[test]
fn attributes_of_resources_and_scopes_become_labels_where_that_is_asked_for() {
    let naming = Naming {
        promoted: vec!["http.path".into(), "host.name".into()],
        scope_labels: true,
        ..Naming::default()
    };
    let lines = lines_of(&described(&[1]), &naming);
    let expected = r#"temp.now{host.name="a",http.path="/",instance="i-1",job="eu/shop",otel_scope_name="lib",otel_scope_schema_url="s",otel_scope_version="2",otel_scope_x.y="z"}@1000=1"#;
    assert_eq!(lines[0], expected);
    let all = Naming {
        translation: Translation::UnderscoreEscapingWithSuffixes,
        ..promoting()
    };
    let expected = [
        r#"temp_now_celsius{host_name="a",http_path="/",instance="i-1",job="eu/shop",service_instance_id="i-1",service_name="shop",service_namespace="eu"}@1000=1"#,
        r#"target_info{host_name="a",http_path="outer",instance="i-1",job="eu/shop"}@1000=1"#,
    ];
    assert_eq!(lines_of(&described(&[1]), &all), expected);
}
