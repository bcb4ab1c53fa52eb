//! The code under the fuzz targets for manifests and series files.

use crate::base::error::Result;
use crate::io::Disk;
use crate::io::sim::SimDisk;
use crate::storage::files::bytes::{Put, Take};
use crate::storage::files::manifest::{Manifest, SeriesFileMeta};
use crate::storage::files::row::SeriesRow;
use crate::storage::files::row_code::Before;
use crate::storage::files::series_file::fuzz::{pairs_in, pairs_told, read_lookups};
use crate::storage::files::series_file::{ParkedFile, SeriesFileReader};
use std::path::Path;

/// Reads `bytes` as a manifest; a valid one is written and read again.
pub(crate) fn read_manifest(bytes: &[u8]) -> Result<()> {
    // Without a checksum, so that a fuzzer reaches the fields.
    for version in [1, 2] {
        let manifest = Manifest::take(bytes, version);
        if let Ok(manifest) = manifest
            && manifest.fault().is_none()
        {
            let again = Manifest::decode(&manifest.encode())?;
            assert_eq!(again, manifest);
        }
    }
    Manifest::decode(bytes).map(|_| ())
}

/// Reads `bytes` as a series file, front to back and page by page, and as the rows of a section;
/// valid rows are written and read again. Reads them as a directory and a label block, too.
pub(crate) fn read_series(bytes: &[u8]) -> Result<()> {
    [1, 2, 4]
        .into_iter()
        .for_each(|version| read_rows(bytes, version));
    read_lookups(bytes);
    read_file(bytes)
}

fn read_rows(bytes: &[u8], version: u16) {
    let (mut take, mut before) = (Take(bytes), Before::default());
    let (mut put, mut behind) = (Put::default(), Before::default());
    // The first version is only read.
    let (written, mut rows) = (version.max(2), Vec::new());
    while !take.is_empty()
        && let Some(row) = before.take(&mut take, version)
    {
        behind.put(&mut put, &row, written);
        rows.push(row);
    }
    let (mut take, mut before) = (Take(&put.0), Before::default());
    for row in &rows {
        let again = before.take(&mut take, written);
        assert_eq!(format!("{again:?}"), format!("{:?}", Some(row)));
    }
}

fn read_file(bytes: &[u8]) -> Result<()> {
    let disk = SimDisk::new();
    let path = Path::new("/series");
    let written = disk
        .create_dir_all(Path::new("/"))
        .and_then(|()| disk.create(path, 0))
        .and_then(|file| file.write_at(bytes, 0));
    assert!(written.is_ok(), "a disk without faults");
    let env = disk.env(0);
    let meta = SeriesFileMeta::of_file(&env, path)?;
    let parked = ParkedFile::open(&env, path, &meta);
    let (mut at_random, mut told) = (Vec::new(), None);
    if let Ok(parked) = &parked {
        told = pairs_told(parked).ok();
        let _ = (parked.key_hashes(0), parked.newest());
        for page in 0..parked.pages() {
            at_random.extend(parked.read_page(page).unwrap_or_default());
        }
    }
    let in_order = read_through(SeriesFileReader::open(&env, path, &meta)?)?;
    if parked.is_ok() {
        assert_eq!(format!("{at_random:?}"), format!("{in_order:?}"));
    }
    read_through(SeriesFileReader::open_to_verify(&env, path, &meta)?)?;
    if parked.is_ok() {
        assert_eq!(told, Some(pairs_in(&in_order)));
    }
    Ok(())
}

fn read_through(mut reader: SeriesFileReader) -> Result<Vec<SeriesRow>> {
    let (mut rows, mut all) = (Vec::new(), Vec::new());
    while reader.next(&mut rows)? {
        all.append(&mut rows);
    }
    Ok(all)
}
