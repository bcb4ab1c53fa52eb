//! What files of parked series tell of labels, keys and the newest samples, against their rows.

use super::super::super::directory::HASH_BYTES;
use super::super::super::format::{HASHES, LABELS};
use super::super::super::label_blocks::{LabelBlock, blocks_of};
use super::super::super::pages::low_bits;
use super::super::super::pairs::Pairs;
use super::*;
use crate::base::key_hash::key_hash;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

type Strings = Vec<Vec<u8>>;

/// Compares all that a file tells with its rows.
pub(super) fn is_told(file: &ParkedFile, rows: &[SeriesRow]) {
    let all = pairs_in(rows);
    assert_eq!(pairs_told(file).unwrap(), all);
    let count: usize = all.values().map(BTreeMap::len).sum();
    assert_eq!(file.pair_count(), count as u64);
    let mut names = Vec::new();
    file.names(&mut |name, rows| {
        names.push((name.to_vec(), BTreeSet::from_iter(rows)));
        ControlFlow::Continue(())
    })
    .unwrap();
    let union = |name: &Vec<u8>| BTreeSet::from_iter(all[name].values().flatten().copied());
    assert!(names.iter().map(|(name, _)| name).eq(all.keys()));
    for (name, rows) in names {
        assert_eq!(rows, union(&name));
        let found = file.carry(&name).unwrap();
        assert_eq!(BTreeSet::from_iter(found), rows);
        // What is beside it.
        for other in [
            &name[1..],
            &[&*name, b"\0"].concat(),
            &[&*name, b"!"].concat(),
        ] {
            let is_there = all.contains_key(other);
            assert_eq!(file.carry(other).unwrap().is_empty(), !is_there);
        }
    }
    for seed in [1, 2] {
        let hashes: Vec<u64> = rows.iter().map(|row| key_hash(seed, &row.key)).collect();
        assert_eq!(file.key_hashes(seed).unwrap(), hashes);
    }
    let samples = rows.iter().filter_map(|row| Some((row.newest?, row.id)));
    let mut samples: Vec<_> = samples.collect();
    samples.sort_unstable();
    let newest = samples.split_off(samples.len().saturating_sub(4));
    assert_eq!(file.newest(), newest);
}

/// Compares answers for several values, absent ones among them.
fn finds_some(file: &ParkedFile, rows: &[SeriesRow], random: &SimRandom) {
    let all = pairs_in(rows);
    for (name, values) in &all {
        let mut wanted: Vec<Box<[u8]>> = vec![Box::default(), (*b"absent").into()];
        for value in values.keys() {
            if random.below(3) == 0 {
                wanted.push(value.as_slice().into());
                wanted.push([value, &b"\0"[..]].concat().into());
            }
        }
        wanted.sort_unstable();
        let expected = wanted.iter().filter_map(|value| values.get(&**value));
        let expected: BTreeSet<u32> = expected.flatten().copied().collect();
        let found = file.carry_any(name, &wanted).unwrap();
        assert_eq!(BTreeSet::from_iter(found), expected);
    }
    assert!(file.carry_any(b"", &[(*b"x").into()]).unwrap().is_empty());
}

/// Gives a row labels of these names and values: few or many, some twice.
fn give_labels(random: &SimRandom, row: &mut SeriesRow, [names, values]: &[Strings; 2]) {
    let one_of = |all: &Strings| all[random.below(all.len() as u64) as usize].clone();
    let mut pairs = Vec::new();
    for _ in 0..random.below(6) {
        let own = [&b"own-"[..], &row.id.0.to_be_bytes()].concat();
        let value = [own, one_of(values), one_of(values)];
        pairs.push((one_of(names), value[random.below(3) as usize].clone()));
    }
    let pairs = pairs.iter().map(|(name, value)| (&**name, &**value));
    // Four of the longest values are too much.
    let labels = Labels::new(pairs.clone()).or_else(|_| Labels::new(pairs.take(3)));
    row.options.labels = labels.unwrap();
}

fn strings(random: &SimRandom) -> [Strings; 2] {
    let odd = [
        &b"\0"[..],
        b"\0\0",
        b"\0\x01",
        b"a",
        b"a\0",
        b"a\0b",
        b"ab",
        b"\xff\xff",
        b"\x01",
    ];
    let mut names: Strings = odd.iter().map(|name| name.to_vec()).collect();
    let mut values = names.clone();
    let many = [3, 50, 2_000][random.below(3) as usize];
    names.extend((0..many).map(|n| format!("name-{n}").into_bytes()));
    values.extend((0..many).map(|n| format!("value-{n}").into_bytes()));
    // Their blocks are long, and each name reads some.
    if many == 3 {
        values.extend((0..9).map(|n| [&vec![7; 65_535][..], &[n]].concat()));
        values.extend((0..9).map(|n| [&[n][..], &vec![0; 65_535]].concat()));
    }
    [names, values]
}

#[test]
fn a_file_tells_what_rows_say() {
    for seed in 0..20 {
        println!("seed {seed}");
        let random = SimRandom::new(seed);
        let count = [0, 1, 2, 300, 3_000][random.below(5) as usize];
        let (mut rows, strings) = (random_rows(&random, 3, count), strings(&random));
        let is_some = random.below(9) > 0;
        for row in rows.iter_mut().filter(|_| is_some) {
            give_labels(&random, row, &strings);
        }
        let disk = disk();
        let meta = write_paged(&disk, &rows).unwrap();
        let file = open(&disk, &meta).unwrap();
        is_told(&file, &rows);
        finds_some(&file, &rows, &random);
        assert!(same(&verify(&disk, &meta).unwrap(), &rows));
    }
}

/// All series of a partition: two values of their own, and some that are shared.
fn whole_partition() -> Vec<SeriesRow> {
    let mut row = random_row(&SimRandom::new(1), 3 << 16);
    (row.unnamed, row.expires_at_ms, row.source) = (false, None, None);
    let ids = 0..1_u64 << 16;
    ids.map(|low| {
        // Scattered, as in a UUID.
        let unique = |n: u64| {
            let [a, b] = [1, 2].map(|k| (low + (n << 32) + k).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            format!("{a:016x}-{b:016x}-{:02x}", b >> 56)
        };
        let rack = format!("rack-{}", low % 40);
        let pairs = [
            ("device", unique(1)),
            ("serial", unique(2)),
            ("rack", rack),
            ("unit", if low < 60_000 { "C" } else { "F" }.to_owned()),
        ];
        let pairs = pairs
            .iter()
            .map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let mut row = row.clone();
        row.options.labels = Labels::new(pairs).unwrap();
        row.id = SeriesId(3 << 16 | low);
        row.key = format!("sensor:{low:06}").into_bytes().into();
        row
    })
    .collect()
}

#[test]
fn a_whole_partition_takes_little_memory() {
    let mut rows = whole_partition();
    let disk = disk();
    let meta = write_paged(&disk, &rows).unwrap();
    let file = open(&disk, &meta).unwrap();
    let memory = file.memory_bytes() as f64 / rows.len() as f64;
    assert!(memory < 2.0, "{memory:.2} bytes of memory a series");
    is_told(&file, &rows);
    verify(&disk, &meta).unwrap();
    rows.iter_mut()
        .for_each(|row| row.options.labels = Labels::default());
    let bare_disk = super::disk();
    let bare = write_paged(&bare_disk, &rows).unwrap();
    let each = (meta.len_bytes - bare.len_bytes) as f64 / rows.len() as f64;
    println!("{each:.1} bytes a series for labels, {memory:.2} of memory");
    assert!(each < 160.0, "{each:.1} bytes a series for labels");
}

#[test]
fn few_blocks_are_read() {
    use crate::io::sim::Op;
    let disk = disk();
    let rows = whole_partition();
    let meta = write_paged(&disk, &rows).unwrap();
    let file = open(&disk, &meta).unwrap();
    let reads = |run: &dyn Fn()| {
        let before = disk.count(Op::Read);
        run();
        disk.count(Op::Read) - before
    };
    let (_, serial) = rows[777].options.labels.iter().nth(1).unwrap();
    let one: [Box<[u8]>; 1] = [serial.into()];
    let lookup = || assert_eq!(file.carry_any(b"serial", &one).unwrap().min(), Some(777));
    assert_eq!(reads(&lookup), 1);
    assert_eq!(reads(&|| drop(file.carry(b"rack").unwrap())), 1);
    assert_eq!(reads(&|| drop(file.carry(b"no").unwrap())), 1);
    assert_eq!(reads(&|| drop(file.key_hashes(1).unwrap())), 1);
    let mut names = 0;
    let all = || file.names(&mut |_, _| ControlFlow::Continue(())).unwrap();
    assert!(reads(&all) <= 8);
    file.names(&mut |_, _| {
        names += 1;
        ControlFlow::Break(())
    })
    .unwrap();
    assert_eq!(names, 1);
    let first = || {
        file.values(b"serial", &mut |_, _| ControlFlow::Break(()))
            .unwrap()
    };
    assert!(reads(&first) <= 2);
}

/// Puts other label blocks and hashes into a file, with all checksums right.
fn forge_lookups(
    disk: &SimDisk,
    meta: &SeriesFileMeta,
    change: impl FnOnce(&mut Vec<LabelBlock>, &mut Vec<u8>),
) -> SeriesFileMeta {
    let whole = disk.bytes(Path::new(PATH)).unwrap();
    let file = open(disk, meta).unwrap();
    let (held, pages) = (file.directory(), file.pages());
    let section = |at| file.read_section(pages + at).unwrap();
    let blocks = (0..held.blocks.len()).map(|block| {
        let (header, raw) = section(block);
        LabelBlock {
            raw,
            entries: header.rows & !LABELS,
            separator: held.blocks.separator(block).to_vec(),
        }
    });
    let mut blocks: Vec<LabelBlock> = blocks.collect();
    let (_, mut hashes) = section(blocks.len());
    change(&mut blocks, &mut hashes);
    let behind_pages = directory_of(&whole).sections().range(pages).start;
    let mut bytes = whole[..behind_pages as usize].to_vec();
    let mut directory = directory_of(&whole);
    directory.blocks = Default::default();
    for block in blocks {
        let header = add_section(&mut bytes, &block.raw, block.entries | LABELS);
        directory.blocks.push(header, &block.separator);
    }
    let count = (hashes.len() / HASH_BYTES) as u32;
    directory.hashes = Some(add_section(&mut bytes, &hashes, count | HASHES));
    close(disk, meta, bytes, &directory)
}

fn labelled_rows(seed: u64) -> Vec<SeriesRow> {
    let random = SimRandom::new(seed);
    let mut rows = random_rows(&random, 3, 300);
    let all: Strings = (1..400_u64)
        .map(|n| {
            format!(
                "{0:020}-{0:020}-{0:020}",
                n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            )
            .into_bytes()
        })
        .collect();
    for row in &mut rows {
        give_labels(&random, row, &[all[..9].to_vec(), all.clone()]);
    }
    rows
}

/// Whatever the checksums say.
#[test]
fn what_contradicts_the_rows_is_found_by_whoever_verifies() {
    type Change = fn(&mut Vec<LabelBlock>, &mut Vec<u8>);
    let changes: [Change; 8] = [
        |_, _| {},
        |blocks, _| {
            // Those of rows of which one lacks its labels.
            let (mut rows, mut pairs) = (labelled_rows(3), Pairs::default());
            let labelled = rows.iter_mut().find(|row| !row.options.labels.is_empty());
            labelled.unwrap().options.labels = Labels::default();
            rows.iter().for_each(|row| pairs.note(row));
            *blocks = blocks_of(pairs).collect();
        },
        |blocks, _| drop(blocks.pop()),
        |blocks, _| {
            let last = blocks.last().unwrap();
            let (raw, mut separator) = (last.raw.clone(), last.separator.clone());
            separator.push(0);
            blocks.push(LabelBlock {
                raw,
                entries: last.entries,
                separator,
            });
        },
        |blocks, _| blocks[1].entries -= 1,
        |blocks, _| blocks[1].separator.push(0),
        |_, hashes| hashes[9] ^= 1,
        |_, hashes| hashes.swap(0, 9),
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let (disk, rows) = (disk(), labelled_rows(3));
        let meta = write_paged(&disk, &rows).unwrap();
        assert!(open(&disk, &meta).unwrap().directory().blocks.len() > 2);
        let meta = forge_lookups(&disk, &meta, change);
        assert_eq!(verify(&disk, &meta).is_err(), number > 0, "change {number}");
        // Rows do not depend on it, unless fewer pairs are left than the directory says.
        let Ok(file) = open(&disk, &meta) else {
            assert!([2, 4].contains(&number), "change {number}");
            continue;
        };
        assert!(same(&read(&disk, &meta).unwrap(), &rows), "change {number}");
        assert!(same(&read_pages(&file).concat(), &rows), "change {number}");
    }
}

#[test]
fn changed_label_blocks_make_no_reader_panic() {
    let rows = labelled_rows(4);
    let disk = disk();
    let meta = write_paged(&disk, &rows).unwrap();
    let bytes = disk.bytes(Path::new(PATH)).unwrap();
    let ids: BTreeSet<u32> = rows.iter().map(|row| u32::from(low_bits(row.id))).collect();
    for seed in 0..300 {
        println!("seed {seed}");
        let random = SimRandom::new(seed);
        disk.set_bytes(Path::new(PATH), bytes.clone()).unwrap();
        let meta = forge_lookups(&disk, &meta, |blocks, _| {
            let at = random.below(blocks.len() as u64) as usize;
            let raw = &mut blocks[at].raw;
            let at = random.below(raw.len() as u64) as usize;
            raw[at] ^= 1 << random.below(8);
            if random.below(4) == 0 {
                raw.truncate(at + 1);
            }
        });
        verify(&disk, &meta).unwrap_err();
        let Ok(file) = open(&disk, &meta) else {
            continue;
        };
        match pairs_told(&file) {
            Ok(told) => {
                let mut rows = told.values().flat_map(BTreeMap::values).flatten();
                assert!(rows.all(|low| ids.contains(low)));
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                assert!(error.to_string().contains(PATH), "{error}");
            }
        }
    }
}
