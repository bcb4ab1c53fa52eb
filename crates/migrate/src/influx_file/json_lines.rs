//! JSON lines of `influxdb3 query --format jsonl "SELECT * FROM cpu"`, as lines of line protocol.
//!
//! InfluxDB 3 exports no line protocol. A row is an object of columns:
//! `{"host":"a","time":"2023-11-14T22:13:20.000000001","usage":0.9}`. It says neither its measurement nor
//! which columns are tags; the options do. Null columns are left out. Times have no zone and are UTC; they
//! are sent in milliseconds, rounded down, as the server does. The digits of a number are sent as they
//! are, and a text that is no tag is counted and not sent, as in line protocol.
//!
//! Each line becomes one line, perhaps blank, so that the server's line numbers are those of the file.
//!
//! Tested below and by `crates/server/tests/migrate/influx.rs`.

use super::scan::{PIECE_BYTES, Piece, Seen};
use crate::error::{Doing, Error, Result};
use latewood_wire::influx::{Decoder, LINE_BYTES_MAX, Precision};
use latewood_wire::prometheus::time::parse_time;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

/// The column of the time.
const TIME: &str = "time";

/// The table that rows are of.
pub(super) struct Table {
    measurement: Vec<u8>,
    tags: BTreeSet<String>,
    /// Those of them that no row had.
    unseen: BTreeSet<String>,
    has_rows: bool,
}

impl Table {
    /// # Errors
    /// Where a line cannot begin with the measurement.
    pub(super) fn new(measurement: &str, tags: &[String]) -> Result<Self> {
        if measurement.is_empty() || measurement.starts_with('#') || !can_be_name(measurement) {
            let text = format!("line protocol cannot express the measurement {measurement:?}");
            return Err(Error::Failed(text));
        }
        let mut escaped = Vec::new();
        escape(measurement, b", =\"", &mut escaped);
        // `--tags ''` says that there are none.
        let tags = tags.iter().filter(|tag| !tag.is_empty());
        let tags: BTreeSet<_> = tags.cloned().collect();
        Ok(Self {
            measurement: escaped,
            unseen: tags.clone(),
            tags,
            has_rows: false,
        })
    }

    /// What is to be said of all rows.
    ///
    /// # Errors
    /// Where no row had one of the tags: it may be misspelled, and series that differ by it became one.
    pub(super) fn finish(&self) -> Result<()> {
        match self.unseen.first().filter(|_| self.has_rows) {
            None => Ok(()),
            Some(tag) => Err(Error::Failed(format!("no line has the tag {tag:?}"))),
        }
    }

    /// Appends the line of a row; the number of samples and texts.
    fn line(&mut self, row: &[u8], out: &mut Vec<u8>) -> std::result::Result<(u64, u64), String> {
        let row: BTreeMap<String, &RawValue> = serde_json::from_slice(row)
            .map_err(|error| format!("not an object in JSON: {error}"))?;
        self.has_rows = true;
        out.extend_from_slice(&self.measurement);
        let (mut fields, mut time) = (Vec::new(), None);
        let (mut samples, mut texts) = (0, 0);
        for (name, value) in &row {
            let value = value.get();
            let text = || serde_json::from_str::<String>(value);
            if !can_be_name(name) {
                return Err(format!("line protocol cannot express the column {name:?}"));
            }
            match value.as_bytes().first() {
                Some(b'n') => {}
                _ if name == TIME => time = text().ok().and_then(|text| time_ms(&text)),
                _ if self.tags.contains(name) => {
                    let text = text().map_err(|_| format!("the tag {name:?} is not a text"))?;
                    if !can_be_name(&text) {
                        return Err(format!("line protocol cannot express the tag {name:?}"));
                    }
                    self.unseen.remove(name);
                    if !text.is_empty() {
                        out.push(b',');
                        escape(name, b", =", out);
                        out.push(b'=');
                        escape(&text, b", =", out);
                    }
                }
                Some(b'"') => texts += 1,
                Some(b'[' | b'{') => return Err(format!("the column {name:?} is not one value")),
                _ => {
                    fields.push(if samples == 0 { b' ' } else { b',' });
                    escape(name, b", =\"", &mut fields);
                    fields.push(b'=');
                    fields.extend_from_slice(value.as_bytes());
                    samples += 1;
                }
            }
        }
        let time = time.ok_or("the column \"time\" is missing or no time in RFC 3339")?;
        out.append(&mut fields);
        out.extend_from_slice(format!(" {time}").as_bytes());
        Ok((samples, texts))
    }
}

/// A backslash at the end would escape what follows.
fn can_be_name(text: &str) -> bool {
    !text.ends_with('\\') && !text.contains('\n')
}

fn escape(text: &str, special: &[u8], out: &mut Vec<u8>) {
    for &byte in text.as_bytes() {
        if special.contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

/// A time, of UTC where it does not say its zone.
fn time_ms(text: &str) -> Option<i64> {
    let (_, clock) = text.split_once('T')?;
    let has_zone = clock.contains(['Z', '+', '-']);
    let zone = if has_zone { "" } else { "Z" };
    parse_time(&format!("{text}{zone}")).ok()
}

/// A file being read.
pub(super) struct Rows<'a, R> {
    reader: BufReader<R>,
    name: Arc<str>,
    table: &'a mut Table,
    /// Whether to continue after a bad line.
    skips_bad: bool,
    /// What the server would say of a line.
    decoder: Decoder,
    seen: Seen,
    /// The number of the last line.
    line: u64,
    row: Vec<u8>,
    is_end: bool,
}

impl<'a, R: Read> Rows<'a, R> {
    pub(super) fn new(reader: R, name: Arc<str>, table: &'a mut Table, skips_bad: bool) -> Self {
        Self {
            reader: BufReader::new(reader),
            name,
            table,
            skips_bad,
            decoder: Decoder::new(Precision::Milliseconds),
            seen: Seen::default(),
            line: 0,
            row: Vec::new(),
            is_end: false,
        }
    }

    /// The next piece; `None` after the last.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn next_piece(&mut self) -> Result<Option<Piece>> {
        let mut piece = Piece {
            name: Arc::clone(&self.name),
            ..Piece::default()
        };
        while piece.text.len() < PIECE_BYTES && !self.is_end {
            self.row.clear();
            let mut line = (&mut self.reader).take(LINE_BYTES_MAX as u64);
            let read = line.read_until(b'\n', &mut self.row);
            if read.doing(format!("read {}", self.name))? == 0 {
                self.is_end = true;
                break;
            }
            self.line += 1;
            piece.starts.push(self.line);
            if self.row.len() == LINE_BYTES_MAX && !self.row.ends_with(b"\n") {
                self.pass()?;
                let reason = format!("longer than {LINE_BYTES_MAX} bytes");
                piece.bad.push((self.line, reason));
                self.is_end = !self.skips_bad;
            } else {
                self.put(&mut piece);
            }
            piece.text.push(b'\n');
        }
        Ok((!piece.starts.is_empty()).then_some(piece))
    }

    /// Reads the rest of a line.
    fn pass(&mut self) -> Result<()> {
        loop {
            self.row.clear();
            let mut line = (&mut self.reader).take(LINE_BYTES_MAX as u64);
            let read = line.read_until(b'\n', &mut self.row);
            if read.doing(format!("read {}", self.name))? == 0 || self.row.ends_with(b"\n") {
                return Ok(());
            }
        }
    }

    fn put(&mut self, piece: &mut Piece) {
        if self.row.trim_ascii().is_empty() {
            return;
        }
        let begun = piece.text.len();
        let made = self.table.line(&self.row, &mut piece.text);
        let taken = made.and_then(|(samples, texts)| {
            if samples > 0 {
                check(&mut self.decoder, &mut self.seen, &piece.text[begun..])?;
            }
            Ok((samples, texts))
        });
        match taken {
            Ok((samples, texts)) => {
                piece.samples += samples;
                piece.texts += texts;
                if samples == 0 {
                    piece.text.truncate(begun);
                }
            }
            Err(reason) => {
                piece.text.truncate(begun);
                piece.bad.push((self.line, reason));
                self.is_end = !self.skips_bad;
            }
        }
    }
}

/// Whether the server takes a line, as far as the line tells.
fn check(decoder: &mut Decoder, seen: &mut Seen, line: &[u8]) -> std::result::Result<(), String> {
    let mut at = 0;
    while at < line.len() {
        let read = decoder.step(&line[at..], true, seen);
        if let Some(reason) = seen.refused.take() {
            return Err(reason);
        }
        if read == 0 {
            break;
        }
        at += read;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    fn read(text: &str, table: &mut Table, skips_bad: bool) -> Option<Piece> {
        let mut rows = Rows::new(text.as_bytes(), "f".into(), table, skips_bad);
        rows.next_piece().unwrap()
    }

    #[test]
    fn rows_become_lines_with_their_digits() {
        let text = "{\"a b\":\"x=1,\\u00e9\",\"host\":\"s1\",\"time\":\"1970-01-01T00:00:01.001999999\",\
                    \"usage\":0.1000000000000000055,\"n=\":18446744073709551615,\"up\":true}\n\
                    {\"host\":\"\",\"note\":\"z\",\"time\":\"1970-01-01T02:00:01+02:00\",\"v\":-1e-7}\r\n\
                    \n\
                    {\"note\":\"only\",\"v\":null,\"time\":\"1970-01-01T00:00:00Z\"}\n\
                    {\"time\":\"1970-01-01T00:00:00\",\"v\":2}";
        let mut table = Table::new("m m", &tags(&["host", "a b"])).unwrap();
        let piece = read(text, &mut table, false).unwrap();
        let wanted = "m\\ m,a\\ b=x\\=1\\,é,host=s1 \
                      n\\==18446744073709551615,up=true,usage=0.1000000000000000055 1001\n\
                      m\\ m v=-1e-7 1000\n\n\nm\\ m v=2 0\n";
        assert_eq!(std::str::from_utf8(&piece.text).unwrap(), wanted);
        assert_eq!((piece.samples, piece.texts), (5, 2));
        assert_eq!(piece.starts, [1, 2, 3, 4, 5]);
        assert!(piece.bad.is_empty() && table.finish().is_ok());
    }

    #[test]
    fn bad_rows_are_named_and_leave_a_blank_line() {
        let text = "cpu v=1 1\n\
                    {\"v\":1}\n\
                    {\"v\":1,\"time\":\"1700000000\"}\n\
                    {\"v\":[1],\"time\":\"1970-01-01T00:00:00\"}\n\
                    {\"host\":7,\"time\":\"1970-01-01T00:00:00\"}\n\
                    {\"host\":\"C:\\\\\",\"time\":\"1970-01-01T00:00:00\"}\n\
                    {\"v\":1e400,\"w\":1,\"time\":\"1970-01-01T00:00:00\"}\n\
                    {\"v\":1,\"time\":\"1970-01-01T00:00:00\"}\n";
        let mut table = Table::new("m", &tags(&["host"])).unwrap();
        assert!(table.finish().is_ok(), "there are no rows yet");
        let piece = read(text, &mut table, true).unwrap();
        assert_eq!(piece.text, b"\n\n\n\n\n\n\nm v=1 0\n");
        assert_eq!(piece.samples, 1);
        let lines: Vec<_> = piece.bad.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 2, 3, 4, 5, 6, 7]);
        for ((_, reason), wanted) in piece.bad.iter().zip([
            "not an object in JSON",
            "the column \"time\" is missing",
            "the column \"time\" is missing or no time",
            "the column \"v\" is not one value",
            "the tag \"host\" is not a text",
            "line protocol cannot express the tag \"host\"",
            "unable to parse",
        ]) {
            assert!(reason.starts_with(wanted), "{reason}");
        }
        let error = table.finish().unwrap_err().to_string();
        assert_eq!(error, "no line has the tag \"host\"");
        for name in ["", "#m", "m\\"] {
            assert!(Table::new(name, &[]).is_err(), "{name}");
        }
        let long = format!(
            "{{\"a\":\"{}\"}}\n{{\"v\":1,\"time\":\"1970-01-01T00:00:00\"}}",
            "x".repeat(3 * LINE_BYTES_MAX)
        );
        let piece = read(&long, &mut table, true).unwrap();
        assert_eq!(
            (piece.text.as_slice(), piece.bad.len()),
            (b"\nm v=1 0\n".as_slice(), 1)
        );
        assert_eq!((piece.bad[0].0, piece.starts), (1, vec![1, 2]));
        let first = read(text, &mut table, false).unwrap();
        assert_eq!((first.text, first.bad.len()), (b"\n".to_vec(), 1));
    }
}
