//! Any file, for the fuzz target.

use super::scan::{Scan, fuzz_samples};
use crate::input::inflated;
use latewood_wire::influx::Precision;
use std::io::BufReader;

/// Reads a file, compressed or not. The server takes all that is sent of it.
pub fn fuzz_influx(bytes: &[u8], skips_bad: bool) {
    let Ok(reader) = inflated(BufReader::new(bytes)) else {
        return;
    };
    let mut scan = Scan::new(reader, "f".into(), Precision::Nanoseconds, skips_bad);
    let mut last = 0;
    while let Ok(Some(piece)) = scan.next_piece() {
        assert_eq!(
            fuzz_samples(&piece.text),
            (piece.samples, piece.texts, None)
        );
        let bad = piece.bad.iter().map(|(line, _)| line);
        for line in piece.starts.iter().chain(bad) {
            assert!(*line > 0);
        }
        for line in &piece.starts {
            assert!(*line > last, "line {line} after {last}");
            last = *line;
        }
        assert!(skips_bad || piece.bad.len() <= 1);
    }
}
