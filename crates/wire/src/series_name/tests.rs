//! Names of series: put together, refused, and read back.

use super::*;
use proptest::prelude::*;

fn key(metric: &str, labels: &[(&str, &str)]) -> Result<String, NameError> {
    let mut name = SeriesName::new();
    name.begin(metric.as_bytes());
    for (label, value) in labels {
        name.label(label.as_bytes(), value.as_bytes());
    }
    name.finish()?;
    Ok(String::from_utf8(name.key().to_vec()).unwrap())
}

#[test]
fn the_order_of_labels_does_not_matter() {
    let wanted = "cpu{az=\"b\",host=\"a\"}";
    assert_eq!(key("cpu", &[("host", "a"), ("az", "b")]).unwrap(), wanted);
    assert_eq!(key("cpu", &[("az", "b"), ("host", "a")]).unwrap(), wanted);
    assert_eq!(key("sys.cpu:user", &[]).unwrap(), "sys.cpu:user");
}

#[test]
fn an_empty_value_is_no_label() {
    assert_eq!(key("cpu", &[("host", "")]).unwrap(), "cpu");
}

#[test]
fn values_are_escaped_and_odd_names_quoted() {
    assert_eq!(
        key("cpu", &[("a", "x\"y\\z\n")]).unwrap(),
        "cpu{a=\"x\\\"y\\\\z\\n\"}"
    );
    assert_eq!(
        key("c{p}", &[("a b", "x")]).unwrap(),
        "{\"c{p}\",\"a b\"=\"x\"}"
    );
    assert_eq!(key("my cpu", &[]).unwrap(), "{\"my cpu\"}");
}

#[test]
fn the_metric_is_a_label_among_the_others() {
    let mut name = SeriesName::new();
    name.begin(b"cpu");
    name.label(b"Zone", b"1");
    name.label(b"az", b"2");
    name.finish().unwrap();
    let labels: Vec<_> = name.labels().collect();
    let wanted: [(&[u8], &[u8]); 3] = [(b"Zone", b"1"), (b"__name__", b"cpu"), (b"az", b"2")];
    assert_eq!(labels, wanted);
}

#[test]
fn what_is_no_name_is_refused_in_words() {
    assert_eq!(key("", &[]), Err(NameError::NoMetric));
    assert_eq!(key("a", &[("", "v")]), Err(NameError::NoLabelName));
    let doubled = key("a", &[("x", "1"), ("y", "2"), ("x", "1")]);
    assert_eq!(doubled, Err(NameError::Doubled("x".to_owned())));
    let doubled = key("a", &[("__name__", "b")]);
    assert_eq!(doubled, Err(NameError::Doubled("__name__".to_owned())));
    let long = "x".repeat(LABEL_BYTES_MAX);
    assert_eq!(key("a", &[("l", &long)]), Err(NameError::TooLong));
    let key_long = "x".repeat(KEY_BYTES_MAX);
    assert_eq!(key("a", &[("l", &key_long)]), Err(NameError::KeyTooLong));
    let labels: Vec<_> = (0..10_000).map(|n| format!("l{n}")).collect();
    let labels: Vec<_> = labels.iter().map(|name| (name.as_str(), "v")).collect();
    assert_eq!(key("a", &labels), Err(NameError::TooMany));
    assert_eq!(key("a", &labels[..LABELS_MAX]), Err(NameError::TooMany));
    assert!(key("a", &labels[..LABELS_MAX - 1]).is_ok());
    let mut name = SeriesName::new();
    name.begin(b"a");
    name.label(b"l", b"\xff");
    assert!(matches!(name.finish(), Err(NameError::NotUtf8(_))));
}

#[test]
fn what_is_no_key_of_a_name_is_not_read() {
    let mut name = SeriesName::new();
    for key in [
        "",
        "a b",
        "a{}",
        "a{",
        "a{b}",
        "a{b=}",
        "a{b=\"c\"",
        "a{b=\"c}",
        "a{b=\"c\",}",
        "{}",
        "{b=\"c\"}",
        "a{b=\"c\",a=\"d\"}",
        "a{b=\"\"}",
        "{\"plain\"}",
        "a{\"b\"=\"c\"}",
        "a{b=\"\\q\"}",
        "a{b=\"c\"}d",
        "a{__name__=\"b\"}",
    ] {
        assert!(!name.read(key.as_bytes()), "{key} was read");
        assert_eq!(name.labels().count(), 0);
    }
}

proptest! {
    #[test]
    fn a_key_is_read_back_as_it_was_put_together(
        metric in "[a-c{}\"\\\\,= \n√]{1,4}",
        labels in proptest::collection::btree_map("[x-z{}\"\\\\,= \n√]{1,3}", "[a{}\"\\\\,= \n√]{1,4}", 0..4),
    ) {
        let mut name = SeriesName::new();
        name.begin(metric.as_bytes());
        for (label, value) in &labels {
            name.label(label.as_bytes(), value.as_bytes());
        }
        name.finish().unwrap();
        let mut again = SeriesName::new();
        prop_assert!(again.read(name.key()));
        prop_assert_eq!(name.labels().collect::<Vec<_>>(), again.labels().collect::<Vec<_>>());
    }

    #[test]
    fn any_bytes_are_read_or_refused(key in proptest::collection::vec(any::<u8>(), 0..40)) {
        let mut name = SeriesName::new();
        if name.read(&key) {
            prop_assert_eq!(name.key(), &key[..]);
        }
    }
}
