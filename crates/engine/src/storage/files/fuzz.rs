//! The code under the fuzz targets for manifests and series files.

use crate::base::error::Result;
use crate::io::Disk;
use crate::io::sim::SimDisk;
use crate::storage::files::bytes::{Put, Take};
use crate::storage::files::manifest::{Manifest, SeriesFileMeta};
use crate::storage::files::row_code::Before;
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
/// valid rows are written and read again.
pub(crate) fn read_series(bytes: &[u8]) -> Result<()> {
    [1, 2]
        .into_iter()
        .for_each(|version| read_rows(bytes, version));
    read_file(bytes)
}

fn read_rows(bytes: &[u8], version: u16) {
    let (mut take, mut before) = (Take(bytes), Before::default());
    let (mut put, mut behind) = (Put::default(), Before::default());
    let mut rows = Vec::new();
    while !take.is_empty()
        && let Some(row) = before.take(&mut take, version)
    {
        behind.put(&mut put, &row);
        rows.push(row);
    }
    let (mut take, mut before) = (Take(&put.0), Before::default());
    for row in &rows {
        let again = before.take(&mut take, 2);
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
    let mut at_random = Vec::new();
    if let Ok(parked) = &parked {
        for page in 0..parked.pages() {
            at_random.extend(parked.read_page(page).unwrap_or_default());
        }
    }
    let mut reader = SeriesFileReader::open(&env, path, &meta)?;
    let (mut rows, mut in_order) = (Vec::new(), Vec::new());
    while reader.next(&mut rows)? {
        in_order.append(&mut rows);
    }
    if parked.is_ok() {
        assert_eq!(format!("{at_random:?}"), format!("{in_order:?}"));
    }
    Ok(())
}
