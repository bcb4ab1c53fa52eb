//! Writes the series of a server as lines.

use super::format::{Described, HEADING, Line};
use crate::args::CsvExport;
use crate::connect::Link;
use crate::error::{Doing, Result, shown};
use crate::keys::Keys;
use crate::outcome::Outcome;
use crate::output;
use crate::progress::Progress;
use crate::rate::Rate;
use crate::samples::{Cursor, Stop};
use crate::series::{Info, expiry};
use csv::ByteRecord;
use std::io::Write;

/// Writes every matching series of the server.
///
/// # Errors
/// When the server cannot be read or the file cannot be written.
pub(crate) fn run(options: &CsvExport) -> Result<Outcome> {
    let mut source = Link::open("the source", &options.from, &options.login, 0, &options.tls)?;
    let keys = Keys::walk(&mut source, &options.pattern)?;
    let total = keys.samples(&mut source)?;
    let mut export = Export {
        options,
        source,
        rate: Rate::new(options.rate),
        progress: Progress::new(
            format!("exporting {} series", keys.series.len()),
            Some(total),
        ),
        writer: csv::WriterBuilder::new()
            .flexible(true)
            .from_writer(output::open(&options.file)?),
        samples: 0,
    };
    export.write(&ByteRecord::from(HEADING.to_vec()))?;
    let mut written = 0;
    for key in &keys.series {
        match export.series(key) {
            Ok(()) => written += 1,
            Err(Stop::SeriesGone) => {
                let line = format!("{}: deleted during the export", shown(key));
                export.progress.say(&line);
            }
            Err(Stop::Error(error)) => return Err(error),
        }
    }
    export.writer.flush().doing(export.doing())?;
    export.progress.finish();
    eprintln!("{written} series, {} samples exported", export.samples);
    Ok(Outcome::Complete)
}

struct Export<'a> {
    options: &'a CsvExport,
    source: Link,
    rate: Rate,
    progress: Progress,
    writer: csv::Writer<Box<dyn Write>>,
    samples: u64,
}

impl Export<'_> {
    fn series(&mut self, key: &[u8]) -> std::result::Result<(), Stop> {
        let info = Info::ask(&mut self.source, key)?.ok_or(Stop::SeriesGone)?;
        let described = Described {
            shape: info.shape,
            rules: info.rules,
            expires_ms: expiry(&mut self.source, key)?,
        };
        self.write(&described.record(key))?;
        // Up to the last sample at the start: a fast writer would never let it end.
        let end = self.options.end.min(info.last_timestamp);
        let mut cursor = Cursor::new(key, self.options.start, end);
        let mut record = ByteRecord::new();
        while let Some(sample) = cursor.peek(&mut self.source)? {
            let fetched = cursor.take_fetched();
            if fetched > 0 {
                self.rate.take(fetched);
                self.progress.add(fetched);
            }
            cursor.pass();
            Line::sample(key, &sample, &mut record);
            self.write(&record)?;
            self.samples += 1;
        }
        Ok(())
    }

    fn write(&mut self, record: &ByteRecord) -> Result<()> {
        let written = self.writer.write_byte_record(record);
        written.doing(self.doing())
    }

    fn doing(&self) -> String {
        format!("write {}", self.options.file.display())
    }
}
