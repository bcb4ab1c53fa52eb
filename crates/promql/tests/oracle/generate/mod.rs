//! A generator of random expressions: all operators, functions and modifiers on floats.

mod operator;
mod vector;

use crate::oracle::expression::{Expr, Kind};
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;

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
        let text = if self.chance(percent) {
            of(self)
        } else {
            String::new()
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
        if self.chance(80) {
            self.pick(&fixed).to_owned()
        } else {
            format!("{}", self.rng.random_range(-1e3..1e3))
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
        let text = if self.chance(85) {
            self.pick(&fixed)
        } else {
            self.pick(&computed)
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
        if self.chance(50) {
            Expr::of(Kind::Optional, "##", [offset, at])
        } else {
            Expr::of(Kind::Optional, "##", [at, offset])
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
}
