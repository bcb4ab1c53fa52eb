//! Functions of instant vectors and scalars; `tests/oracle` compares them with Prometheus.

use crate::evaluation::MIN;
use crate::evaluation::memory::Memory;
use crate::evaluation::table::{check, check_range, notes};

#[test]
fn values_change_and_names_go() {
    let memory = Memory::load(MIN, "x{a=\"1\"} 2.5 \n x{a=\"2\"} -1.5 \n t 951782400.5");
    check(
        &memory,
        0,
        &[
            ("abs(x)", "{a=\"1\"} 2.5; {a=\"2\"} 1.5"),
            ("round(x)", "{a=\"1\"} 3; {a=\"2\"} -1"),
            ("round(x, 2)", "{a=\"1\"} 2; {a=\"2\"} -2"),
            ("clamp(x, 0, 1)", "{a=\"1\"} 1; {a=\"2\"} 0"),
            ("clamp(x, 1, 0)", ""),
            ("clamp_min(x, NaN)", "{a=\"1\"} NaN; {a=\"2\"} NaN"),
            ("sgn(x)", "{a=\"1\"} 1; {a=\"2\"} -1"),
            ("log10(vector(1000))", "{} 3"),
            ("day_of_month(t) + month(t) / 100", "{} 29.02"),
            ("days_in_month(t)", "{} 29"),
            ("year(vector(NaN))", "{} 292277026596"),
            ("hour()", "{} 0"),
            ("scalar(t) - 951782400", "0.5"),
            ("scalar(x)", "NaN"),
            ("max_of(1, NaN)", "NaN"),
            ("min_of(-Inf, NaN)", "-Inf"),
            ("absent(x)", ""),
            ("absent(y{a=\"1\",b=~\"2\",c=\"3\",c=\"4\"})", "{a=\"1\"} 1"),
            ("absent(sum(y{a=\"1\"}))", "{} 1"),
            ("timestamp(abs(t))", "{} 0"),
        ],
    );
    let times = (0, 2 * MIN, MIN);
    check_range(&memory, times, &[("vector(time())", "{} 0 60 120")]);
}

#[test]
fn labels_are_replaced_and_joined() {
    let memory = Memory::load(MIN, "x{a=\"v1\",b=\"w\"} 1 \n x{a=\"2\",b=\"w\"} 2");
    check(
        &memory,
        0,
        &[
            (
                "label_replace(x, \"c\", \"$n-${n}$$\", \"a\", \"v(?P<n>.)\")",
                "x{a=\"2\", b=\"w\"} 2; x{a=\"v1\", b=\"w\", c=\"1-1$\"} 1",
            ),
            (
                "label_replace(x{a=\"2\"}, \"a\", \"\", \"a\", \".*\")",
                "x{b=\"w\"} 2",
            ),
            (
                "label_replace(x, \"a\", \"z\", \"a\", \".*\")",
                "error: vector cannot contain metrics with the same labelset",
            ),
            (
                "label_replace(x, \"\", \"z\", \"a\", \".*\")",
                "error: invalid destination label name in label_replace(): ",
            ),
            (
                "label_replace(x, \"a\", \"z\", \"a\", \"(\")",
                "error: invalid regular expression in label_replace(): (",
            ),
            (
                "label_join(x{a=\"2\"}, \"__name__\", \"/\", \"a\", \"none\", \"b\")",
                "2//w{a=\"2\", b=\"w\"} 2",
            ),
        ],
    );
}

#[test]
fn an_instant_vector_is_sorted() {
    let memory = Memory::load(
        MIN,
        "x{a=\"b10\"} 2 \n x{a=\"b9\"} NaN \n x{a=\"c\"} 1 \n x 3",
    );
    check(
        &memory,
        0,
        &[
            (
                "sort(x)",
                "x{a=\"c\"} 1; x{a=\"b10\"} 2; x 3; x{a=\"b9\"} NaN",
            ),
            (
                "sort_desc(x)",
                "x 3; x{a=\"b10\"} 2; x{a=\"c\"} 1; x{a=\"b9\"} NaN",
            ),
            (
                "sort_by_label(x, \"a\")",
                "x 3; x{a=\"b9\"} NaN; x{a=\"b10\"} 2; x{a=\"c\"} 1",
            ),
            (
                "sort_by_label_desc(x{a!=\"\"}, \"none\", \"a\")",
                "x{a=\"c\"} 1; x{a=\"b10\"} 2; x{a=\"b9\"} NaN",
            ),
        ],
    );
}

#[test]
fn classic_histograms_are_repaired_and_say_so() {
    let memory = Memory::load(
        MIN,
        "h{le=\"1\"} 10 \n h{le=\"1.0\"} 10 \n h{le=\"2\"} 5 \n h{le=\"+Inf\"} 40 \n \
         g{le=\"1\"} 10 \n g{le=\"2\"} 16 \n g{le=\"Inf\"} 20 \n bad{le=\"x\"} 1",
    );
    check(
        &memory,
        0,
        &[
            ("histogram_quantile(0.25, h)", "{} 0.5"),
            ("histogram_quantile(0.65, g)", "{} 1.5"),
            ("histogram_quantile(0.5, g{le!~\".*Inf\"})", "{} NaN"),
            ("histogram_fraction(0.5, 1.5, g)", "{} 0.4"),
            (
                "histogram_quantiles(g, \"q\", 0.5, 1)",
                "{q=\"0.5\"} 1; {q=\"1.0\"} 2",
            ),
            ("histogram_quantile(0.5, bad)", ""),
            (
                "histogram_sum(g)",
                "error: histogram_sum: native histograms are not supported",
            ),
        ],
    );
    assert_eq!(
        notes(&memory, "histogram_quantile(0.25, h)", 0),
        [
            "PromQL info: input to histogram_quantile needed to be fixed for monotonicity (see \
             https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile), \
             from buckets 2 to 2, with a max diff of 15, over 1 samples from 1970-01-01T00:00:00Z \
             to 1970-01-01T00:00:00Z @25"
        ]
    );
    assert_eq!(
        notes(&memory, "histogram_quantile(2, bad)", 0),
        [
            "PromQL warning: bucket label \"le\" is missing or has a malformed value of \"x\" @22",
            "PromQL warning: quantile value should be between 0 and 1, got 2 @19",
        ]
    );
}

#[test]
fn labels_of_information_metrics_count_step_by_step() {
    let memory = Memory::load(
        MIN,
        "up{instance=\"i\",job=\"j\"} 1 2 3 \n up{instance=\"k\",job=\"j\"} 4 5 6 \n \
         target_info{instance=\"i\",job=\"j\",v=\"1\"} 1 1 stale \n \
         target_info{instance=\"i\",job=\"j\",v=\"2\"} _ _ 1 \n \
         build_info{instance=\"i\",job=\"j\",v=\"3\",r=\"4\"} 1 1 1",
    );
    let both = "up{instance=\"i\", job=\"j\", v=\"1\"} 1 2 _; \
                up{instance=\"i\", job=\"j\", v=\"2\"} _ _ 3";
    let other = "up{instance=\"k\", job=\"j\"} 4 5 6";
    let times = (0, 2 * MIN, MIN);
    check_range(
        &memory,
        times,
        &[
            ("info(up)", &*format!("{both}; {other}")),
            ("info(up, {v=~\".+\"})", both),
            (
                "info(up{instance=\"i\"}, {__name__=\"build_info\", r=\"4\"})",
                "up{instance=\"i\", job=\"j\", r=\"4\"} 1 2 3",
            ),
            (
                "info(up, {__name__=~\".+_info\"})",
                "error: conflicting label: v",
            ),
        ],
    );
}
