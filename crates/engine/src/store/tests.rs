//! What the fuzz targets run, on bytes of golden files with a byte changed.

use super::fuzz::{read_manifest, read_series};
use crate::io::sim::SimRandom;

const MANIFEST: &[u8] = include_bytes!("../../tests/golden/manifest-v1.bin");
const SERIES: &[u8] = include_bytes!("../../tests/golden/series-v1.cat");

#[test]
fn changed_bytes_make_no_reader_panic() {
    let random = SimRandom::new(3);
    read_manifest(MANIFEST).unwrap();
    read_series(SERIES).unwrap();
    for _ in 0..3_000 {
        // The fields of the second copy stand alone, without their checksum.
        let fields = &MANIFEST[MANIFEST.len() / 2 + 16..];
        let mut bytes = [fields, SERIES][random.below(2) as usize].to_vec();
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = random.below(256) as u8;
        let cut = random.below(2 * bytes.len() as u64) as usize;
        bytes.truncate(cut.max(1));
        let _ = read_manifest(&bytes);
        let _ = read_series(&bytes);
    }
}
