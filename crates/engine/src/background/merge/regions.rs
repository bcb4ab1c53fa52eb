//! Which base block a late operation of a series belongs to.
//!
//! Base blocks hold a series one after the other, so the first chunk of the
//! series in each block cuts time into regions, one a block: a region begins
//! where its block does and ends before the next one's. What is older than all
//! belongs to the first. A fold of some blocks takes the overlays of their
//! regions and leaves the others', so list order stays the order of time.

use latewood_model::Timestamp;

/// The stretch of time of a series that belongs to a base block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    /// The block's place in its list.
    pub(crate) place: usize,
    pub(crate) from: Timestamp,
    /// Itself included.
    pub(crate) to: Timestamp,
}

/// Cuts time by the blocks that hold chunks of a series, each with the first
/// timestamp it has; they ascend.
pub(crate) fn regions(firsts: &[(usize, Timestamp)]) -> Vec<Region> {
    let mut regions: Vec<Region> = Vec::with_capacity(firsts.len());
    for &(place, first) in firsts {
        let from = match regions.last_mut() {
            None => Timestamp::MIN,
            Some(before) => {
                // Later blocks begin later, so there is a timestamp before it.
                before.to = first.saturating_sub(1);
                first
            }
        };
        regions.push(Region {
            place,
            from,
            to: Timestamp::MAX,
        });
    }
    regions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timestamp_belongs_to_one_block() {
        assert_eq!(regions(&[]), []);
        let all = regions(&[(2, 100), (3, 200), (7, 300)]);
        let spans: Vec<_> = all.iter().map(|r| (r.place, r.from, r.to)).collect();
        assert_eq!(
            spans,
            [(2, i64::MIN, 199), (3, 200, 299), (7, 300, i64::MAX)]
        );
        assert_eq!(regions(&[(5, i64::MIN)])[0].to, i64::MAX);
    }
}
