//! Medians, and numbers as people read them.

/// Middle, smallest and largest of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    /// The middle value; of an even number the mean of the two in the middle.
    pub(super) median: f64,
    /// The smallest.
    pub(super) min: f64,
    /// The largest.
    pub(super) max: f64,
}

/// Middle and ends of `values`; `None` when there are none.
pub(super) fn spread(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
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

/// The median with commas, and smallest and largest in brackets if they differ.
pub(super) fn bracketed(value: Spread) -> String {
    let [median, min, max] = [value.median, value.min, value.max].map(thousands);
    if min == max {
        return median;
    }
    format!("{median} ({min}-{max})")
}

/// A whole number with commas between thousands.
pub(crate) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    if value < -0.5 {
        text.push('-');
    }
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The label of an axis whose marks are `step` apart.
pub(super) fn axis_label(value: f64, step: f64) -> String {
    if step < 1.0 {
        format!("{value:.2}")
    } else {
        thousands(value)
    }
}

/// The values in the order they came, each once.
pub(super) fn unique<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut unique = Vec::new();
    for value in values {
        if !unique.contains(&value) {
            unique.push(value);
        }
    }
    unique
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(spread([]), None);
        let odd = spread([3.0, 1.0, 2.0]).unwrap();
        assert_eq!((odd.median, odd.min, odd.max), (2.0, 1.0, 3.0));
        assert_eq!(spread([4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
    }

    #[test]
    fn commas() {
        let shown = [0.0, 999.0, 1000.0, 1_234_567.8, -12_345.0].map(thousands);
        assert_eq!(shown, ["0", "999", "1,000", "1,234,568", "-12,345"]);
    }
}
