//! Files of parked series, read front to back and at random, and whole files beside them.

mod labels;

use super::super::directory::Directory;
use super::super::format::{
    DIRECTORY, DIRECTORY_LEN_BYTES, FOOTER_BYTES, HEADER_BYTES, SectionHeader, chained, footer_of,
    word_at,
};
use super::super::fuzz::{pairs_in, pairs_told};
use super::super::links::Links;
use super::super::pages::PageTerms;
use super::*;
use crate::base::partition::first_of;
use crate::storage::files::chance::give_links;
use crc_fast::crc32_iscsi;
use zstd::bulk::{compress, decompress};

const GOLDEN: &[u8] = include_bytes!("../../../../../tests/golden/series-v4.cat");
const GOLDEN_WHOLE: &[u8] = include_bytes!("../../../../../tests/golden/series-v4-whole.cat");

fn write_paged(disk: &SimDisk, rows: &[SeriesRow]) -> Result<SeriesFileMeta> {
    let partition = rows.first().map_or(3, |row| partition_of(row.id));
    let mut writer =
        SeriesFileWriter::create_paged(&disk.env(1), Path::new(PATH), 7, partition, 1)?;
    for row in rows {
        writer.row(row)?;
    }
    writer.finish()
}

/// A whole file: these rows, and these removed.
fn write_whole(disk: &SimDisk, rows: &[SeriesRow], removed: &[SeriesId]) -> SeriesFileMeta {
    let (env, path) = (disk.env(1), Path::new(PATH));
    let mut writer = SeriesFileWriter::create(&env, path, 7, 3, removed).unwrap();
    rows.iter().for_each(|row| writer.row(row).unwrap());
    writer.finish().unwrap()
}

fn open(disk: &SimDisk, meta: &SeriesFileMeta) -> Result<ParkedFile> {
    ParkedFile::open(&disk.env(1), Path::new(PATH), meta)
}

/// Reads the rows, and verifies everything else.
fn verify(disk: &SimDisk, meta: &SeriesFileMeta) -> Result<Vec<SeriesRow>> {
    let mut reader = SeriesFileReader::open_to_verify(&disk.env(1), Path::new(PATH), meta)?;
    let (mut all, mut some) = (Vec::new(), Vec::new());
    while reader.next(&mut some)? {
        all.append(&mut some);
    }
    Ok(all)
}

fn read_pages(file: &ParkedFile) -> Vec<Vec<SeriesRow>> {
    (0..file.pages())
        .map(|page| file.read_page(page).unwrap())
        .collect()
}

/// As a plain reading of what it is to be.
fn terms_of(rows: &[SeriesRow]) -> PageTerms {
    let newest = rows.iter().map(|row| row.newest.unwrap_or(i64::MIN));
    let own = rows.iter().filter(|row| row.options.retention_ms > 0);
    let ends = own.map(|row| match row.newest {
        Some(newest) => {
            let end = i128::from(newest) + i128::from(row.options.retention_ms);
            i64::try_from(end).unwrap_or(i64::MAX)
        }
        None => i64::MIN,
    });
    PageTerms {
        newest_min: newest.min().unwrap_or(i64::MAX),
        ends_min_ms: ends.min().unwrap_or(i64::MAX),
    }
}

/// The terms of pages are what their rows are to have, but for parts of a second above the least of all
/// pages, and for what is more than 32 bits of seconds above it.
fn are_terms_of(file: &ParkedFile, pages: &[Vec<SeriesRow>]) {
    let fields: [fn(PageTerms) -> i64; 2] = [|terms| terms.newest_min, |terms| terms.ends_min_ms];
    for field in fields {
        let exact: Vec<i64> = pages.iter().map(|rows| field(terms_of(rows))).collect();
        let least = exact.iter().filter(|&&bound| bound > i64::MIN).min();
        for (page, &exact) in exact.iter().enumerate() {
            let expected = match least {
                Some(&least) if exact > i64::MIN && exact < i64::MAX => {
                    let above_s = (i128::from(exact) - i128::from(least)) / 1000;
                    least + above_s.min(i128::from(u32::MAX - 2)) as i64 * 1000
                }
                _ => exact,
            };
            assert_eq!(field(file.terms(page)), expected, "page {page}");
        }
    }
}

/// As a plain reading of what they are to be.
fn links_of(rows: &[SeriesRow]) -> Vec<Links> {
    let links = rows.iter().map(|row| {
        let rules = row.source.iter().flat_map(|source| &source.rules);
        Links {
            id: row.id,
            source: row.link,
            destinations: rules.map(|rule| rule.destination).collect(),
        }
    });
    let is_linked = |links: &Links| links.source.is_some() || !links.destinations.is_empty();
    links.filter(is_linked).collect()
}

#[test]
fn parked_series_come_back_in_order_and_at_random() {
    for seed in 0..40 {
        let random = SimRandom::new(seed);
        let count = [0, 1, 2, 300, 3_000][random.below(5) as usize];
        let mut rows = random_rows(&random, 3, count);
        give_late(&random, &mut rows);
        if seed % 2 == 0 {
            rows.iter_mut().for_each(|row| give_expired(&random, row));
            give_links(&random, &mut rows);
        }
        let disk = disk();
        let meta = write_paged(&disk, &rows).unwrap();
        assert!(same(&read(&disk, &meta).unwrap(), &rows), "seed {seed}");
        let file = open(&disk, &meta).unwrap();
        assert!(file.links().eq(links_of(&rows)), "seed {seed}");
        assert_eq!((*file.meta(), file.len()), (meta, rows.len() as u64));
        assert!(file.ids().eq(rows.iter().map(|row| row.id)), "seed {seed}");
        let expiring = rows.iter();
        let expiring = expiring.filter_map(|row| Some((row.id, row.expires_at_ms?)));
        assert!(file.expiries().eq(expiring), "seed {seed}");
        let pages = read_pages(&file);
        assert!(same(&pages.concat(), &rows), "seed {seed}");
        assert!(count < 300 || pages.len() > 3, "{} pages", pages.len());
        are_terms_of(&file, &pages);
        let mut expected = rows.iter().peekable();
        file.will_read(0..file.pages());
        for id in (first_of(3).0..).take(2 * count as usize + 9).map(SeriesId) {
            let row = expected.next_if(|row| row.id == id).cloned();
            let page = pages
                .iter()
                .position(|page| page.iter().any(|row| row.id == id));
            assert_eq!(file.contains(id), row.is_some(), "seed {seed} id {}", id.0);
            assert_eq!(file.page_of(id), page, "seed {seed} id {}", id.0);
            let found = file.read(id).unwrap();
            assert!(same(&Vec::from_iter(found), &Vec::from_iter(row)));
            // The same low bits.
            let far = SeriesId(id.0 + (1 << 16));
            assert!(!file.contains(far) && file.read(far).unwrap().is_none());
        }
    }
}

#[test]
fn a_long_series_has_a_page_of_its_own() {
    let random = SimRandom::new(5);
    let mut rows = random_rows(&random, 3, 3);
    let mut source = random_row(&random, 0).source.unwrap_or_default();
    source.late.timestamps = (0..100_000).map(|_| random.next_u64() as i64).collect();
    rows[1].source = Some(source);
    let disk = disk();
    let meta = write_paged(&disk, &rows).unwrap();
    let file = open(&disk, &meta).unwrap();
    assert_eq!(file.pages(), 2);
    assert!(same(&read_pages(&file).concat(), &rows));
}

#[test]
fn a_page_is_short_and_a_series_takes_little_memory() {
    let rows = alike_rows();
    let disk = disk();
    let meta = write_paged(&disk, &rows).unwrap();
    assert!(same(&read(&disk, &meta).unwrap(), &rows));
    let each = meta.len_bytes as f64 / rows.len() as f64;
    assert!(each < 40.0, "{each:.1} bytes a series");
    let file = open(&disk, &meta).unwrap();
    let page = meta.len_bytes as f64 / file.pages() as f64;
    assert!(page < 8_192.0, "{page:.0} bytes a page");
    let memory = file.memory_bytes() as f64 / rows.len() as f64;
    assert!(memory < 1.0, "{memory:.2} bytes of memory a series");
}

#[test]
fn every_damaged_byte_is_found_by_whoever_reads_it() {
    let disk = disk();
    let mut rows = alike_rows()[..260].to_vec();
    for row in rows.iter_mut().step_by(9) {
        row.expires_at_ms = Some(1_700_000_000_000 + row.id.0 as i64);
    }
    let meta = write_paged(&disk, &rows).unwrap();
    let whole = disk.bytes(Path::new(PATH)).unwrap();
    let file = open(&disk, &meta).unwrap();
    let pages = read_pages(&file);
    assert!(pages.len() > 2);
    let told = pairs_told(&file).unwrap();
    let hashes = file.key_hashes(1).unwrap();
    // Pages, label blocks, hashes.
    let mut damaged = vec![0; pages.len() + 2];
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        disk.set_bytes(Path::new(PATH), bytes).unwrap();
        let error = read(&disk, &meta).expect_err("a bit was flipped");
        assert!(error.to_string().contains(PATH), "byte {at}: {error}");
        let file = match open(&disk, &meta) {
            Ok(file) => file,
            Err(error) => {
                // But for the version.
                assert!(at == 8 || at == 9 || error.kind() == ErrorKind::Corrupt);
                assert!(error.to_string().contains(PATH), "byte {at}: {error}");
                continue;
            }
        };
        let mut found = 0;
        for (page, rows) in pages.iter().enumerate() {
            match file.read_page(page) {
                Ok(read) => assert!(read == *rows, "byte {at}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}");
                    assert!(error.to_string().contains(PATH), "byte {at}: {error}");
                    assert!(file.read(rows[0].id).is_err());
                    damaged[page] += 1;
                    found += 1;
                }
            }
        }
        // What stands behind the damage is the same for every byte of a page.
        let is_read = found == 0 || at % 16 == 0;
        let is_told = is_read.then(|| pairs_told(&file).map(|read| assert_eq!(read, told)));
        let are_hashed = file.key_hashes(1).map(|read| assert_eq!(read, hashes));
        for (part, read) in [is_told.unwrap_or(Ok(())), are_hashed]
            .into_iter()
            .enumerate()
        {
            if let Err(error) = read {
                assert_eq!(error.kind(), ErrorKind::Corrupt, "byte {at}");
                assert!(error.to_string().contains(PATH), "byte {at}: {error}");
                damaged[pages.len() + part] += 1;
                found += 1;
            }
        }
        assert_eq!(found, 1, "byte {at}");
    }
    assert!(damaged.iter().all(|&bytes| bytes > 20), "{damaged:?}");
    for cut in (0..whole.len()).step_by(11) {
        disk.set_bytes(Path::new(PATH), whole[..cut].to_vec())
            .unwrap();
        assert_eq!(open(&disk, &meta).unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(read(&disk, &meta).unwrap_err().kind(), ErrorKind::Corrupt);
    }
}

/// Puts another directory into a file, with all checksums right.
fn forge(disk: &SimDisk, meta: &SeriesFileMeta, change: impl Fn(&mut Directory)) -> SeriesFileMeta {
    let bytes = disk.bytes(Path::new(PATH)).unwrap();
    let end = bytes.len() - FOOTER_BYTES - DIRECTORY_LEN_BYTES;
    let at = end - word_at(&bytes, end) as usize;
    let mut directory = directory_of(&bytes);
    change(&mut directory);
    close(disk, meta, bytes[..at].to_vec(), &directory)
}

fn directory_of(bytes: &[u8]) -> Directory {
    let end = bytes.len() - FOOTER_BYTES - DIRECTORY_LEN_BYTES;
    let at = end - word_at(bytes, end) as usize;
    let (header, stored) = bytes[at..end].split_first_chunk().unwrap();
    let header = SectionHeader::from_bytes(header);
    let raw = decompress(stored, header.raw_len as usize).unwrap();
    Directory::decode(&raw, header.rows & !DIRECTORY).unwrap()
}

/// Adds a section to a file.
fn add_section(bytes: &mut Vec<u8>, raw: &[u8], rows: u32) -> SectionHeader {
    let stored = compress(raw, 1).unwrap();
    let header = SectionHeader::new(&stored, raw.len() as u32, rows);
    bytes.extend(header.bytes());
    bytes.extend(stored);
    header
}

/// Puts a file in place: these bytes, and behind them directory and footer.
fn close(
    disk: &SimDisk,
    meta: &SeriesFileMeta,
    mut bytes: Vec<u8>,
    directory: &Directory,
) -> SeriesFileMeta {
    let count = directory.pages.pages.len() as u32;
    let header = add_section(&mut bytes, &directory.encode(), count | DIRECTORY);
    let chain = directory.chain(crc32_iscsi(&bytes[..HEADER_BYTES]));
    let footer = footer_of(meta.rows, meta.position, chained(chain, &header.bytes()));
    bytes.extend((header.section_len() as u32).to_le_bytes());
    bytes.extend(footer);
    let meta = SeriesFileMeta {
        len_bytes: bytes.len() as u64,
        checksum: word_at(&footer, 20),
        ..*meta
    };
    disk.set_bytes(Path::new(PATH), bytes).unwrap();
    meta
}

/// The directory says that this row alone expires.
fn forge_expiry(directory: &mut Directory, low: u16, at_ms: i64) {
    let mut row = random_row(&SimRandom::new(1), 3 << 16 | u32::from(low));
    row.expires_at_ms = Some(at_ms);
    directory.expiries = Default::default();
    directory.expiries.note(&row);
}

fn first_low(directory: &Directory) -> u16 {
    directory.pages.pages[0].first
}

/// Whatever the checksums say.
#[test]
fn a_directory_that_contradicts_the_rows_is_refused() {
    type Change = fn(&mut Directory);
    // With whether it also contradicts itself.
    let changes: [(Change, bool); 16] = [
        (|_| {}, false),
        (|all| all.pages.pages[1].terms.newest_min ^= 1, false),
        (|all| all.pages.pages[1].terms.ends_min_ms ^= 1, false),
        (|all| all.key_seed ^= 1, false),
        (|all| all.pair_count += 1, false),
        (|all| all.expiries = Default::default(), false),
        (|all| forge_expiry(all, first_low(all), 5), false),
        (|all| forge_expiry(all, first_low(all), -5), true),
        (|all| forge_expiry(all, 65_535, 5), true),
        (|all| all.pages.pages[1].first += 1, true),
        (|all| all.pages.ids.remove_smallest(1), true),
        (|all| assert!(all.pages.ids.insert(65_535)), true),
        (|all| all.pages.pages.truncate(1), true),
        (|all| all.hashes = None, true),
        (|all| all.pair_count = 0, true),
        (|all| all.blocks = Default::default(), true),
    ];
    for (number, (change, contradicts_itself)) in changes.into_iter().enumerate() {
        let disk = disk();
        let meta = write_paged(&disk, &random_rows(&SimRandom::new(3), 3, 300)).unwrap();
        let meta = forge(&disk, &meta, change);
        assert_eq!(verify(&disk, &meta).is_err(), number > 0, "change {number}");
        let opened = open(&disk, &meta);
        assert_eq!(opened.is_err(), contradicts_itself, "change {number}");
        for error in [verify(&disk, &meta).err(), opened.err()]
            .into_iter()
            .flatten()
        {
            // Hashes are made with the seed of the directory.
            let part = if number == 3 { "hashes" } else { "directory" };
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}

#[test]
fn files_of_other_versions_are_refused_in_words() {
    let disk = disk();
    let meta = write_paged(&disk, &[]).unwrap();
    assert_eq!(open(&disk, &meta).unwrap().pages(), 0);
    let mut bytes = disk.bytes(Path::new(PATH)).unwrap();
    bytes[8] = 9;
    disk.set_bytes(Path::new(PATH), bytes).unwrap();
    let error = open(&disk, &meta).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("version 9"), "{error}");
    let rows = random_rows(&SimRandom::new(1), 3, 9);
    for removed in [vec![], vec![SeriesId(3 << 16)]] {
        disk.env(1).disk.remove(Path::new(PATH)).unwrap();
        let meta = write_whole(&disk, &rows, &removed);
        let error = open(&disk, &meta).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        assert!(error.to_string().contains(PATH), "{error}");
    }
}

#[test]
fn a_whole_file_says_which_series_are_gone() {
    for seed in 0..20 {
        let random = SimRandom::new(seed);
        let count = [0, 1, 2, 50, 3_000][random.below(5) as usize];
        let (rows, removed) = with_removed(random_rows(&random, 3, count));
        let disk = disk();
        let meta = write_whole(&disk, &rows, &removed);
        assert_eq!(meta.rows, rows.len() as u64, "only those that are there");
        let again = read_changes(&disk, &meta).unwrap();
        assert!(same(&again.0, &rows) && again.1 == removed, "seed {seed}");
        let version = disk.bytes(Path::new(PATH)).unwrap()[8];
        assert_eq!(version, if removed.is_empty() { 2 } else { 4 });
    }
}

#[test]
fn golden_files_of_version_4_are_read() {
    let mut rows = random_rows(&SimRandom::new(4), 3, 120);
    give_links(&SimRandom::new(6), &mut rows);
    let golden_disk = disk();
    let written = write_paged(&golden_disk, &rows).unwrap();
    let meta = put_golden(&golden_disk, GOLDEN, &written);
    assert!(same(&read(&golden_disk, &meta).unwrap(), &rows));
    let file = open(&golden_disk, &meta).unwrap();
    assert!(file.pages() > 1 && file.expiries().count() > 9);
    assert!(file.links().eq(links_of(&rows)));
    are_terms_of(&file, &read_pages(&file));
    assert!(same(&read_pages(&file).concat(), &rows));
    assert!(same(&verify(&golden_disk, &meta).unwrap(), &rows));
    labels::is_told(&file, &rows);
    let (rows, removed) = with_removed(random_rows(&SimRandom::new(5), 3, 40));
    let disk = disk();
    let written = write_whole(&disk, &rows, &removed);
    let meta = put_golden(&disk, GOLDEN_WHOLE, &written);
    let again = read_changes(&disk, &meta).unwrap();
    assert!(same(&again.0, &rows) && again.1 == removed);
}

#[test]
fn a_failing_disk_is_told_of_when_it_is_read() {
    use crate::io::sim::{Fault, Op, Trouble};
    let disk = disk();
    let rows = random_rows(&SimRandom::new(3), 3, 20);
    let meta = write_paged(&disk, &rows).unwrap();
    let reads = || disk.count(Op::Read);
    let file = open(&disk, &meta).unwrap();
    let before = reads();
    file.read(rows[7].id).unwrap().unwrap();
    assert_eq!(reads() - before, 1, "one read for one row");
    disk.plan(Fault {
        op: Some(Op::Read),
        after: 0,
        trouble: Trouble::Fail(io::ErrorKind::Other),
    });
    let error = file.read(rows[7].id).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(error.to_string().contains(PATH), "{error}");
}
