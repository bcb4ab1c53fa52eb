//! Lists the keys of the source: series to copy, keys of other types to report.

use crate::connect::{Link, bytes, integer, items};
use crate::error::Result;
use std::collections::{BTreeMap, BTreeSet};

const SERIES_TYPE: &[u8] = b"TSDB-TYPE";
/// Keys per SCAN.
const SCAN_COUNT: usize = 1_000;

/// The keys found by one SCAN of the source.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// Keys of series, sorted.
    pub(crate) series: BTreeSet<Vec<u8>>,
    /// Keys of each other type.
    pub(crate) others: BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>,
}

impl Keys {
    /// Scans all keys that match `pattern`. Keys that are created or deleted meanwhile may be
    /// missing.
    ///
    /// # Errors
    /// When the connection is lost or SCAN is refused.
    pub(crate) fn walk(link: &mut Link, pattern: &str) -> Result<Self> {
        let mut keys = Self::default();
        let mut cursor = b"0".to_vec();
        loop {
            let scan = redis::cmd("SCAN")
                .arg(&cursor)
                .arg("MATCH")
                .arg(pattern)
                .arg("COUNT")
                .arg(SCAN_COUNT)
                .take();
            let reply = link.run(&scan)?;
            let (next, found) = match items(&reply) {
                Some([next, found]) => (bytes(next), items(found)),
                _ => (None, None),
            };
            let (Some(next), Some(found)) = (next, found) else {
                return Err(link.unexpected("SCAN"));
            };
            let found: Vec<&[u8]> = found.iter().filter_map(bytes).collect();
            keys.sort(link, &found)?;
            if next == b"0" {
                return Ok(keys);
            }
            cursor = next.to_vec();
        }
    }

    /// Number of samples of all series, as far as the server reports it.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(crate) fn samples(&self, link: &mut Link) -> Result<u64> {
        let mut total = 0;
        let all: Vec<_> = self.series.iter().collect();
        for keys in all.chunks(SCAN_COUNT) {
            let mut ask = redis::pipe();
            for key in keys {
                ask.cmd("TS.INFO").arg(key);
            }
            for answer in link.ask_all(&mut ask)?.into_iter().flatten() {
                let count = items(&answer).and_then(|fields| integer(fields.get(1)?));
                total += count.map_or(0, i64::unsigned_abs);
            }
        }
        Ok(total)
    }

    fn sort(&mut self, link: &mut Link, found: &[&[u8]]) -> Result<()> {
        let mut ask = redis::pipe();
        for key in found {
            ask.cmd("TYPE").arg(*key);
        }
        for (key, answer) in found.iter().zip(link.ask_all(&mut ask)?) {
            match answer.as_ref().ok().and_then(bytes) {
                Some(SERIES_TYPE) => _ = self.series.insert(key.to_vec()),
                // Deleted or expired since SCAN saw it.
                Some(b"none") => {}
                Some(other) => {
                    let keys = self.others.entry(other.to_vec()).or_default();
                    keys.insert(key.to_vec());
                }
                None => return Err(link.unexpected("TYPE")),
            }
        }
        Ok(())
    }
}
