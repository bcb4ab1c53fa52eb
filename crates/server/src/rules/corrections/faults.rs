//! Faults that tests plant, and must find. Nothing of it is in a server.

#[cfg(test)]
pub(in crate::rules) use planted::*;

#[cfg(test)]
mod planted {
    use latewood_promql::labels::Labels;
    use std::cell::Cell;

    thread_local! {
        /// What is said to be done before its rows are written.
        pub(in crate::rules) static DONE_FIRST: Cell<bool> = const { Cell::new(false) };
        /// The slices after which all passes end, as if the process had.
        pub(in crate::rules) static STOPS_IN: Cell<Option<u32>> = const { Cell::new(None) };
        /// How far the first and the last dirty step are moved, milliseconds.
        pub(in crate::rules) static MOVED_MS: Cell<(i64, i64)> = const { Cell::new((0, 0)) };
        /// Changes are taken for those of another group.
        pub(in crate::rules) static IS_UNSAFE: Cell<bool> = const { Cell::new(false) };
    }

    pub(in crate::rules) fn moved(from: i64, to: i64) -> (i64, i64) {
        let (first, last) = MOVED_MS.get();
        (from.saturating_add(first), to.saturating_add(last))
    }

    pub(in crate::rules) fn group(group: Labels) -> Labels {
        let first = group.iter().next().map(|(name, _)| name.to_owned());
        match first.filter(|_| IS_UNSAFE.get()) {
            Some(name) => group.with(&name, "another"),
            None => group,
        }
    }

    pub(in crate::rules) fn is_done_first() -> bool {
        DONE_FIRST.get()
    }

    pub(in crate::rules) fn stops() -> bool {
        let left = STOPS_IN.get();
        STOPS_IN.set(left.map(|left| left.saturating_sub(1)));
        left == Some(0)
    }
}

#[cfg(not(test))]
pub(super) fn moved(from: i64, to: i64) -> (i64, i64) {
    (from, to)
}

#[cfg(not(test))]
pub(super) fn group<T>(group: T) -> T {
    group
}

#[cfg(not(test))]
pub(super) fn is_done_first() -> bool {
    false
}

#[cfg(not(test))]
pub(super) fn stops() -> bool {
    false
}
