//! Pages by number, as many of them as are in use.
//!
//! Series ids are never given again, so what is numbered by them leaves empty pages behind. Pages are
//! in blocks of 8; a block of empty pages is a pointer, a byte a page.
//!
//! Invariant: no block is there whose pages are all empty, but for one that [`Pages::ensure`] just made.
//! Tested with those that use it, the slab and packed strings.

use super::spread::Spread;

const BLOCK_PAGES: usize = 8;
/// Blocks side by side: those of pages of 64 values, of ids below 2^32 in 16 shards.
const NEAR_BLOCKS: usize = 1 << 19;

/// What may be of no use.
pub(crate) trait Page: Default {
    /// Whether it is as good as none.
    fn is_empty(&self) -> bool;
}

/// A growing array of pages.
pub(crate) struct Pages<P> {
    blocks: Spread<Option<Box<[P; BLOCK_PAGES]>>, NEAR_BLOCKS>,
}

impl<P> Default for Pages<P> {
    fn default() -> Self {
        Self {
            blocks: Spread::default(),
        }
    }
}

impl<P: Page> Pages<P> {
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&P> {
        let block = self.blocks.get(number / BLOCK_PAGES)?.as_deref()?;
        Some(&block[number % BLOCK_PAGES])
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut P> {
        let block = self.blocks.get_mut(number / BLOCK_PAGES)?.as_deref_mut()?;
        Some(&mut block[number % BLOCK_PAGES])
    }

    /// Page `number`, made if there is none.
    #[inline]
    pub(crate) fn ensure(&mut self, number: usize) -> &mut P {
        let block = self.blocks.ensure(number / BLOCK_PAGES);
        &mut block.get_or_insert_default()[number % BLOCK_PAGES]
    }

    /// Empties page `number`.
    pub(crate) fn reset(&mut self, number: usize) {
        let block = number / BLOCK_PAGES;
        if let Some(Some(pages)) = self.blocks.get_mut(block) {
            pages[number % BLOCK_PAGES] = P::default();
            if pages.iter().all(P::is_empty) {
                self.blocks.reset(block);
            }
        }
    }

    /// One more than the highest number there was, at least.
    pub(crate) fn end(&self) -> usize {
        self.blocks.end() * BLOCK_PAGES
    }

    /// The pages in order from `first` on, each with its number. Those of no block are left out.
    pub(crate) fn iter_from(&self, first: usize) -> impl Iterator<Item = (usize, &P)> {
        self.iter_in(first, usize::MAX)
    }

    /// The same before `end`. No block behind it is looked at.
    pub(crate) fn iter_in(&self, first: usize, end: usize) -> impl Iterator<Item = (usize, &P)> {
        let blocks = self.blocks.iter_from(first / BLOCK_PAGES);
        let blocks = blocks.take_while(move |(block, _)| block * BLOCK_PAGES < end);
        let pages = blocks.flat_map(|(block, pages)| {
            let pages = pages.iter().flat_map(|pages| pages.iter());
            (block * BLOCK_PAGES..).zip(pages)
        });
        let pages = pages.skip_while(move |(number, _)| *number < first);
        pages.take_while(move |(number, _)| *number < end)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &P)> {
        self.iter_from(0)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut P)> {
        self.blocks.iter_mut().flat_map(|(block, pages)| {
            let pages = pages.iter_mut().flat_map(|pages| pages.iter_mut());
            (block * BLOCK_PAGES..).zip(pages)
        })
    }

    /// Bytes of memory of the pages, without what they own.
    pub(crate) fn memory_bytes(&self) -> usize {
        let blocks = self.blocks.iter().filter(|(_, block)| block.is_some());
        self.blocks.memory_bytes() + blocks.count() * BLOCK_PAGES * size_of::<P>()
    }
}
