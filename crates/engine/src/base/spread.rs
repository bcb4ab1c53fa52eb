//! Values by number: those below a limit side by side, the others in a tree.
//!
//! Series ids have 48 bits and are never given again. What is numbered by them is dense as long
//! as ids are small, and a lookup is then that of a vector. Beyond the limit the numbers in use
//! are few among those that were, and memory follows their count, not the largest of them: a
//! single id that a damaged file makes up takes little.

use std::collections::BTreeMap;

/// A growing array of values, of which those from `NEAR` on may have gaps.
#[derive(Debug)]
pub(crate) struct Spread<T, const NEAR: usize> {
    near: Vec<T>,
    far: BTreeMap<usize, T>,
}

impl<T, const NEAR: usize> Default for Spread<T, NEAR> {
    fn default() -> Self {
        Self {
            near: Vec::new(),
            far: BTreeMap::new(),
        }
    }
}

impl<T: Default, const NEAR: usize> Spread<T, NEAR> {
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&T> {
        match self.near.get(number) {
            Some(value) => Some(value),
            None => self.get_far(number),
        }
    }

    #[cold]
    fn get_far(&self, number: usize) -> Option<&T> {
        self.far.get(&number)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut T> {
        // Not `get_mut` first: the borrow would last.
        if number < self.near.len() {
            return self.near.get_mut(number);
        }
        self.far.get_mut(&number)
    }

    /// The value at `number`, made if there is none.
    #[inline]
    pub(crate) fn ensure(&mut self, number: usize) -> &mut T {
        if number < self.near.len() {
            return &mut self.near[number];
        }
        self.make(number)
    }

    #[cold]
    fn make(&mut self, number: usize) -> &mut T {
        if number >= NEAR {
            return self.far.entry(number).or_default();
        }
        self.near.resize_with(number + 1, T::default);
        &mut self.near[number]
    }

    /// Resets the value at `number`.
    pub(crate) fn reset(&mut self, number: usize) {
        match self.near.get_mut(number) {
            Some(value) => *value = T::default(),
            None => drop(self.far.remove(&number)),
        }
    }

    /// One more than the highest number there is.
    pub(crate) fn end(&self) -> usize {
        let far = self.far.last_key_value();
        far.map_or(self.near.len(), |(&number, _)| number + 1)
    }

    /// The values in order from `first` on, each with its number.
    pub(crate) fn iter_from(&self, first: usize) -> impl Iterator<Item = (usize, &T)> {
        let near = self.near.iter().enumerate().skip(first);
        near.chain(
            self.far
                .range(first..)
                .map(|(&number, value)| (number, value)),
        )
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.iter_from(0)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let far = self.far.iter_mut();
        let near = self.near.iter_mut().enumerate();
        near.chain(far.map(|(&number, value)| (number, value)))
    }

    /// Resets all values, and keeps the memory of those below the limit.
    #[inline]
    pub(crate) fn reset_all(&mut self)
    where
        T: Clone,
    {
        self.near.fill(T::default());
        if !self.far.is_empty() {
            self.far.clear();
        }
    }

    /// Bytes of memory of the values, without what they own.
    pub(crate) fn memory_bytes(&self) -> usize {
        // A node of the tree is at least half full.
        let far_bytes = self.far.len() * 2 * (size_of::<T>() + size_of::<usize>());
        self.near.capacity() * size_of::<T>() + far_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_the_limit_take_memory_only_themselves() {
        let mut spread = Spread::<u32, 8>::default();
        assert_eq!(
            (spread.get(0), spread.get(1 << 44), spread.end()),
            (None, None, 0)
        );
        for number in [1 << 44, 9, 2, 7] {
            *spread.ensure(number) = number as u32 | 1;
        }
        assert_eq!(
            (spread.get(2), spread.get(0), spread.get(8)),
            (Some(&3), Some(&0), None)
        );
        assert!(spread.memory_bytes() < 1024);
        let held = |spread: &Spread<u32, 8>, first| -> Vec<usize> {
            let held = spread.iter_from(first).filter(|(_, value)| **value > 0);
            held.map(|(number, _)| number).collect()
        };
        assert_eq!(held(&spread, 0), [2, 7, 9, 1 << 44]);
        assert_eq!(held(&spread, 8), [9, 1 << 44]);
        assert_eq!(spread.end(), (1 << 44) + 1);
        spread.reset(1 << 44);
        spread.reset(2);
        assert_eq!(held(&spread, 0), [7, 9]);
        spread.iter_mut().for_each(|(_, value)| *value += 1);
        assert_eq!(spread.get_mut(9), Some(&mut 10));
        spread.reset_all();
        assert_eq!((held(&spread, 0), spread.end()), (vec![], 8));
    }
}
