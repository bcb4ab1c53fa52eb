//! What a server holds at the end, compared with what was sent to it.

use super::values;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::reply::ReplyExt;
use crate::workload::Writer;

/// Samples and bytes of all series.
pub(crate) struct Held {
    /// totalSamples of TS.INFO.
    pub(crate) samples: u64,
    /// memoryUsage of TS.INFO.
    pub(crate) memory_bytes: u64,
}

/// Compares every series with what was sent to it: how many samples each holds, and of some the
/// samples themselves.
///
/// # Errors
/// Names the first series that holds more or fewer samples, or the first sample that is another.
pub(crate) fn check(control: &mut Control, writers: &[Writer]) -> Result<Held> {
    let series: Vec<_> = writers.iter().flat_map(Writer::series).collect();
    let command = |key: &[u8]| vec![b"TS.INFO".to_vec(), key.to_vec()];
    let commands: Vec<_> = series.iter().map(|series| command(series.key())).collect();
    let mut held = Held {
        samples: 0,
        memory_bytes: 0,
    };
    for (series, info) in series.iter().zip(control.run_all(&commands)?) {
        let field = |name| {
            let number = info.field(name).and_then(|value| value.number());
            let number = number.and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| Error::new(format!("TS.INFO has no {name}")))
        };
        let samples = field("totalSamples")?;
        if samples != series.distinct() {
            let key = String::from_utf8_lossy(series.key());
            return Err(Error::new(format!(
                "{key} holds {samples} samples, but {} different timestamps were sent to it",
                series.distinct()
            )));
        }
        held.samples += samples;
        held.memory_bytes += field("memoryUsage")?;
    }
    values::check(control, &series)?;
    Ok(held)
}
