//! Conditions of a query on the labels of a series.
//!
//! A series may carry one label name several times. Every test then considers
//! all of its values: [`Test::AnyOf`] requires that at least one is listed,
//! [`Test::NoneOf`] that none is.

use crate::Labels;

/// A condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Matcher {
    /// The label's name.
    pub name: Box<[u8]>,
    /// The condition on its values.
    pub test: Test,
}

/// The condition on the values of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// `l=v`, `l=(a,b)`: the label exists with one of these values. No series
    /// passes an empty list.
    AnyOf(Vec<Box<[u8]>>),
    /// `l!=v`, `l!=(a,b)`: the label has none of these values, or does not
    /// exist. Every series passes an empty list.
    NoneOf(Vec<Box<[u8]>>),
    /// `l=`: the label does not exist.
    Absent,
    /// `l!=`: the label exists.
    Present,
}

impl Matcher {
    /// A condition on the label `name`.
    pub fn new(name: &[u8], test: Test) -> Self {
        Self {
            name: name.into(),
            test,
        }
    }

    /// Whether the test selects by listed values: a query must have one such
    /// test, or it would start from every series.
    pub fn is_positive(&self) -> bool {
        matches!(self.test, Test::AnyOf(_))
    }

    /// Whether a series with these labels passes; linear in their bytes.
    pub fn matches(&self, labels: &Labels) -> bool {
        let mut values = labels
            .iter()
            .filter_map(|(name, value)| (*name == *self.name).then_some(value));
        let is_in = |list: &[Box<[u8]>], value: &[u8]| list.iter().any(|held| **held == *value);
        match &self.test {
            Test::AnyOf(wanted) => values.any(|value| is_in(wanted, value)),
            Test::NoneOf(unwanted) => !values.any(|value| is_in(unwanted, value)),
            Test::Absent => values.next().is_none(),
            Test::Present => values.next().is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        let bytes = |&(name, value)| -> (&[u8], &[u8]) { pair(name, value) };
        Labels::new(pairs.iter().map(bytes)).unwrap()
    }

    fn pair<'a>(name: &'a str, value: &'a str) -> (&'a [u8], &'a [u8]) {
        (name.as_bytes(), value.as_bytes())
    }

    fn list(values: &[&str]) -> Vec<Box<[u8]>> {
        values.iter().map(|value| value.as_bytes().into()).collect()
    }

    /// Which of four series pass: `x` twice, `x` once, another `x`, no `x`.
    fn passes(test: Test) -> [bool; 4] {
        let matcher = Matcher::new(b"x", test);
        [
            &[("x", "1"), ("x", "2"), ("g", "1")][..],
            &[("x", "1")],
            &[("g", "1"), ("x", "2")],
            &[("y", "1")],
        ]
        .map(|pairs| matcher.matches(&labels(pairs)))
    }

    #[test]
    fn every_value_of_a_repeated_name_counts() {
        assert_eq!(
            passes(Test::AnyOf(list(&["1"]))),
            [true, true, false, false]
        );
        assert_eq!(
            passes(Test::AnyOf(list(&["1", "2"]))),
            [true, true, true, false]
        );
        assert_eq!(
            passes(Test::NoneOf(list(&["1"]))),
            [false, false, true, true]
        );
        assert_eq!(
            passes(Test::NoneOf(list(&["1", "2"]))),
            [false, false, false, true]
        );
    }

    #[test]
    fn absence_presence_and_empty_lists() {
        assert_eq!(passes(Test::Absent), [false, false, false, true]);
        assert_eq!(passes(Test::Present), [true, true, true, false]);
        assert_eq!(passes(Test::AnyOf(Vec::new())), [false; 4]);
        assert_eq!(passes(Test::NoneOf(Vec::new())), [true; 4]);
    }
}
