//! The file of `--resume`: the series that this import created on the target or has copied.
//!
//! CSV, append-only, one record per event, so that the file is correct after a kill at any moment:
//! a series is recorded as begun before it is created on the target, and as copied after its last
//! sample was acknowledged, and as gone once it is on neither side. Every record ends with a full
//! stop; a last record without it was
//! interrupted and is truncated. The first record holds the version of the format and the
//! identity of the import; a file of another import is refused.

use crate::error::{Doing, Error, Result, shown};
use csv::ByteRecord;
use latewood_wire::named;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The first field of the first record.
const MAGIC: &[u8] = b"latewood import";
const VERSION: &[u8] = b"1";
/// The first field of a record of a series that is on neither side any more.
const GONE: &[u8] = b"gone";
/// The last field of every record.
const STOP: &[u8] = b".";

named! {
    /// The progress of a series.
    pub(crate) enum Step {
        /// Created on the target by this import, or about to be.
        Begun => "begun",
        /// All samples were copied once.
        Copied => "copied",
    }
}

impl Step {
    fn read(word: &[u8]) -> Option<Self> {
        let mut steps = Self::ALL.into_iter();
        steps.find(|step| word == step.name().as_bytes())
    }
}

/// The state of an import, optionally in a file.
#[derive(Debug)]
pub(crate) struct State {
    steps: HashMap<Vec<u8>, Step>,
    file: Option<(File, PathBuf)>,
}

impl State {
    pub(crate) fn in_memory() -> Self {
        Self {
            steps: HashMap::new(),
            file: None,
        }
    }

    /// Kept in `path`, which is created if necessary. `identity` identifies the import.
    ///
    /// # Errors
    /// When the file cannot be read or written, is not a state file, or belongs to another import.
    pub(crate) fn open(path: &Path, identity: &[&str]) -> Result<Self> {
        let name = path.display();
        let mut file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(path)
            .doing(format!("open {name}"))?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).doing(format!("read {name}"))?;
        let mut state = Self {
            steps: HashMap::new(),
            file: Some((file, path.to_owned())),
        };
        let mut head = vec![MAGIC, VERSION];
        head.extend(identity.iter().map(|part| part.as_bytes()));
        let whole = state.read(&text, &head)?;
        if whole < text.len() as u64
            && let Some((file, _)) = &state.file
        {
            file.set_len(whole).doing(format!("truncate {name}"))?;
        }
        if whole == 0 {
            state.append(&head)?;
        }
        Ok(state)
    }

    /// The series that were begun.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.steps.keys()
    }

    /// The progress of `key`, if it was begun.
    pub(crate) fn step(&self, key: &[u8]) -> Option<Step> {
        self.steps.get(key).copied()
    }

    /// Records the progress of `key`.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn note(&mut self, key: &[u8], step: Step) -> Result<()> {
        if self.step(key) == Some(step) {
            return Ok(());
        }
        self.append(&[step.name().as_bytes(), key])?;
        self.steps.insert(key.to_vec(), step);
        Ok(())
    }

    /// Records that `key` is on neither side any more.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn forget(&mut self, key: &[u8]) -> Result<()> {
        if self.steps.remove(key).is_some() {
            self.append(&[GONE, key])?;
        }
        Ok(())
    }

    fn append(&mut self, fields: &[&[u8]]) -> Result<()> {
        let Some((file, path)) = &mut self.file else {
            return Ok(());
        };
        let mut writer = csv::Writer::from_writer(Vec::new());
        let doing = || format!("write {}", path.display());
        let fields = fields.iter().copied().chain([STOP]);
        writer.write_record(fields).doing(doing())?;
        let line = writer.into_inner().map_err(|error| error.into_error());
        file.write_all(&line.doing(doing())?).doing(doing())
    }

    /// Reads the file's text; returns the length of its complete records.
    fn read(&mut self, text: &[u8], head: &[&[u8]]) -> Result<u64> {
        let path = self.file.as_ref().map(|(_, path)| path.display());
        let name = path.map(|path| path.to_string()).unwrap_or_default();
        let wrong = |what: String| Error::Failed(format!("{name} {what}"));
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(text);
        let mut record = ByteRecord::new();
        let mut whole = 0;
        loop {
            let more = reader.read_byte_record(&mut record);
            if !more.map_err(|error| wrong(format!("is damaged: {error}")))? {
                return Ok(whole);
            }
            let end = reader.position().byte();
            let stopped = record.iter().next_back() == Some(STOP);
            if end == text.len() as u64 && !(stopped && text.ends_with(b"\n")) {
                // An incomplete first record must still be a prefix of a valid one.
                if whole > 0 || MAGIC.starts_with(text) || text.starts_with(MAGIC) {
                    return Ok(whole);
                }
            }
            let fields: Vec<&[u8]> = record.iter().collect();
            match fields[..] {
                [MAGIC, ref rest @ ..] if whole == 0 => {
                    check_head(rest, &head[1..]).map_err(wrong)?;
                }
                [word, key, STOP]
                    if whole > 0
                        && let Some(step) = Step::read(word) =>
                {
                    self.steps.insert(key.to_vec(), step);
                }
                [GONE, key, STOP] if whole > 0 => drop(self.steps.remove(key)),
                _ if whole == 0 => return Err(wrong("is not a state file of an import".into())),
                _ => {
                    let line = record.position().map_or(0, csv::Position::line);
                    return Err(wrong(format!("is damaged at line {line}")));
                }
            }
            whole = end;
        }
    }
}

/// Checks that the first record is the one this import would write.
fn check_head(found: &[&[u8]], wanted: &[&[u8]]) -> std::result::Result<(), String> {
    if found.first() != Some(&VERSION) {
        return Err("was written by another version of latewood".to_owned());
    }
    let found = found.strip_suffix(&[STOP]).unwrap_or(found);
    if found == wanted {
        return Ok(());
    }
    let of: Vec<_> = found[1..].iter().map(|part| shown(part)).collect();
    Err(format!("belongs to another import: {}", of.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: [&str; 3] = ["a:1", "b:2", "*"];

    #[test]
    fn what_was_noted_is_there_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let mut state = State::open(&path, &IDENTITY).unwrap();
        let odd = b"key,with \"quotes\"\nand \xff bytes";
        state.note(odd, Step::Begun).unwrap();
        state.note(b"room:1", Step::Begun).unwrap();
        state.note(b"room:1", Step::Copied).unwrap();
        let again = State::open(&path, &IDENTITY).unwrap();
        assert_eq!(again.step(odd), Some(Step::Begun));
        assert_eq!(again.step(b"room:1"), Some(Step::Copied));
        assert_eq!(again.step(b"room:2"), None);
    }

    #[test]
    fn a_torn_last_line_is_dropped_and_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        State::open(&path, &IDENTITY)
            .unwrap()
            .note(b"one", Step::Copied)
            .unwrap();
        let whole = std::fs::read(&path).unwrap();
        for torn in [
            "copied,tw",
            "c",
            "begun",
            "copied,tw\n",
            "copied,\"tw\n",
            "copied,two,.",
        ] {
            std::fs::write(&path, [&whole[..], torn.as_bytes()].concat()).unwrap();
            let mut state = State::open(&path, &IDENTITY).unwrap();
            assert_eq!(state.step(b"tw"), None);
            state.note(b"two", Step::Copied).unwrap();
            let again = State::open(&path, &IDENTITY).unwrap();
            assert_eq!(again.step(b"one"), Some(Step::Copied));
            assert_eq!(again.step(b"two"), Some(Step::Copied));
        }
    }

    #[test]
    fn other_files_are_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        State::open(&path, &["other:1", "b:2", "*"]).unwrap();
        let other = std::fs::read_to_string(&path).unwrap();
        for (text, words) in [
            (other.as_str(), "belongs to another import: other:1"),
            ("latewood import,9,a:1,b:2,*,.\n", "another version"),
            ("a shopping list\n", "is not a state file"),
            (
                "latewood import,1,a:1,b:2,*,.\nnonsense,k,.\n",
                "damaged at line 2",
            ),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = State::open(&path, &IDENTITY).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
