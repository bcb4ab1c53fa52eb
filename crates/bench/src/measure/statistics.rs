//! Medians, how sure they are, and numbers as people read them.

/// Middle, smallest and largest of some values; of an even number the middle is the mean of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

/// A median and where it lies with 95 % certainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Middle and ends of `values`; `None` when there are none.
pub(crate) fn spread(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let (min, max) = (*values.first()?, *values.last()?);
    let half = values.len() / 2;
    let median = match values.len() % 2 {
        1 => values[half],
        _ => f64::midpoint(values[half - 1], values[half]),
    };
    Some(Spread { median, min, max })
}

/// The middle of some values; NaN when there are none.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    spread(values).map_or(f64::NAN, |spread| spread.median)
}

/// The median of `values` and where it lies, from their order alone, whatever their distribution.
pub(crate) fn sign_test(mut values: Vec<f64>) -> Interval {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    // A rank of the sign test: half of n, less 0.98 of its root; Conover, "Practical
    // Nonparametric Statistics", section 3.2.
    let rank = (count as f64 / 2.0 - 0.98 * (count as f64).sqrt()).max(0.0) as usize;
    let at = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
    Interval {
        median: median(values.iter().copied()),
        low: at(rank),
        high: at(count.saturating_sub(1 + rank)),
    }
}

impl Interval {
    /// A cost in percent in words: one that may be zero is given as its bound alone.
    pub(crate) fn words(self) -> String {
        let Interval { median, low, high } = self;
        match (low > 0.0, high > 0.0) {
            (true, _) => format!("{median:.2} % ({low:.2} to {high:.2})"),
            (false, true) => format!("under {high:.2} %"),
            (false, false) => "none seen".to_owned(),
        }
    }
}

/// The median with commas, and smallest and largest in brackets if they differ.
pub(crate) fn bracketed(value: Spread) -> String {
    let [median, min, max] = [value.median, value.min, value.max].map(thousands);
    match min == max {
        true => median,
        false => format!("{median} ({min}-{max})"),
    }
}

/// A whole number with commas between thousands.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .filter_map(|group| str::from_utf8(group).ok())
        .collect();
    let sign = if value < -0.5 { "-" } else { "" };
    format!("{sign}{}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(spread([]), None);
        let odd = spread([3.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.median, odd.min, odd.max), (2.0, 1.0, 3.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn commas() {
        let shown = [0.0, 999.0, 1000.0, 1_234_567.8, -12_345.0].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,568", "-12,345"]);
    }

    #[test]
    fn one_wild_value_moves_nothing_and_a_cost_that_may_be_none_is_no_saving() {
        let wild = sign_test((0..21).map(|at| if at == 3 { 9.0 } else { 1.0 }).collect());
        assert_eq!(wild.words(), "1.00 % (1.00 to 1.00)");
        let words = |low, median, high| Interval { median, low, high }.words();
        assert_eq!(words(-0.4, -0.1, 0.3), "under 0.30 %");
        assert_eq!(words(-0.9, -0.5, -0.2), "none seen");
        assert_eq!(words(0.1, 0.6, 1.1), "0.60 % (0.10 to 1.10)");
    }
}
