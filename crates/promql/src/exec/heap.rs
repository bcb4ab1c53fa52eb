//! The heap of `topk` and its kin, as Go's `container/heap` keeps it: which of equal values stay
//! and how `limitk` orders them depends on it.

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

/// Adds an entry.
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
        let nearer = match right < heap.len() && less(heap[right].value, heap[left].value) {
            true => right,
            false => left,
        };
        if !less(heap[nearer].value, heap[at].value) {
            break;
        }
        heap.swap(at, nearer);
        at = nearer;
    }
}

/// Sorts from the one farthest from the top.
pub(crate) fn sort(heap: &mut [Entry], less: Less) {
    for end in 1..heap.len() {
        let mut at = end;
        while at > 0 && less(heap[at - 1].value, heap[at].value) {
            heap.swap(at - 1, at);
            at -= 1;
        }
    }
}
