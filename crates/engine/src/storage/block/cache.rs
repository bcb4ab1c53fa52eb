//! The cache of what was read from blocks: index pages, stretches of short chunks,
//! chunks on request, and the timestamps of chunks.
//!
//! It has a limit in bytes and is shared by all blocks of a database, or of several. The system's
//! page cache holds the file contents; this cache saves checksums, parsing and
//! system calls.

use crate::format::chunk::Chunk;
use crate::observe::notices::Notices;
use crate::storage::block::overlap::Overlap;
use crate::storage::block::page::Page;
use quick_cache::{OptionsBuilder, Weighter, sync};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Estimated weight of an entry; only the initial size of the cache depends on it.
const ITEM_BYTES_ABOUT: u64 = 8 * 1024;

/// Flag in the place of a stretch, which may begin at the offset of a chunk.
const STRETCH: u64 = 1 << 63;

/// Flag in the place of a chunk without its values.
const BARE: u64 = 1 << 62;

/// The number of an opened block, and the offset in it.
type Place = (u64, u64);

#[derive(Clone, Debug)]
enum Item {
    Page(Arc<Page>),
    Chunk(Arc<Chunk>),
    Stretch(Arc<[u8]>),
}

#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<Place, Item> for Bytes {
    fn weight(&self, _: &Place, item: &Item) -> u64 {
        let held = match item {
            Item::Page(page) => page.memory_bytes(),
            Item::Chunk(chunk) => chunk.memory_bytes(),
            Item::Stretch(bytes) => bytes.len(),
        };
        // Overhead of the hash table.
        held as u64 + 64
    }
}

/// A cache with a limit; clones share their content.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    shared: Arc<Shared>,
    /// These two are here because all blocks of a database have its cache.
    overlap: Arc<Overlap>,
    notices: Notices,
}

#[derive(Debug)]
struct Shared {
    items: sync::Cache<Place, Item, Bytes>,
    opened: AtomicU64,
    /// Files of blocks may not be on this machine.
    is_tiered: AtomicBool,
}

impl Cache {
    /// A cache of about `capacity_bytes` of memory at most.
    pub(crate) fn new(capacity_bytes: u64) -> Self {
        let options = OptionsBuilder::new()
            .estimated_items_capacity((capacity_bytes / ITEM_BYTES_ABOUT).max(16) as usize)
            .weight_capacity(capacity_bytes)
            .build()
            .expect("both capacities are given");
        let items = sync::Cache::with_options(
            options,
            Bytes,
            quick_cache::DefaultHashBuilder::default(),
            sync::DefaultLifecycle::default(),
        );
        Self {
            shared: Arc::new(Shared {
                items,
                opened: AtomicU64::new(0),
                is_tiered: AtomicBool::new(false),
            }),
            overlap: Arc::default(),
            notices: Notices::default(),
        }
    }

    /// The same content for another database, whose `notices` receive reports of damaged
    /// blocks.
    pub(crate) fn telling(&self, notices: &Notices) -> Self {
        Self {
            shared: self.shared.clone(),
            overlap: Arc::default(),
            notices: notices.clone(),
        }
    }

    /// Changes the limit of memory in bytes; evicts what exceeds it.
    pub(crate) fn set_capacity(&self, capacity_bytes: u64) {
        self.shared.items.set_capacity(capacity_bytes);
    }

    pub(crate) fn clear(&self) {
        self.shared.items.clear();
    }

    /// Notes that files of blocks may not be on this machine.
    pub(crate) fn note_tiered(&self) {
        self.shared.is_tiered.store(true, Ordering::Relaxed);
    }

    /// Whether files of blocks may not be on this machine.
    pub(crate) fn is_tiered(&self) -> bool {
        self.shared.is_tiered.load(Ordering::Relaxed)
    }

    /// Counters of late blocks in reads.
    pub(crate) fn overlap(&self) -> &Overlap {
        &self.overlap
    }

    /// The receiver of reports of damaged blocks.
    pub(crate) fn notices(&self) -> &Notices {
        &self.notices
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.shared.items.weight()
    }

    /// A unique number for a block that is being opened.
    pub(crate) fn next_owner(&self) -> u64 {
        self.shared.opened.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn page(&self, owner: u64, offset: u64) -> Option<Arc<Page>> {
        match self.shared.items.get(&(owner, offset)) {
            Some(Item::Page(page)) => Some(page),
            _ => None,
        }
    }

    pub(crate) fn put_page(&self, owner: u64, offset: u64, page: &Arc<Page>) {
        let item = Item::Page(page.clone());
        self.shared.items.insert((owner, offset), item);
    }

    pub(crate) fn chunk(&self, owner: u64, offset: u64) -> Option<Arc<Chunk>> {
        match self.shared.items.get(&(owner, offset)) {
            Some(Item::Chunk(chunk)) => Some(chunk),
            _ => None,
        }
    }

    pub(crate) fn put_chunk(&self, owner: u64, offset: u64, chunk: &Arc<Chunk>) {
        let item = Item::Chunk(chunk.clone());
        self.shared.items.insert((owner, offset), item);
    }

    /// A chunk without its values, from [`Cache::put_bare`].
    pub(crate) fn bare(&self, owner: u64, offset: u64) -> Option<Arc<Chunk>> {
        self.chunk(owner, offset | BARE)
    }

    pub(crate) fn put_bare(&self, owner: u64, offset: u64, chunk: &Arc<Chunk>) {
        self.put_chunk(owner, offset | BARE, chunk);
    }

    pub(crate) fn stretch(&self, owner: u64, start: u64) -> Option<Arc<[u8]>> {
        match self.shared.items.get(&(owner, start | STRETCH)) {
            Some(Item::Stretch(stretch)) => Some(stretch),
            _ => None,
        }
    }

    pub(crate) fn put_stretch(&self, owner: u64, start: u64, stretch: &Arc<[u8]>) {
        let item = Item::Stretch(stretch.clone());
        self.shared.items.insert((owner, start | STRETCH), item);
    }
}
