//! Which table for keys, and who should write the index: what the heads of
//! `src/base/table.rs` and `src/index/mod.rs` say was measured here.
//!
//! `cargo bench -p latewood-engine --bench maps [KEYS]`: processor time of an
//! insertion and of a lookup by key over a million keys, on one thread and on
//! two, and the longest batch of 50 insertions. The *table* is the engine's: 16
//! locks, 64 parts behind each, which keep half of each hash. *one lock a
//! shard* is the same without parts. Then the lists of five label pairs of each
//! series: by each writer under a lock of the list, in a map that writers
//! share, and in batches of 256 by one thread.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use parking_lot::{Mutex, RwLock};
use roaring::RoaringBitmap;
use rustix::time::{ClockId, clock_gettime};
use std::hash::BuildHasher;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;
use tikv_jemallocator::Jemalloc;

/// The server's.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

const BATCH: usize = 50;
/// Steps from key to key that look like no order.
const SCATTER: usize = 2_654_435_761;
/// Values of the labels of a series.
const VALUES: [u32; 5] = [3, 27, 1_000, 3, 50];
/// Series that one thread brings into the index together.
const TOGETHER: usize = 256;

/// A map from keys to numbers that several threads use.
trait Map: Sync {
    const NAME: &'static str;
    fn empty() -> Self;
    fn insert(&self, key: Arc<[u8]>, number: u32);
    fn find(&self, key: &[u8]) -> Option<u32>;
}

/// A sharded table; `PARTS` of a shard grow on their own.
struct Sharded<const PARTS: usize> {
    shards: Vec<RwLock<Vec<HashTable<Entry>>>>,
    state: FixedState,
}

struct Entry {
    key: Arc<[u8]>,
    number: u32,
    tag: u32,
}

fn spread(tag: u32) -> u64 {
    u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<const PARTS: usize> Sharded<PARTS> {
    /// Shard, part and tag of a key.
    fn place(&self, key: &[u8]) -> (usize, usize, u32) {
        let hash = self.state.hash_one(key);
        let tag = hash as u32;
        let part = (spread(tag) >> 40) as usize % PARTS;
        ((hash >> 60) as usize, part, tag)
    }
}

impl<const PARTS: usize> Map for Sharded<PARTS> {
    const NAME: &'static str = match PARTS {
        1 => "one lock a shard",
        _ => "the table",
    };

    fn empty() -> Self {
        let parts = || (0..PARTS).map(|_| HashTable::new()).collect();
        Self {
            shards: (0..16).map(|_| RwLock::new(parts())).collect(),
            state: FixedState::with_seed(1),
        }
    }

    fn insert(&self, key: Arc<[u8]>, number: u32) {
        let (shard, part, tag) = self.place(&key);
        let entry = Entry { key, number, tag };
        let mut shard = self.shards[shard].write();
        shard[part].insert_unique(spread(tag), entry, |entry| spread(entry.tag));
    }

    fn find(&self, key: &[u8]) -> Option<u32> {
        let (shard, part, tag) = self.place(key);
        let shard = self.shards[shard].read();
        let is_it = |entry: &Entry| entry.tag == tag && *entry.key == *key;
        let found = shard[part].find(spread(tag), is_it);
        found.map(|entry| entry.number)
    }
}

impl Map for papaya::HashMap<Arc<[u8]>, u32, FixedState> {
    const NAME: &'static str = "papaya";

    fn empty() -> Self {
        Self::with_hasher(FixedState::with_seed(1))
    }

    fn insert(&self, key: Arc<[u8]>, number: u32) {
        self.pin().insert(key, number);
    }

    fn find(&self, key: &[u8]) -> Option<u32> {
        self.pin().get(key).copied()
    }
}

impl Map for scc::HashMap<Arc<[u8]>, u32, FixedState> {
    const NAME: &'static str = "scc";

    fn empty() -> Self {
        Self::with_hasher(FixedState::with_seed(1))
    }

    fn insert(&self, key: Arc<[u8]>, number: u32) {
        // Keys differ.
        let _ = self.insert_sync(key, number);
    }

    fn find(&self, key: &[u8]) -> Option<u32> {
        self.read_sync(key, |_, number| *number)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let count = arguments.next().map_or(Ok(1_000_000), |n| n.parse())?;
    let keys: Vec<Arc<[u8]>> = (0..count)
        .map(|number| format!("cpu:usage_user:{number:07}").into_bytes().into())
        .collect();
    println!("{count} keys; ns of CPU");
    for threads in [1, 2] {
        measure::<Sharded<64>>(&keys, threads);
        measure::<Sharded<1>>(&keys, threads);
        measure::<papaya::HashMap<Arc<[u8]>, u32, FixedState>>(&keys, threads);
        measure::<scc::HashMap<Arc<[u8]>, u32, FixedState>>(&keys, threads);
    }
    for threads in [1, 2] {
        lists(count, threads);
    }
    Ok(())
}

fn measure<M: Map>(keys: &[Arc<[u8]>], threads: usize) {
    let map = M::empty();
    let (insert, longest) = on_threads(keys.len(), threads, |at| {
        map.insert(keys[at].clone(), at as u32);
    });
    let (near, _) = on_threads(keys.len(), threads, |at| {
        assert!(map.find(&keys[at]) == Some(at as u32));
    });
    let (far, _) = on_threads(keys.len(), threads, |at| {
        let at = at * SCATTER % keys.len();
        assert!(map.find(&keys[at]) == Some(at as u32));
    });
    println!(
        "{:<18} {threads} thread(s): insert {insert:>4.0}, find {near:>4.0}, scattered {far:>4.0}; \
         longest batch {longest:.2} ms",
        M::NAME,
    );
}

/// Does `work` for each number below `count`, in batches, every thread its own;
/// processor time of each in nanoseconds, and the longest batch in
/// milliseconds.
fn on_threads(count: usize, threads: usize, work: impl Fn(usize) + Sync) -> (f64, f64) {
    let begun = cpu_ns();
    let longest = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                let work = &work;
                scope.spawn(move || {
                    let mut longest = 0.0_f64;
                    for start in (thread * BATCH..count).step_by(threads * BATCH) {
                        let batch = Instant::now();
                        (start..count.min(start + BATCH)).for_each(work);
                        longest = longest.max(batch.elapsed().as_secs_f64());
                    }
                    longest
                })
            })
            .collect();
        let longest = threads.into_iter().map(|thread| thread.join());
        longest.flatten().fold(0.0, f64::max)
    });
    ((cpu_ns() - begun) / count as f64, longest * 1e3)
}

/// Numbers of the pairs of series `number`.
fn pairs(number: usize) -> impl Iterator<Item = u32> {
    let mixed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let firsts = VALUES.iter().scan(0, |next, count| {
        *next += count;
        Some((*next - count, *count))
    });
    firsts.map(move |(first, count)| first + (mixed / u64::from(first + 1)) as u32 % count)
}

/// Enters series under their pairs.
fn lists(count: usize, threads: usize) {
    let total: u32 = VALUES.iter().sum();
    let locked: Vec<Mutex<RoaringBitmap>> = (0..total).map(|_| Mutex::default()).collect();
    let (locks, _) = on_threads(count, threads, |at| {
        pairs(at).for_each(|pair| {
            locked[pair as usize].lock().insert(at as u32);
        });
    });
    let shared: scc::HashMap<u32, RoaringBitmap, FixedState> =
        scc::HashMap::with_hasher(FixedState::with_seed(1));
    let (map, _) = on_threads(count, threads, |at| {
        for pair in pairs(at) {
            let mut list = shared.entry_sync(pair).or_default();
            list.get_mut().insert(at as u32);
        }
    });
    let all = Mutex::new((0..total).map(|_| RoaringBitmap::new()).collect::<Vec<_>>());
    let queue = Mutex::new(Vec::new());
    let apply = |batch: Vec<usize>| {
        let mut all = all.lock();
        for at in batch {
            pairs(at).for_each(|pair| {
                all[pair as usize].insert(at as u32);
            });
        }
    };
    let (batches, _) = on_threads(count, threads, |at| {
        let mut waiting = queue.lock();
        waiting.push(at);
        if waiting.len() >= TOGETHER {
            let batch = std::mem::take(&mut *waiting);
            drop(waiting);
            apply(batch);
        }
    });
    apply(queue.into_inner());
    let found: u64 = all.into_inner().iter().map(RoaringBitmap::len).sum();
    assert_eq!(black_box(found), (count * VALUES.len()) as u64);
    println!(
        "five lists a series, {threads} thread(s): a lock each {locks:.0}, scc {map:.0}, in \
         batches {batches:.0}"
    );
}

fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
