//! Random blocks against maps: every series, random spans.

use super::*;
use proptest::prelude::*;

/// For each series its entries in order.
type Model = BTreeMap<u64, Vec<(Kind, Timestamp, Timestamp)>>;

struct Built {
    set: BlockSet,
    base: Model,
    late: Model,
}

fn policy(random: &SimRandom) -> DuplicatePolicy {
    DuplicatePolicy::ALL[random.below(6) as usize]
}

/// `blocks` base blocks one after the other in time and as many late ones.
fn build(seed: u64, blocks: u64, series_max: u64) -> Built {
    let (_, env) = disk();
    let random = SimRandom::new(seed);
    let cache = Cache::new(random.below(200_000));
    let (mut base, mut late) = (Model::new(), Model::new());
    let mut partition = PartitionBlocks::default();
    let open = |meta: BlockMeta| {
        let block = Arc::new(Block::open(&env, &path(meta.number), &meta, &cache).unwrap());
        block.verify().unwrap();
        block
    };
    for number in 0..blocks {
        let start = number as i64 * 1_000_000;
        let mut writer = BlockWriter::create(&env, &path(number), number, 0, Family::Base).unwrap();
        let mut id = random.below(3.min(series_max));
        while id < series_max {
            let mut at = start;
            for _ in 0..=random.below(20) {
                at += random.below(20_000) as i64;
                let chunk = chunk(
                    at,
                    1 + random.below(9) as i64,
                    1 + random.below(400) as usize,
                    seed,
                );
                writer.chunk(SeriesId(id), Kind::Base, &chunk).unwrap();
                let held = (Kind::Base, chunk.first(), chunk.last());
                base.entry(id).or_default().push(held);
                at = chunk.last() + 1;
            }
            id += 1 + random.below(40);
        }
        partition.base.push(open(writer.finish().unwrap()));
        let number = blocks + number;
        let mut writer = BlockWriter::create(&env, &path(number), number, 0, Family::Late).unwrap();
        let mut id = random.below(3.min(series_max));
        while id < series_max {
            for _ in 0..=random.below(60) {
                let first = random.below(4_000_000) as i64;
                let held = if random.below(3) == 0 {
                    // A deletion may begin before 1970.
                    let first = first - 1_000_000;
                    let to = first + random.below(50_000) as i64;
                    writer.tombstone(SeriesId(id), first, to).unwrap();
                    (Kind::Tombstone, first, to)
                } else {
                    let kind = Kind::Overlay(policy(&random));
                    let chunk = chunk(first, 7, 1 + random.below(3) as usize, seed);
                    writer.chunk(SeriesId(id), kind, &chunk).unwrap();
                    (kind, chunk.first(), chunk.last())
                };
                late.entry(id).or_default().push(held);
            }
            id += 1 + random.below(40);
        }
        partition.late.push(open(writer.finish().unwrap()));
    }
    let set = BlockSet {
        partitions: BTreeMap::from([(0, partition)]),
        ..BlockSet::default()
    };
    Built { set, base, late }
}

fn held_in(model: &Model, id: u64, from: i64, to: i64) -> Vec<(Kind, Timestamp, Timestamp)> {
    let held = model.get(&id).into_iter().flatten();
    held.filter(|(_, first, last)| *first <= to && from <= *last)
        .copied()
        .collect()
}

fn compare(built: &Built, id: u64, from: i64, to: i64) {
    let layers = built.set.layers(SeriesId(id), from, to).unwrap();
    let base: Vec<_> = layers
        .base
        .iter()
        .map(|stored| held(&stored.entry))
        .collect();
    let from = from.max(built.set.floor);
    assert_eq!(
        base,
        held_in(&built.base, id, from, to),
        "base of {id}, {from}..={to}"
    );
    let overlays = layers.overlays.iter().map(|overlay| match overlay {
        Overlay::Delete(from, to) => (Kind::Tombstone, *from, *to),
        Overlay::Ops(stored) => held(&stored.entry),
    });
    let overlays: Vec<_> = overlays.collect();
    assert_eq!(
        overlays,
        held_in(&built.late, id, from, to),
        "late of {id}, {from}..={to}"
    );
    let mut ahead = ReadAhead::default();
    let reverse = from % 2 == 0;
    let mut order: Vec<usize> = (0..layers.base.len()).collect();
    if reverse {
        order.reverse();
    }
    for index in order {
        let chunk = ahead.load(&layers.base, index, reverse).unwrap();
        let alone = layers.base[index].load().unwrap();
        assert_eq!(chunk.bytes(), alone.bytes());
        assert_eq!(
            layers.base[index].load_cached().unwrap().bytes(),
            alone.bytes()
        );
    }
}

fn held(entry: &Entry) -> (Kind, Timestamp, Timestamp) {
    (entry.kind, entry.first, entry.last)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_series_and_spans_are_found(
        seed: u64,
        blocks in 1..4_u64,
        series_max in 1..2000_u64,
        floor in prop::option::of(-200_000..4_000_000_i64),
    ) {
        let mut built = build(seed, blocks, series_max);
        built.set.floor = floor.unwrap_or(i64::MIN);
        let random = SimRandom::new(seed ^ 1);
        for _ in 0..200 {
            let id = random.below(series_max + 2);
            let from = random.below(5_400_000) as i64 - 1_200_000;
            let len = 1 << random.below(23);
            compare(&built, id, from, from + random.below(len) as i64);
        }
        for id in built.base.keys() {
            compare(&built, *id, i64::MIN, i64::MAX);
        }
    }
}

/// One series with many chunks spans pages; a lookup goes to the right ones.
#[test]
fn a_series_longer_than_a_page_is_found() {
    let (_, env) = disk();
    let mut writer = BlockWriter::create(&env, &path(1), 1, 0, Family::Base).unwrap();
    let mut base = Model::new();
    for (id, chunks) in [(3, 10), (4, 4000), (9, 10)] {
        for n in 0..chunks {
            let chunk = chunk(n * 100, 1, 4, n as u64);
            writer.chunk(SeriesId(id), Kind::Base, &chunk).unwrap();
            let held = (Kind::Base, chunk.first(), chunk.last());
            base.entry(id).or_default().push(held);
        }
    }
    let meta = writer.finish().unwrap();
    let block = Block::open(&env, &path(1), &meta, &Cache::new(1 << 20)).unwrap();
    let blocks = PartitionBlocks {
        base: vec![Arc::new(block)],
        late: Vec::new(),
    };
    let built = Built {
        set: BlockSet {
            partitions: BTreeMap::from([(0, blocks)]),
            ..BlockSet::default()
        },
        base,
        late: Model::new(),
    };
    for n in 0..4000 {
        compare(&built, 4, n * 100, n * 100 + 50);
    }
    for id in 2..11 {
        compare(&built, id, i64::MIN, i64::MAX);
        compare(&built, id, 0, 0);
        compare(&built, id, 4, 99);
        compare(&built, id, 399_903, i64::MAX);
    }
}

/// The index of many short chunks stays small.
#[test]
fn an_entry_of_a_short_chunk_takes_less_than_twenty_bytes() {
    let (_, env) = disk();
    let mut writer = BlockWriter::create(&env, &path(1), 1, 0, Family::Base).unwrap();
    for id in 0..2000 {
        for n in 0..2 {
            let first = 1_700_000_000_000 + (id % 10) as i64 * 137 + n * 640_000;
            let chunk = chunk(first, 10_000, 64, id);
            writer.chunk(SeriesId(id), Kind::Base, &chunk).unwrap();
        }
    }
    let chunks = writer.written_bytes();
    let meta = writer.finish().unwrap();
    let each = (meta.len_bytes - chunks) as f64 / meta.entries as f64;
    assert!(each < 20.0, "{each} bytes");
}
