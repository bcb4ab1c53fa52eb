//! Sums with the compensation of Kahan and Neumaier, as Prometheus adds.

/// A sum and what rounding took from it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Kahan {
    pub(crate) sum: f64,
    /// What belongs to it still.
    pub(crate) lost: f64,
}

impl Kahan {
    pub(crate) fn new(sum: f64) -> Self {
        Self { sum, lost: 0.0 }
    }

    /// Adds a value; an infinite sum has lost nothing.
    pub(crate) fn add(&mut self, value: f64) {
        let sum = self.sum + value;
        if sum.is_infinite() {
            self.lost = 0.0;
        } else if self.sum.abs() >= value.abs() {
            self.lost += (self.sum - sum) + value;
        } else {
            self.lost += (value - sum) + self.sum;
        }
        self.sum = sum;
    }

    /// The sum with what it lost.
    pub(crate) fn total(self) -> f64 {
        self.sum + self.lost
    }
}

/// A mean: the sum by the count, or kept as a mean from where the sum would overflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mean {
    kahan: Kahan,
    count: f64,
    is_incremental: bool,
}

impl Mean {
    /// The mean of one value.
    pub(crate) fn new(first: f64) -> Self {
        Self {
            kahan: Kahan::new(first),
            count: 1.0,
            is_incremental: false,
        }
    }

    /// Takes in one more value.
    pub(crate) fn add(&mut self, value: f64) {
        self.count += 1.0;
        if !self.is_incremental {
            let mut kahan = self.kahan;
            kahan.add(value);
            if !kahan.sum.is_infinite() {
                self.kahan = kahan;
                return;
            }
            self.is_incremental = true;
            self.kahan.sum /= self.count - 1.0;
            self.kahan.lost /= self.count - 1.0;
        }
        let share = (self.count - 1.0) / self.count;
        self.kahan.sum *= share;
        self.kahan.lost *= share;
        self.kahan.add(value / self.count);
    }

    pub(crate) fn value(self) -> f64 {
        if self.is_incremental {
            self.kahan.total()
        } else {
            self.kahan.sum / self.count + self.kahan.lost / self.count
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_what_rounding_takes() {
        let mut kahan = Kahan::default();
        for value in [1e100, 1.0, -1e100] {
            kahan.add(value);
        }
        assert_eq!(kahan.total(), 1.0);
        kahan.add(f64::INFINITY);
        assert_eq!(kahan.total(), f64::INFINITY);
    }

    #[test]
    fn means_do_not_overflow() {
        let mut mean = Mean::new(f64::MAX);
        mean.add(f64::MAX);
        mean.add(f64::MAX);
        assert!((mean.value() / f64::MAX - 1.0).abs() < 1e-15);
        let mut mean = Mean::new(1.0);
        mean.add(f64::INFINITY);
        assert_eq!(mean.value(), f64::INFINITY);
    }
}
