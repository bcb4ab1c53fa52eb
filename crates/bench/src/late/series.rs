//! The series of a cell: their keys, how they are made, and that they go again.

use super::{Cell, Encoding, Fixed, rules};
use crate::control::Control;
use crate::error::Result;

/// Their keys.
pub(super) fn keys(cell: &Cell, fixed: &Fixed) -> Vec<String> {
    let prefix = &fixed.key_prefix;
    (1..=cell.series)
        .map(|number| format!("{prefix}{number}"))
        .collect()
}

/// Makes them, and their rules.
///
/// # Errors
/// When one exists or the server goes away.
pub(super) fn create(control: &mut Control, cell: &Cell, keys: &[String]) -> Result<()> {
    let chunk_size = cell.chunk_size.to_string();
    let command = |key: &String| {
        let mut words = vec!["TS.CREATE", key];
        if cell.encoding == Encoding::Uncompressed {
            words.extend(["ENCODING", "UNCOMPRESSED"]);
        }
        words.extend(["CHUNK_SIZE", &chunk_size]);
        if !cell.policy.is_empty() {
            words.extend(["DUPLICATE_POLICY", &cell.policy]);
        }
        words.iter().map(|word| word.as_bytes().to_vec()).collect()
    };
    let commands: Vec<_> = keys.iter().map(command).collect();
    control.run_all(&commands)?;
    rules::create(control, keys, cell.rules)
}

/// Removes series.
///
/// # Errors
/// When the server goes away.
pub(super) fn delete(control: &mut Control, keys: &[String]) -> Result<()> {
    let command = |key: &String| vec![b"DEL".to_vec(), key.as_bytes().to_vec()];
    let commands: Vec<_> = keys.iter().map(command).collect();
    control.run_all(&commands).map(|_| ())
}
