//! A start over files of parked series beside those of others: the newest that mentions a series
//! says where it is.

use super::open;
use crate::base::key_hash::key_hash;
use crate::io::sim::SimDisk;
use crate::storage::files::{ChangesMeta, Manifest, SeriesFileMeta, SeriesFileWriter};
use crate::tools::{check, totals};
use crate::{Db, Result};
use latewood_model::{SeriesId, SeriesOptions};
use std::collections::HashMap;
use std::path::Path;

const SERIES: usize = 8;

/// Which file a partition gets.
#[derive(Clone, Copy)]
enum File {
    Whole,
    Changes,
    Parked,
}

/// A database of some series that are in no file, and their ids, ascending.
fn unfiled(disk: &SimDisk) -> (Db, Vec<SeriesId>) {
    let db = open(disk);
    let made = (0..SERIES).map(|number| {
        let key = number.to_string();
        db.create(key.as_bytes(), &SeriesOptions::default())
            .unwrap();
        db.resolve(key.as_bytes()).unwrap().id
    });
    let mut ids: Vec<SeriesId> = made.collect();
    ids.sort_unstable();
    (db, ids)
}

/// Writes a file with rows of these ids, each with the number of the file in its key, so that it
/// can be told which row counts.
fn write(db: &Db, kind: File, ids: &[SeriesId], removed: &[SeriesId]) -> SeriesFileMeta {
    write_keyed(db, kind, ids, removed, key_in)
}

fn write_keyed(
    db: &Db,
    kind: File,
    ids: &[SeriesId],
    removed: &[SeriesId],
    key: impl Fn(SeriesId, u64) -> String,
) -> SeriesFileMeta {
    let core = &db.parts().core;
    let (env, number) = (&core.env, core.store.new_file_number());
    let path = core.store.series_file_path(number);
    let writer = match kind {
        File::Whole => SeriesFileWriter::create(env, &path, number, 0, removed),
        File::Changes => SeriesFileWriter::create_changes(env, &path, number, 0, removed),
        File::Parked => {
            SeriesFileWriter::create_paged(env, &path, number, 0, core.store.key_seed())
        }
    };
    let mut writer = writer.unwrap();
    for &id in ids {
        let position = core.log().unwrap().written();
        let row = core.row_of(&core.shards.lock_of(id), id, position);
        let mut row = row.unwrap();
        row.key = key(id, number).into_bytes().into();
        writer.row(&row).unwrap();
    }
    writer.finish().unwrap()
}

fn key_in(id: SeriesId, number: u64) -> String {
    format!("{:02} of {number}", id.0)
}

fn keys(db: &Db) -> Vec<String> {
    let (mut keys, mut cursor) = (Vec::new(), 0);
    loop {
        cursor = db
            .scan(cursor, 100, &mut |key| {
                keys.push(String::from_utf8_lossy(key).into_owned());
            })
            .unwrap();
        if cursor == 0 {
            break;
        }
    }
    keys.sort_unstable();
    keys
}

fn publish(db: &Db, change: impl Fn(&mut Manifest)) -> Result<()> {
    db.parts().core.publish(&mut |manifest| {
        change(manifest);
        Ok(())
    })
}

fn is_sound(disk: &SimDisk) -> Result<u64> {
    let mut said = Vec::new();
    let checked = check(&disk.kill().env(1), Path::new("/db"), &mut |finding| {
        said.push(finding.what.clone());
    })?;
    assert!(checked.damage == 0 && !checked.is_refused, "{said:?}");
    Ok(checked.series)
}

#[test]
fn the_newest_file_that_mentions_a_series_counts() -> Result<()> {
    let disk = SimDisk::new();
    let (db, ids) = unfiled(&disk);
    let file = |kind, rows: &[usize], removed: &[usize]| {
        let [rows, removed] = [rows, removed].map(|some| some.iter().map(|&n| ids[n]).collect());
        let (rows, removed): (Vec<_>, Vec<_>) = (rows, removed);
        write(&db, kind, &rows, &removed)
    };
    // Of the rows of the first two, the whole file says nothing of 2, that 3 is gone and 0 is awake.
    let older = [
        file(File::Parked, &[0, 2, 3], &[]),
        file(File::Parked, &[1, 2], &[]),
    ];
    let whole = file(File::Whole, &[0, 4, 5], &[3]);
    let changes = file(File::Changes, &[1, 6], &[5]);
    let parked = file(File::Parked, &[4, 6, 7], &[]);
    let last = file(File::Changes, &[6], &[7]);
    let written = db.parts().core.log().unwrap().written();
    publish(&db, |manifest| {
        manifest.log_start = written.0 + 1;
        let files = manifest.partition(0);
        files.series = Some(whole);
        files.changes = [(changes, 6), (last, 5)]
            .map(|(file, living)| ChangesMeta { file, living })
            .into();
        files.parked = [older.to_vec(), vec![parked]].concat();
        files.living = 5;
    })?;
    db.close()?;
    assert_eq!(is_sound(&disk)?, 5);
    let expected = [
        (0, whole),
        (1, changes),
        (2, older[1]),
        (4, parked),
        (6, last),
    ];
    let expected = expected.map(|(n, file)| key_in(ids[n], file.number));
    let db = open(&disk);
    assert_eq!(keys(&db), expected);
    // Files of both kinds are replaced.
    db.remove(&[expected[0].as_bytes()])?;
    db.flush()?;
    db.close()?;
    assert_eq!(is_sound(&disk)?, 4);
    assert_eq!(keys(&open(&disk)), expected[1..]);
    let facts = totals(&disk.kill().env(1), Path::new("/db"))?;
    assert!(
        format!("{facts:?}").contains("(\"series_in_files\", Number(4)"),
        "{facts:?}"
    );
    Ok(())
}

#[test]
fn of_several_parked_series_with_one_key_one_stays() -> Result<()> {
    let disk = SimDisk::new();
    let (db, ids) = unfiled(&disk);
    let twin = |_, _| "twin".to_owned();
    let files = [
        write_keyed(&db, File::Parked, &ids[..3], &[], twin),
        write(&db, File::Parked, &ids[3..5], &[]),
    ];
    let written = db.parts().core.log().unwrap().written();
    publish(&db, |manifest| {
        manifest.log_start = written.0 + 1;
        let parked = manifest.partition(0);
        (parked.parked, parked.living) = (files.to_vec(), 5);
    })?;
    db.close()?;
    let db = open(&disk);
    let others = [3, 4].map(|n| key_in(ids[n], files[1].number));
    assert_eq!(keys(&db), [&others[..], &["twin".to_owned()]].concat());
    assert_eq!(db.len(), 3);
    assert_eq!(db.remove(&[b"twin"])?.0, 1);
    assert!(!db.contains(b"twin"));
    db.flush()?;
    db.close()?;
    assert_eq!(keys(&open(&disk)), others);
    Ok(())
}

/// Two keys of one fingerprint of [`crate::keyspace::parked_keys`].
fn twins(seed: u64) -> [String; 2] {
    let mut seen = HashMap::new();
    (0_u64..)
        .find_map(|number| {
            let key = number.to_string();
            let hash = key_hash(seed, key.as_bytes());
            let fingerprint = (hash >> 60, hash as u32);
            let other = seen.insert(fingerprint, number)?;
            Some([other.to_string(), key])
        })
        .expect("there are more keys than fingerprints")
}

#[test]
fn parked_series_with_keys_of_one_fingerprint_stay_parked() -> Result<()> {
    let disk = SimDisk::new();
    let (db, ids) = unfiled(&disk);
    let twins = twins(db.parts().core.store.key_seed());
    let of = |id: SeriesId, _| twins[usize::from(id != ids[0])].clone();
    let parked = write_keyed(&db, File::Parked, &ids[..2], &[], of);
    let written = db.parts().core.log().unwrap().written();
    publish(&db, |manifest| {
        manifest.log_start = written.0 + 1;
        let files = manifest.partition(0);
        (files.parked, files.living) = (vec![parked], 2);
    })?;
    db.close()?;
    let db = open(&disk);
    assert_eq!(db.parked_len(), 2);
    for (key, id) in twins.iter().zip(&ids) {
        assert_eq!(db.resolve(key.as_bytes())?.id, *id);
    }
    Ok(())
}

#[test]
fn a_count_that_files_do_not_hold_is_told_of() -> Result<()> {
    let disk = SimDisk::new();
    let (db, ids) = unfiled(&disk);
    let parked = write(&db, File::Parked, &ids[..1], &[]);
    publish(&db, |manifest| {
        let files = manifest.partition(0);
        (files.parked, files.living) = (vec![parked], 2);
    })?;
    db.close()?;
    let mut said = Vec::new();
    check(&disk.kill().env(1), Path::new("/db"), &mut |finding| {
        said.push(finding.what.clone());
    })?;
    let words = "hold 1 series, not 2";
    assert!(said.iter().any(|what| what.contains(words)), "{said:?}");
    Ok(())
}
