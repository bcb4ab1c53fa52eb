//! The functions: names, arguments and results.
//!
//! All of Prometheus 3.16. Those that need native histograms or start timestamps are here too: they
//! are errors of the evaluation, not of the syntax.

use Type::{Matrix, Scalar, String, Vector};
use latewood_wire::named;

named! {
    /// What an expression evaluates to.
    pub enum Type {
        /// One number.
        Scalar => "scalar",
        /// A text.
        String => "string",
        /// One sample of each series.
        Vector => "vector",
        /// A range of samples of each series.
        Matrix => "matrix",
    }
}

/// A function, as the parser knows it.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Types of its arguments.
    pub args: &'static [Type],
    /// How many of the last argument may be left out or follow: 0 none, n up to n, -1 any.
    pub variadic: i32,
    /// Type of its result.
    pub returns: Type,
}

/// The function of a name.
pub fn find(name: &str) -> Option<&'static Function> {
    let at = FUNCTIONS.binary_search_by(|function| function.name.cmp(name));
    at.ok().map(|at| &FUNCTIONS[at])
}

const fn of(name: &'static str, args: &'static [Type], variadic: i32, returns: Type) -> Function {
    Function {
        name,
        args,
        variadic,
        returns,
    }
}

/// All functions, by name.
#[rustfmt::skip]
pub const FUNCTIONS: &[Function] = &[
    of("abs", &[Vector], 0, Vector),
    of("absent", &[Vector], 0, Vector),
    of("absent_over_time", &[Matrix], 0, Vector),
    of("acos", &[Vector], 0, Vector),
    of("acosh", &[Vector], 0, Vector),
    of("asin", &[Vector], 0, Vector),
    of("asinh", &[Vector], 0, Vector),
    of("atan", &[Vector], 0, Vector),
    of("atanh", &[Vector], 0, Vector),
    of("avg_over_time", &[Matrix], 0, Vector),
    of("ceil", &[Vector], 0, Vector),
    of("changes", &[Matrix], 0, Vector),
    of("clamp", &[Vector, Scalar, Scalar], 0, Vector),
    of("clamp_max", &[Vector, Scalar], 0, Vector),
    of("clamp_min", &[Vector, Scalar], 0, Vector),
    of("cos", &[Vector], 0, Vector),
    of("cosh", &[Vector], 0, Vector),
    of("count_over_time", &[Matrix], 0, Vector),
    of("day_of_month", &[Vector], 1, Vector),
    of("day_of_week", &[Vector], 1, Vector),
    of("day_of_year", &[Vector], 1, Vector),
    of("days_in_month", &[Vector], 1, Vector),
    of("deg", &[Vector], 0, Vector),
    of("delta", &[Matrix], 0, Vector),
    of("deriv", &[Matrix], 0, Vector),
    of("double_exponential_smoothing", &[Matrix, Scalar, Scalar], 0, Vector),
    of("end", &[], 0, Scalar),
    of("exp", &[Vector], 0, Vector),
    of("first_over_time", &[Matrix], 0, Vector),
    of("floor", &[Vector], 0, Vector),
    of("histogram_avg", &[Vector], 0, Vector),
    of("histogram_count", &[Vector], 0, Vector),
    of("histogram_fraction", &[Scalar, Scalar, Vector], 0, Vector),
    of("histogram_quantile", &[Scalar, Vector], 0, Vector),
    of("histogram_quantiles", &[Vector, String, Scalar, Scalar], 9, Vector),
    of("histogram_stddev", &[Vector], 0, Vector),
    of("histogram_stdvar", &[Vector], 0, Vector),
    of("histogram_sum", &[Vector], 0, Vector),
    of("hour", &[Vector], 1, Vector),
    of("idelta", &[Matrix], 0, Vector),
    of("increase", &[Matrix], 0, Vector),
    of("info", &[Vector, Vector], 1, Vector),
    of("integral", &[Matrix, Scalar], 1, Vector),
    of("irate", &[Matrix], 0, Vector),
    of("label_join", &[Vector, String, String, String], -1, Vector),
    of("label_replace", &[Vector, String, String, String, String], 0, Vector),
    of("last_over_time", &[Matrix], 0, Vector),
    of("ln", &[Vector], 0, Vector),
    of("log10", &[Vector], 0, Vector),
    of("log2", &[Vector], 0, Vector),
    of("mad_over_time", &[Matrix], 0, Vector),
    of("max_of", &[Scalar, Scalar], 0, Scalar),
    of("max_over_time", &[Matrix], 0, Vector),
    of("min_of", &[Scalar, Scalar], 0, Scalar),
    of("min_over_time", &[Matrix], 0, Vector),
    of("minute", &[Vector], 1, Vector),
    of("month", &[Vector], 1, Vector),
    of("pi", &[], 0, Scalar),
    of("predict_linear", &[Matrix, Scalar], 0, Vector),
    of("present_over_time", &[Matrix], 0, Vector),
    of("quantile_over_time", &[Scalar, Matrix], 0, Vector),
    of("rad", &[Vector], 0, Vector),
    of("range", &[], 0, Scalar),
    of("rate", &[Matrix], 0, Vector),
    of("resets", &[Matrix], 0, Vector),
    of("round", &[Vector, Scalar], 1, Vector),
    of("scalar", &[Vector], 0, Scalar),
    of("sgn", &[Vector], 0, Vector),
    of("sin", &[Vector], 0, Vector),
    of("sinh", &[Vector], 0, Vector),
    of("sort", &[Vector], 0, Vector),
    of("sort_by_label", &[Vector, String], -1, Vector),
    of("sort_by_label_desc", &[Vector, String], -1, Vector),
    of("sort_desc", &[Vector], 0, Vector),
    of("sqrt", &[Vector], 0, Vector),
    of("start", &[], 0, Scalar),
    of("start_timestamp", &[Vector], 0, Vector),
    of("stddev_over_time", &[Matrix], 0, Vector),
    of("stdvar_over_time", &[Matrix], 0, Vector),
    of("step", &[], 0, Scalar),
    of("sum_over_time", &[Matrix], 0, Vector),
    of("tan", &[Vector], 0, Vector),
    of("tanh", &[Vector], 0, Vector),
    of("time", &[], 0, Scalar),
    of("timestamp", &[Vector], 0, Vector),
    of("ts_of_first_over_time", &[Matrix], 0, Vector),
    of("ts_of_last_over_time", &[Matrix], 0, Vector),
    of("ts_of_max_over_time", &[Matrix], 0, Vector),
    of("ts_of_min_over_time", &[Matrix], 0, Vector),
    of("vector", &[Scalar], 0, Vector),
    of("year", &[Vector], 1, Vector),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_order_and_found() {
        assert!(FUNCTIONS.is_sorted_by(|a, b| a.name < b.name));
        for function in FUNCTIONS {
            assert_eq!(find(function.name), Some(function));
        }
        assert_eq!(find("ABS"), None);
    }
}
