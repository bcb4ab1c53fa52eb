//! Aggregations and binary operations.

use super::Generator;
use crate::oracle::expression::{Expr, Kind};
use rand::RngExt;

impl Generator<'_> {
    pub(super) fn aggregation(&mut self, depth: u32) -> Expr {
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
                Expr::of(kind, &pattern, [group, k, self.ordered()])
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
    pub(super) fn ordered(&mut self) -> Expr {
        if self.chance(50) {
            self.instant()
        } else {
            Expr::of(Kind::Vector, "increase(#)", [self.matrix(0)])
        }
    }

    pub(super) fn matching(&mut self, sets: bool) -> Expr {
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

    pub(super) fn binary(&mut self, depth: u32) -> Expr {
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
            return if self.chance(50) {
                Expr::of(kind, &format!("(# {pattern} #)"), [vector, scalar])
            } else {
                Expr::of(kind, &format!("(# {pattern} #)"), [scalar, vector])
            };
        }
        let matching = self.matching(sets);
        let (left, right) = if self.chance(30) {
            // The same on both sides matches.
            let left = self.vector(depth);
            (left.clone(), left)
        } else {
            (self.vector(depth), self.vector(depth))
        };
        Expr::of(kind, &format!("(# {pattern}# #)"), [left, matching, right])
    }
}
