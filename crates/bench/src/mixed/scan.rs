//! Reading every sample of every series, once from chunk statistics, once decoded.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::control::Control;
use crate::error::Result;
use crate::late;
use crate::target::Process;
use crate::usage::forget_pages;

/// A maximum stands in the statistics of a chunk, a deviation does not. One bucket holds all.
const QUESTIONS: [(&str, &str); 2] = [("statistics", "max"), ("decoded", "std.p")];
/// Warm rounds of each question.
const WARM: usize = 3;

/// One read of everything.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Scanned {
    /// Which question.
    pub(crate) question: String,
    /// Whether the files were out of the page cache before.
    pub(crate) cold: bool,
    /// Samples that were read.
    pub(crate) samples: u64,
    /// Until the answer.
    pub(crate) seconds: f64,
    /// Processor time of the server, all threads.
    pub(crate) cpu_seconds: f64,
}

/// Asks both questions, cold and warm, of a server that holds `samples` samples.
///
/// # Errors
/// When the server goes away.
pub(super) fn all(control: &mut Control, process: &Process, samples: u64) -> Result<Vec<Scanned>> {
    let mut scans = Vec::new();
    for (question, aggregator) in QUESTIONS {
        let text = format!(
            "TS.MRANGE - + AGGREGATION {aggregator} 100000000000000 FILTER unit=celsius \
             GROUPBY unit REDUCE max"
        );
        let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
        forget_pages(&process.data())?;
        for round in 0..=WARM {
            let cpu_before = late::cpu_seconds(control)?;
            let began = Instant::now();
            control.run(&words)?;
            let seconds = began.elapsed().as_secs_f64();
            scans.push(Scanned {
                question: question.to_owned(),
                cold: round == 0,
                samples,
                seconds,
                cpu_seconds: late::cpu_seconds(control)? - cpu_before,
            });
        }
    }
    Ok(scans)
}
