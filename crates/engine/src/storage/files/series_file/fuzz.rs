//! The code under the fuzz target for what is looked up in files of parked series, and what a plain
//! reading of rows says of it.

use crate::base::error::Result;
use crate::storage::files::row::SeriesRow;
use crate::storage::files::series_file::ParkedFile;
use crate::storage::files::series_file::directory::Directory;
use crate::storage::files::series_file::label_blocks::{Entries, name_key, split_key};
use crate::storage::files::series_file::pages::low_bits;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// The rows of each value of each name.
pub(in crate::storage::files) type Told = BTreeMap<Vec<u8>, BTreeMap<Vec<u8>, BTreeSet<u32>>>;

/// What rows say.
pub(in crate::storage::files) fn pairs_in(rows: &[SeriesRow]) -> Told {
    let mut all = Told::new();
    for row in rows {
        for (name, value) in row.options.labels.iter() {
            let values = all.entry(name.to_vec()).or_default();
            let lows = values.entry(value.to_vec()).or_default();
            lows.insert(u32::from(low_bits(row.id)));
        }
    }
    all
}

/// What the file of rows says, and that it does not contradict itself.
pub(in crate::storage::files) fn pairs_told(file: &ParkedFile) -> Result<Told> {
    let (mut names, mut all) = (Vec::new(), Told::new());
    file.names(&mut |name, rows| {
        names.push((name.to_vec(), rows.iter().collect::<BTreeSet<u32>>()));
        ControlFlow::Continue(())
    })?;
    for (name, _) in names {
        let values = all.entry(name.clone()).or_default();
        file.values(&name, &mut |value, rows| {
            values.insert(value.to_vec(), rows.iter().collect());
            ControlFlow::Continue(())
        })?;
    }
    Ok(all)
}

/// Reads `bytes` as a directory, which is written and read again, and as a label block.
pub(in crate::storage::files) fn read_lookups(bytes: &[u8]) {
    for count in 0..4 {
        if let Some(directory) = Directory::decode(bytes, count) {
            let again = Directory::decode(&directory.encode(), count);
            assert_eq!(format!("{again:?}"), format!("{:?}", Some(directory)));
        }
    }
    let mut entries = Entries::new(bytes.to_vec(), u32::MAX);
    let mut before = Vec::new();
    while entries.advance() == Some(true) {
        let key = entries.key();
        assert!(*before < *key, "keys ascend");
        if let Some((name, value)) = split_key(key) {
            assert_eq!([&*name_key(&name), value].concat(), key);
        }
        let rows = entries.rows();
        assert!(rows.is_none_or(|rows| !rows.is_empty()));
        before = key.to_vec();
    }
}
