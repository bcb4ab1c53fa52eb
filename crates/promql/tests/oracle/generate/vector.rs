//! Vectors: functions of vectors, of ranges and of labels, histograms, `info`.

use super::Generator;
use crate::oracle::expression::{Expr, Kind};
use rand::RngExt;

/// Functions of a vector that need nothing else.
#[rustfmt::skip]
const OF_VECTOR: &[&str] = &[
    "abs", "absent", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh",
    "day_of_month", "day_of_week", "day_of_year", "days_in_month", "deg", "exp", "floor", "hour",
    "ln", "log10", "log2", "minute", "month", "rad", "round", "sgn", "sin", "sinh", "sort",
    "sort_desc", "sqrt", "tan", "tanh", "timestamp", "year",
];
/// Functions of a range that need nothing else.
#[rustfmt::skip]
const OF_MATRIX: &[&str] = &[
    "absent_over_time", "avg_over_time", "changes", "count_over_time", "delta", "deriv",
    "first_over_time", "idelta", "increase", "integral", "irate", "last_over_time",
    "mad_over_time", "max_over_time", "min_over_time", "present_over_time", "rate", "resets",
    "stddev_over_time", "stdvar_over_time", "sum_over_time", "ts_of_first_over_time",
    "ts_of_last_over_time", "ts_of_max_over_time", "ts_of_min_over_time",
];
impl Generator<'_> {
    pub(crate) fn vector(&mut self, depth: u32) -> Expr {
        if depth == 0 {
            return self.instant();
        }
        let next = depth - 1;
        match self.rng.random_range(0..100) {
            0..12 => self.instant(),
            12..24 => {
                let pattern = match self.pick(OF_VECTOR) {
                    // Of large values, their last digits decide.
                    name @ ("sin" | "cos" | "tan") => format!("{name}(clamp(#, -100, 100))"),
                    name => format!("{name}(#)"),
                };
                Expr::of(Kind::Vector, &pattern, [self.vector(next)])
            }
            24..42 => {
                let pattern = format!("{}(#)", self.pick(OF_MATRIX));
                Expr::of(Kind::Vector, &pattern, [self.matrix(next)])
            }
            42..58 => self.aggregation(next),
            58..76 => self.binary(next),
            76..80 => Expr::of(Kind::Vector, "-#", [self.vector(next)]),
            80..82 => Expr::of(Kind::Vector, "(#)", [self.vector(next)]),
            _ => self.other(next),
        }
    }

    fn other(&mut self, depth: u32) -> Expr {
        let kind = Kind::Vector;
        match self.rng.random_range(0..22) {
            0 => Expr::of(kind, "vector(#)", [self.scalar(depth)]),
            1 => {
                let pattern = format!(
                    "{}()",
                    self.pick(&["hour", "minute", "day_of_week", "year"])
                );
                Expr::leaf(kind, pattern)
            }
            2 => Expr::of(
                kind,
                "round(#, #)",
                [self.vector(depth), self.scalar(depth)],
            ),
            3 => {
                let three = [self.vector(depth), self.scalar(depth), self.scalar(depth)];
                Expr::of(kind, "clamp(#, #, #)", three)
            }
            4 => {
                let name = self.pick(&["clamp_min", "clamp_max"]);
                Expr::of(
                    kind,
                    &format!("{name}(#, #)"),
                    [self.vector(depth), self.scalar(depth)],
                )
            }
            5..8 => self.relabel(depth),
            8..11 => self.histogram(depth),
            11 => {
                let (q, matrix) = (self.scalar(depth), self.matrix(depth));
                Expr::of(kind, "quantile_over_time(#, #)", [q, matrix])
            }
            12 => {
                let (matrix, t) = (self.matrix(depth), self.scalar(depth));
                Expr::of(kind, "predict_linear(#, #)", [matrix, t])
            }
            13 => {
                let factors = [
                    Expr::leaf(Kind::Scalar, self.pick(&["0.3", "0.5", "0.9", "1", "2"])),
                    Expr::leaf(Kind::Scalar, self.pick(&["0.1", "0.5", "0.8"])),
                ];
                let [smoothing, trend] = factors;
                let three = [self.matrix(depth), smoothing, trend];
                Expr::of(kind, "double_exponential_smoothing(#, #, #)", three)
            }
            14 => {
                let strategy = Expr::leaf(Kind::Scalar, self.pick(&["0", "1", "2", "3"]));
                Expr::of(kind, "integral(#, #)", [self.matrix(depth), strategy])
            }
            15..18 => self.info(depth),
            18 => {
                let name = self.pick(&["sort_by_label", "sort_by_label_desc"]);
                let labels =
                    self.pick(&["\"a\"", "\"b\", \"a\"", "\"instance\"", "\"le\", \"job\""]);
                Expr::of(kind, &format!("{name}(#, {labels})"), [self.vector(depth)])
            }
            19 => Expr::of(kind, "timestamp(#)", [self.instant()]),
            20 => Expr::of(kind, "absent(#)", [self.instant()]),
            _ => Expr::of(kind, "absent_over_time(#)", [self.matrix(0)]),
        }
    }

    fn relabel(&mut self, depth: u32) -> Expr {
        let vector = self.vector(depth);
        let target = self.pick(&[
            "\"new\"",
            "\"a\"",
            "\"b\"",
            "\"__name__\"",
            "\"my.label\"",
            "\"\"",
        ]);
        let source = self.pick(&[
            "\"a\"",
            "\"b\"",
            "\"job\"",
            "\"__name__\"",
            "\"le\"",
            "\"none\"",
        ]);
        if self.chance(30) {
            let labels = self.pick(&[
                "\"a\"",
                "\"a\", \"b\"",
                "\"job\", \"none\", \"instance\"",
                "\"\"",
            ]);
            let separator = self.pick(&["\"-\"", "\"\"", "\", \""]);
            let pattern = format!("label_join(#, {target}, {separator}, {labels})");
            return Expr::of(Kind::Vector, &pattern, [vector]);
        }
        let template = self.pick(&[
            "\"$1\"",
            "\"x\"",
            "\"\"",
            "\"${1}_y\"",
            "\"$1y-$2-$$-$\"",
            "\"$n\"",
            "\"$0\"",
        ]);
        let regex = self.pick(&[
            "\"(.*)\"",
            "\"(.).*\"",
            "\"1|2\"",
            "\"(?P<n>.+)(x?)\"",
            "\"\"",
            "\"(\"",
            "\".*\"",
        ]);
        let pattern = format!("label_replace(#, {target}, {template}, {source}, {regex})");
        Expr::of(Kind::Vector, &pattern, [vector])
    }

    fn histogram(&mut self, depth: u32) -> Expr {
        let kind = Kind::Vector;
        let buckets = match self.rng.random_range(0..10) {
            0..4 => Expr::of(
                kind,
                "h_bucket#",
                [self.maybe(30, |of| format!("{{{}}}", of.matcher()))],
            ),
            4..7 => Expr::of(kind, "rate(h_bucket[#])", [self.duration()]),
            7 | 8 => {
                let pattern = "sum by (le#) (increase(h_bucket[#]))";
                let label = self.maybe(60, |of| format!(", {}", of.label()));
                Expr::of(kind, pattern, [label, self.duration()])
            }
            _ => self.vector(depth),
        };
        match self.rng.random_range(0..10) {
            0..6 => Expr::of(
                kind,
                "histogram_quantile(#, #)",
                [self.scalar(depth), buckets],
            ),
            6..8 => {
                let three = [self.scalar(depth), self.scalar(depth), buckets];
                Expr::of(kind, "histogram_fraction(#, #, #)", three)
            }
            _ => {
                let label = self.pick(&["\"q\"", "\"a\"", "\"quantile\""]);
                let pattern = format!("histogram_quantiles(#, {label}, #, #)");
                let last = Expr::leaf(Kind::Scalar, self.number());
                Expr::of(kind, &pattern, [buckets, self.scalar(1), last])
            }
        }
    }

    fn info(&mut self, depth: u32) -> Expr {
        let kind = Kind::Vector;
        let vector = if self.chance(50) {
            Expr::leaf(
                kind,
                self.pick(&[
                    "up",
                    "m",
                    "rate(c_total[2m])",
                    "{job=\"j1\"}",
                    "up @ 600",
                    "up offset 1m",
                ]),
            )
        } else {
            self.vector(depth)
        };
        let data = self.maybe(60, |of| {
            let data = [
                "{version=~\".+\"}",
                "{version=\"1\"}",
                "{__name__=\"build_info\"}",
                "{__name__=~\".+_info\"}",
                "{__name__=~\"build_info|target_info\", version=~\".*\"}",
                "{env=~\".+\", version=~\".+\"}",
                "{env=\"\"}",
                "{none=\"x\"}",
                "{__name__!=\"build_info\"}",
            ];
            format!(", {}", of.pick(&data))
        });
        Expr::of(kind, "info(##)", [vector, data])
    }
}
