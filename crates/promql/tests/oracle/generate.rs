//! A generator of random expressions: all operators, functions and modifiers on floats.

use crate::expression::{Expr, Kind};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

/// Functions of a vector that need nothing else.
const OF_VECTOR: &[&str] = &[
    "abs",
    "absent",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "ceil",
    "cos",
    "cosh",
    "day_of_month",
    "day_of_week",
    "day_of_year",
    "days_in_month",
    "deg",
    "exp",
    "floor",
    "hour",
    "ln",
    "log10",
    "log2",
    "minute",
    "month",
    "rad",
    "round",
    "sgn",
    "sin",
    "sinh",
    "sort",
    "sort_desc",
    "sqrt",
    "tan",
    "tanh",
    "timestamp",
    "year",
];
/// Functions of a range that need nothing else.
const OF_MATRIX: &[&str] = &[
    "absent_over_time",
    "avg_over_time",
    "changes",
    "count_over_time",
    "delta",
    "deriv",
    "first_over_time",
    "idelta",
    "increase",
    "integral",
    "irate",
    "last_over_time",
    "mad_over_time",
    "max_over_time",
    "min_over_time",
    "present_over_time",
    "rate",
    "resets",
    "stddev_over_time",
    "stdvar_over_time",
    "sum_over_time",
    "ts_of_first_over_time",
    "ts_of_last_over_time",
    "ts_of_max_over_time",
    "ts_of_min_over_time",
];
const METRICS: &[&str] = &[
    "m", "m", "n", "c_total", "c_total", "h_bucket", "up", "sparse", "constant", "odd", "missing",
];
const LABELS: &[&str] = &[
    "a",
    "b",
    "le",
    "instance",
    "job",
    "__name__",
    "\"my.label\"",
    "none",
];

/// The generator.
pub(crate) struct Generator<'a> {
    pub(crate) rng: &'a mut StdRng,
}

impl Generator<'_> {
    /// Any expression that a query may be.
    pub(crate) fn expr(&mut self) -> Expr {
        let depth = self.rng.random_range(0..5);
        match self.rng.random_range(0..100) {
            0..5 => self.scalar(depth),
            5..8 => self.matrix(depth),
            8 => self.text(),
            _ => self.vector(depth),
        }
    }

    fn pick<'b>(&mut self, from: &[&'b str]) -> &'b str {
        from.choose(self.rng).expect("not empty")
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_range(0..100) < percent
    }

    /// The text, or nothing.
    fn maybe(&mut self, percent: u32, of: impl FnOnce(&mut Self) -> String) -> Expr {
        let text = match self.chance(percent) {
            true => of(self),
            false => String::new(),
        };
        Expr::leaf(Kind::Optional, text)
    }

    fn text(&mut self) -> Expr {
        let texts = ["\"a\"", "\"\"", "'b c'", "`x`", "\"d\\n\\\"é\""];
        Expr::leaf(Kind::Text, self.pick(&texts))
    }

    fn number(&mut self) -> String {
        let fixed = [
            "0", "1", "2", "-1", "0.5", "0.9", "100", "1e3", "0x1f", "1_000", "Inf", "-Inf", "NaN",
            "5m", "3", "1.5", "60", "-0.25",
        ];
        match self.chance(80) {
            true => self.pick(&fixed).to_owned(),
            false => format!("{}", self.rng.random_range(-1e3..1e3)),
        }
    }

    fn scalar(&mut self, depth: u32) -> Expr {
        let kind = Kind::Scalar;
        if depth == 0 || self.chance(40) {
            let text = match self.rng.random_range(0..12) {
                0 => "time()".to_owned(),
                1 => "pi()".to_owned(),
                2 => self
                    .pick(&["start()", "end()", "step()", "range()"])
                    .to_owned(),
                _ => self.number(),
            };
            return Expr::leaf(kind, text);
        }
        let next = depth - 1;
        match self.rng.random_range(0..8) {
            0 | 1 => Expr::of(kind, "scalar(#)", [self.vector(next)]),
            2 => {
                let two = [self.scalar(next), self.scalar(next)];
                let pattern = format!("{}(#, #)", self.pick(&["max_of", "min_of"]));
                Expr::of(kind, &pattern, two)
            }
            3 => Expr::of(kind, "-#", [self.scalar(next)]),
            4 => Expr::of(kind, "(#)", [self.scalar(next)]),
            5 => {
                let op = self.pick(&["==", "!=", ">", "<", ">=", "<="]);
                let two = [self.scalar(next), self.scalar(next)];
                Expr::of(kind, &format!("(# {op} bool #)"), two)
            }
            _ => {
                let op = self.pick(&["+", "-", "*", "/", "%", "^", "atan2"]);
                let two = [self.scalar(next), self.scalar(next)];
                Expr::of(kind, &format!("(# {op} #)"), two)
            }
        }
    }

    fn duration(&mut self) -> Expr {
        let fixed = [
            "15s", "30s", "1m", "2m", "3m", "5m", "10m", "90s", "1m30s", "120", "1h", "500ms",
        ];
        let computed = [
            "1m+30s",
            "2m*2",
            "(5m/2)",
            "step()",
            "max_of(step(),1m)",
            "min_of(range(), 5m)",
            "step()+1m",
            "2m^1",
            "7m%4m",
            "-(-1m)",
        ];
        let text = match self.chance(85) {
            true => self.pick(&fixed),
            false => self.pick(&computed),
        };
        Expr::leaf(Kind::Duration, text)
    }

    fn label(&mut self) -> &'static str {
        self.pick(LABELS)
    }

    fn labels(&mut self) -> String {
        let count = self.rng.random_range(0..4);
        let labels: Vec<_> = (0..count).map(|_| self.label()).collect();
        labels.join(", ")
    }

    fn matcher(&mut self) -> String {
        let matchers = [
            "a=\"1\"",
            "a=~\"1|2\"",
            "a!=\"1\"",
            "b=\"x\"",
            "b!~\"x.*\"",
            "b=~\".+\"",
            "none=\"\"",
            "none=\"q\"",
            "le=\"+Inf\"",
            "job=\"j1\"",
            "instance=~\"i.\"",
            "a!~\"[12]\"",
            "a=\"1\",b=\"y\"",
            "a=\"1\",a=\"2\"",
            "\"my.label\"=\"v1\"",
            "a=\"\"",
            "job=~\"j[12]\"",
            "",
        ];
        self.pick(&matchers).to_owned()
    }

    fn selector(&mut self) -> Expr {
        let metric = self.pick(METRICS);
        let matchers = self.maybe(35, |of| format!("{{{}}}", of.matcher()));
        match self.rng.random_range(0..20) {
            0 => {
                let all = [
                    "{__name__=~\"m|n\"}",
                    "{__name__=~\".+_total\"}",
                    "{\"odd.name\"}",
                    "{\"odd.name\", a=\"1\"}",
                    "{job=\"j1\"}",
                    "{__name__!~\"h.*\", a=\"1\"}",
                    "{__name__=~\"m|sparse\", a=~\"1|2\"}",
                ];
                Expr::leaf(Kind::Vector, self.pick(&all))
            }
            _ => Expr::of(Kind::Vector, &format!("{metric}#"), [matchers]),
        }
    }

    /// `offset` and `@`, in both orders.
    fn shifts(&mut self) -> Expr {
        let offset = self.maybe(12, |of| {
            let sign = of.pick(&["", "", "-"]);
            format!(
                " offset {sign}{}",
                of.pick(&["30s", "1m", "5m", "7m30s", "step()", "(1m+15s)"])
            )
        });
        let at = self.maybe(10, |of| {
            let at = ["start()", "end()", "600", "1200.5", "0", "-60", "3000"];
            format!(" @ {}", of.pick(&at))
        });
        match self.chance(50) {
            true => Expr::of(Kind::Optional, "##", [offset, at]),
            false => Expr::of(Kind::Optional, "##", [at, offset]),
        }
    }

    fn instant(&mut self) -> Expr {
        let selector = self.selector();
        let smoothed = self.maybe(3, |of| of.pick(&[" smoothed", " anchored"]).to_owned());
        let shifts = self.shifts();
        Expr::of(Kind::Vector, "###", [selector, smoothed, shifts])
    }

    fn matrix(&mut self, depth: u32) -> Expr {
        if depth == 0 || self.chance(70) {
            let (selector, duration) = (self.selector(), self.duration());
            let smoothed = self.maybe(8, |of| of.pick(&[" smoothed", " anchored"]).to_owned());
            let shifts = self.shifts();
            return Expr::of(
                Kind::Matrix,
                "#[#]##",
                [selector, duration, smoothed, shifts],
            );
        }
        let vector = self.vector(depth - 1);
        let duration = self.duration();
        let step = self.maybe(60, |of| {
            of.pick(&["15s", "1m", "45s", "2m", "step()", "1m+10s"])
                .to_owned()
        });
        let shifts = self.shifts();
        Expr::of(Kind::Matrix, "(#)[#:#]#", [vector, duration, step, shifts])
    }

    pub(crate) fn vector(&mut self, depth: u32) -> Expr {
        if depth == 0 {
            return self.instant();
        }
        let next = depth - 1;
        match self.rng.random_range(0..100) {
            0..12 => self.instant(),
            12..24 => {
                let pattern = format!("{}(#)", self.pick(OF_VECTOR));
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
                Expr::of(kind, &pattern, [buckets, self.scalar(1), self.scalar(0)])
            }
        }
    }

    fn info(&mut self, depth: u32) -> Expr {
        let kind = Kind::Vector;
        let vector = match self.chance(50) {
            true => Expr::leaf(
                kind,
                self.pick(&[
                    "up",
                    "m",
                    "rate(c_total[2m])",
                    "{job=\"j1\"}",
                    "up @ 600",
                    "up offset 1m",
                ]),
            ),
            false => self.vector(depth),
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

    fn aggregation(&mut self, depth: u32) -> Expr {
        let kind = Kind::Vector;
        let group = self.maybe(70, |of| {
            let word = of.pick(&["by", "by", "without"]);
            format!(" {word} ({}) ", of.labels())
        });
        match self.rng.random_range(0..20) {
            0..13 => {
                let names = [
                    "sum", "avg", "min", "max", "count", "group", "stddev", "stdvar",
                ];
                let pattern = format!("{}#(#)", self.pick(&names));
                Expr::of(kind, &pattern, [group, self.vector(depth)])
            }
            13 | 14 => {
                let pattern = format!("{}#(#, #)", self.pick(&["topk", "bottomk"]));
                let k = Expr::leaf(
                    Kind::Scalar,
                    self.pick(&["1", "2", "3", "5", "0", "-1", "time() % 3"]),
                );
                Expr::of(kind, &pattern, [group, k, self.vector(depth)])
            }
            15 | 16 => Expr::of(
                kind,
                "quantile#(#, #)",
                [group, self.scalar(depth), self.vector(depth)],
            ),
            17 => {
                let label = self.pick(&["\"v\"", "\"a\"", "\"my.value\"", "\"\""]);
                Expr::of(
                    kind,
                    &format!("count_values#({label}, #)"),
                    [group, self.vector(depth)],
                )
            }
            18 => {
                let k = Expr::leaf(Kind::Scalar, self.pick(&["1", "2", "3", "0", "-1"]));
                Expr::of(kind, "limitk#(#, #)", [group, k, self.ordered()])
            }
            _ => {
                let ratio = Expr::leaf(
                    Kind::Scalar,
                    self.pick(&["0.5", "-0.5", "0.2", "1", "-1", "1.5", "0"]),
                );
                Expr::of(kind, "limit_ratio#(#, #)", [group, ratio, self.ordered()])
            }
        }
    }

    /// A vector whose order Prometheus does not leave to chance.
    fn ordered(&mut self) -> Expr {
        match self.chance(50) {
            true => self.instant(),
            false => Expr::of(Kind::Vector, "increase(#)", [self.matrix(0)]),
        }
    }

    fn matching(&mut self, sets: bool) -> Expr {
        let on = self.maybe(65, |of| {
            let word = of.pick(&["on", "ignoring"]);
            format!(" {word} ({})", of.labels())
        });
        if sets || on.text().is_empty() {
            return on;
        }
        let group = self.maybe(45, |of| {
            let word = of.pick(&["group_left", "group_right"]);
            format!(" {word} ({})", of.labels())
        });
        let fill = self.maybe(15, |of| {
            let fills = [
                " fill(0)",
                " fill_left(1)",
                " fill_right(-2)",
                " fill_left(0) fill_right(5)",
                " fill(NaN)",
            ];
            of.pick(&fills).to_owned()
        });
        Expr::of(Kind::Optional, "###", [on, group, fill])
    }

    fn binary(&mut self, depth: u32) -> Expr {
        let kind = Kind::Vector;
        let (pattern, sets) = match self.rng.random_range(0..10) {
            0..4 => (
                self.pick(&["+", "-", "*", "/", "%", "^", "atan2"])
                    .to_owned(),
                false,
            ),
            4..7 => {
                let op = self.pick(&["==", "!=", ">", "<", ">=", "<="]);
                let word = if self.chance(40) { " bool" } else { "" };
                (format!("{op}{word}"), false)
            }
            _ => (self.pick(&["and", "or", "unless"]).to_owned(), true),
        };
        if !sets && self.chance(35) {
            let (vector, scalar) = (self.vector(depth), self.scalar(depth));
            return match self.chance(50) {
                true => Expr::of(kind, &format!("(# {pattern} #)"), [vector, scalar]),
                false => Expr::of(kind, &format!("(# {pattern} #)"), [scalar, vector]),
            };
        }
        let matching = self.matching(sets);
        let (left, right) = match self.chance(30) {
            // The same on both sides matches.
            true => {
                let left = self.vector(depth);
                (left.clone(), left)
            }
            false => (self.vector(depth), self.vector(depth)),
        };
        Expr::of(kind, &format!("(# {pattern}# #)"), [left, matching, right])
    }
}
