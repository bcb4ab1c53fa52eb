//! The heap of `topk` and its kin, as Go's `container/heap` keeps it: which of equal values stay
//! and how `limitk` orders them depends on it.

use std::cmp::Ordering;

/// A series with its value at a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) value: f64,
    pub(crate) series: usize,
}

/// Whether one value stands nearer to the top than another; NaN nearer than all.
pub(crate) type Less = fn(f64, f64) -> bool;

/// The smallest value on top.
pub(crate) fn smallest(a: f64, b: f64) -> bool {
    a.is_nan() || a < b
}

/// The largest value on top.
pub(crate) fn largest(a: f64, b: f64) -> bool {
    a.is_nan() || a > b
}

pub(crate) fn push(heap: &mut Vec<Entry>, entry: Entry, less: Less) {
    heap.push(entry);
    let mut at = heap.len() - 1;
    while at > 0 {
        let parent = (at - 1) / 2;
        if !less(heap[at].value, heap[parent].value) {
            break;
        }
        heap.swap(at, parent);
        at = parent;
    }
}

/// Puts another entry in the place of the top.
pub(crate) fn replace_top(heap: &mut [Entry], entry: Entry, less: Less) {
    heap[0] = entry;
    let mut at = 0;
    loop {
        let left = 2 * at + 1;
        if left >= heap.len() {
            break;
        }
        let right = left + 1;
        let nearer = if right < heap.len() && less(heap[right].value, heap[left].value) {
            right
        } else {
            left
        };
        if !less(heap[nearer].value, heap[at].value) {
            break;
        }
        heap.swap(at, nearer);
        at = nearer;
    }
}

/// Sorts from the one farthest from the top, equal values in their order, NaN in the opposite one:
/// as inserting one by one does.
pub(crate) fn sort(heap: &mut [Entry], less: Less) {
    heap.sort_by(|a, b| match (a.value.is_nan(), b.value.is_nan()) {
        (false, false) if less(b.value, a.value) => Ordering::Less,
        (false, false) if less(a.value, b.value) => Ordering::Greater,
        (a, b) => a.cmp(&b),
    });
    let numbers = heap.partition_point(|entry| !entry.value.is_nan());
    heap[numbers..].reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Go sorts few values.
    fn inserted(entries: &mut [Entry], less: Less) {
        for end in 1..entries.len() {
            let mut at = end;
            while at > 0 && less(entries[at - 1].value, entries[at].value) {
                entries.swap(at - 1, at);
                at -= 1;
            }
        }
    }

    #[test]
    fn order_is_that_of_insertion() {
        let values = [1.0, f64::NAN, -0.0, 0.0, f64::INFINITY, 1.0, f64::NAN, 2.0];
        for less in [smallest as Less, largest] {
            // All texts of five digits in base eight.
            for number in 0..8_usize.pow(5) {
                let entry = |series: u32| Entry {
                    value: values[number / 8_usize.pow(series) % 8],
                    series: series as usize,
                };
                let mut fast: Vec<Entry> = (0..5).map(entry).collect();
                let mut slow = fast.clone();
                sort(&mut fast, less);
                inserted(&mut slow, less);
                let order = |of: &[Entry]| of.iter().map(|one| one.series).collect::<Vec<_>>();
                assert_eq!(order(&fast), order(&slow), "{slow:?}");
            }
        }
    }
}
