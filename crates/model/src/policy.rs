//! Duplicate policies: what happens to a sample whose timestamp is already taken.

use crate::named;

named! {
    /// The rule for a second sample at the same timestamp.
    ///
    /// Every policy but `Block` is a *blind write*: it can be applied later, in
    /// arrival order, without reading the stored value. NaN is the exception:
    /// FIRST and LAST prefer the value that is not NaN, MIN, MAX and SUM refuse a
    /// mix of NaN and a number ([`DuplicatePolicy::resolve`]).
    pub enum DuplicatePolicy {
        /// Refuse the new value.
        Block = 0 => "block",
        /// Keep the stored value.
        First = 1 => "first",
        /// Take the new value.
        Last = 2 => "last",
        /// Keep the smaller value.
        Min = 3 => "min",
        /// Keep the larger value.
        Max = 4 => "max",
        /// Add the new value to the stored one.
        Sum = 5 => "sum",
    }
}

impl DuplicatePolicy {
    /// The policy stored as `number`, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The value of a timestamp after `new` arrives where `old` is stored, or
    /// `None` if the policy refuses `new`.
    pub fn resolve(self, old: f64, new: f64) -> Option<f64> {
        match self {
            Self::Block => None,
            Self::First => Some(if old.is_nan() { new } else { old }),
            Self::Last => Some(if new.is_nan() { old } else { new }),
            _ if old.is_nan() != new.is_nan() => None,
            Self::Min => Some(if new < old { new } else { old }),
            Self::Max => Some(if new > old { new } else { old }),
            Self::Sum => Some(old + new),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::DuplicatePolicy::*;
    use super::*;

    #[test]
    fn numbers_and_names_round_trip() {
        for policy in DuplicatePolicy::ALL {
            assert_eq!(DuplicatePolicy::from_number(policy as u8), Some(policy));
            let upper = policy.name().to_uppercase();
            assert_eq!(DuplicatePolicy::of_name(upper.as_bytes()), Some(policy));
        }
        assert_eq!(DuplicatePolicy::from_number(6), None);
        assert_eq!(DuplicatePolicy::of_name(b"lastt"), None);
    }

    #[test]
    fn each_policy_resolves_as_its_name_says() {
        assert_eq!(Block.resolve(1.0, 2.0), None);
        assert_eq!(First.resolve(1.0, 2.0), Some(1.0));
        assert_eq!(Last.resolve(1.0, 2.0), Some(2.0));
        assert_eq!(Min.resolve(1.0, 2.0), Some(1.0));
        assert_eq!(Max.resolve(1.0, 2.0), Some(2.0));
        assert_eq!(Sum.resolve(1.0, 2.0), Some(3.0));
    }

    #[test]
    fn first_and_last_prefer_numbers_and_arithmetic_refuses_a_mix() {
        assert_eq!(First.resolve(f64::NAN, 2.0), Some(2.0));
        assert_eq!(Last.resolve(1.0, f64::NAN), Some(1.0));
        for policy in [Min, Max, Sum] {
            assert_eq!(policy.resolve(f64::NAN, 2.0), None);
            assert_eq!(policy.resolve(1.0, f64::NAN), None);
            assert!(policy.resolve(f64::NAN, f64::NAN).is_some_and(f64::is_nan));
        }
    }
}
