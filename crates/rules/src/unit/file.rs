//! A file of unit tests.

use crate::decode::Decoder;
use crate::fault::{Fault, Faults};
use crate::yaml::{self, Node};
use latewood_promql::labels::Labels;
use latewood_wire::prometheus::time;
use std::collections::BTreeMap;

/// The evaluation interval of a file without one, milliseconds.
const INTERVAL_MS: i64 = 60_000;

/// A file of unit tests. Durations are milliseconds.
#[derive(Debug)]
pub(super) struct TestFile {
    /// Patterns, relative to the file.
    pub(super) rule_files: Vec<String>,
    pub(super) evaluation_interval_ms: i64,
    pub(super) group_eval_order: Vec<String>,
    /// Values may differ in the last bit.
    pub(super) fuzzy_compare: bool,
    pub(super) tests: Vec<Test>,
}

/// A test.
#[derive(Debug)]
pub(super) struct Test {
    /// Empty if it has none.
    pub(super) name: String,
    /// Between the values of series.
    pub(super) interval_ms: i64,
    pub(super) start_ms: i64,
    pub(super) external_labels: Labels,
    pub(super) external_url: String,
    pub(super) input_series: Vec<InputSeries>,
    pub(super) alerts: Vec<AlertTest>,
    pub(super) exprs: Vec<ExprTest>,
}

/// A series as it is written.
#[derive(Debug)]
pub(super) struct InputSeries {
    pub(super) series: String,
    pub(super) values: String,
}

/// The alerts of a name that fire at a time.
#[derive(Debug)]
pub(super) struct AlertTest {
    pub(super) at_ms: i64,
    pub(super) alertname: String,
    pub(super) alerts: Vec<Alert>,
}

/// Labels and annotations, by name; an empty text is one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Alert {
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
}

/// What an expression gives at a time.
#[derive(Debug)]
pub(super) struct ExprTest {
    pub(super) expr: String,
    pub(super) at_ms: i64,
    pub(super) samples: Vec<Sample>,
}

/// A sample as it is written.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) labels: String,
    pub(super) value: f64,
    /// Where it is one, its text.
    pub(super) histogram: String,
}

impl TestFile {
    pub(super) fn parse(text: &str) -> Result<Self, Faults> {
        let parsed = yaml::parse(text);
        let (root, _) = parsed
            .map_err(|error| vec![Fault::at(error.place, format!("yaml: {}", error.what))])?;
        let nothing = Node::nothing();
        let mut decoder = Decoder::default();
        let file = file(&mut decoder, root.as_ref().unwrap_or(&nothing));
        if decoder.faults.is_empty() {
            Ok(file)
        } else {
            Err(decoder.faults)
        }
    }
}

fn file(decoder: &mut Decoder, node: &Node) -> TestFile {
    let mut fields = decoder.fields(node, "main.unitTestFile");
    let rule_files = strings(decoder, fields.get("rule_files"));
    let interval_ms = decoder.duration(fields.get("evaluation_interval"));
    let interval_ms = interval_ms.filter(|interval_ms| *interval_ms > 0);
    let evaluation_interval_ms = interval_ms.unwrap_or(INTERVAL_MS);
    let group_eval_order = strings(decoder, fields.get("group_eval_order"));
    let fuzzy_compare = decoder.flag(fields.get("fuzzy_compare"));
    let tests = list(decoder, fields.get("tests"), |decoder, node| {
        test(decoder, node, evaluation_interval_ms)
    });
    decoder.end(&fields);
    TestFile {
        rule_files,
        evaluation_interval_ms,
        group_eval_order,
        fuzzy_compare,
        tests,
    }
}

fn list<T>(
    decoder: &mut Decoder,
    node: Option<&Node>,
    item: impl Fn(&mut Decoder, &Node) -> T,
) -> Vec<T> {
    let nodes = decoder.items(node);
    nodes.iter().map(|node| item(decoder, node)).collect()
}

fn strings(decoder: &mut Decoder, node: Option<&Node>) -> Vec<String> {
    list(decoder, node, |decoder, node| {
        decoder.text(Some(node)).to_owned()
    })
}

fn texts(decoder: &mut Decoder, node: Option<&Node>) -> BTreeMap<String, String> {
    let texts = decoder.texts(node).into_iter();
    texts.map(|(name, (text, _))| (name, text)).collect()
}

fn test(decoder: &mut Decoder, node: &Node, evaluation_interval_ms: i64) -> Test {
    let mut fields = decoder.fields(node, "main.testGroup");
    let name = decoder.text(fields.get("name")).to_owned();
    let interval_ms = decoder.duration(fields.get("interval"));
    let interval_ms = interval_ms.filter(|interval_ms| *interval_ms > 0);
    let start = fields.get("start_timestamp");
    let start_ms = match decoder.text(start) {
        "" => 0,
        text => time::parse_time(text).unwrap_or_else(|error| {
            let place = start.map_or(fields.place, |node| node.place);
            decoder.fault(place, error.to_string());
            0
        }),
    };
    let external_labels = texts(decoder, fields.get("external_labels"));
    let pairs = external_labels.iter();
    let external_labels = Labels::from_pairs(pairs.map(|(name, value)| (&**name, &**value)));
    let external_url = decoder.text(fields.get("external_url")).to_owned();
    let input_series = list(decoder, fields.get("input_series"), input_series);
    let alerts = list(decoder, fields.get("alert_rule_test"), alert_test);
    let exprs = list(decoder, fields.get("promql_expr_test"), expr_test);
    decoder.end(&fields);
    Test {
        name,
        interval_ms: interval_ms.unwrap_or(evaluation_interval_ms),
        start_ms,
        external_labels,
        external_url,
        input_series,
        alerts,
        exprs,
    }
}

fn input_series(decoder: &mut Decoder, node: &Node) -> InputSeries {
    let mut fields = decoder.fields(node, "main.series");
    let series = decoder.text(fields.get("series")).to_owned();
    let values = decoder.text(fields.get("values")).to_owned();
    decoder.end(&fields);
    InputSeries { series, values }
}

fn alert_test(decoder: &mut Decoder, node: &Node) -> AlertTest {
    let mut fields = decoder.fields(node, "main.alertTestCase");
    let at_ms = decoder.duration(fields.get("eval_time")).unwrap_or(0);
    let alertname = decoder.text(fields.get("alertname")).to_owned();
    let alerts = list(decoder, fields.get("exp_alerts"), |decoder, node| {
        let mut fields = decoder.fields(node, "main.alert");
        let labels = texts(decoder, fields.get("exp_labels"));
        let annotations = texts(decoder, fields.get("exp_annotations"));
        decoder.end(&fields);
        Alert {
            labels,
            annotations,
        }
    });
    decoder.end(&fields);
    AlertTest {
        at_ms,
        alertname,
        alerts,
    }
}

fn expr_test(decoder: &mut Decoder, node: &Node) -> ExprTest {
    let mut fields = decoder.fields(node, "main.promqlTestCase");
    let expr = decoder.text(fields.get("expr")).to_owned();
    let at_ms = decoder.duration(fields.get("eval_time")).unwrap_or(0);
    let samples = list(decoder, fields.get("exp_samples"), |decoder, node| {
        let mut fields = decoder.fields(node, "main.sample");
        let labels = decoder.text(fields.get("labels")).to_owned();
        let value = decoder.float(fields.get("value")).unwrap_or(0.0);
        let histogram = decoder.text(fields.get("histogram")).to_owned();
        decoder.end(&fields);
        Sample {
            labels,
            value,
            histogram,
        }
    });
    decoder.end(&fields);
    ExprTest {
        expr,
        at_ms,
        samples,
    }
}
