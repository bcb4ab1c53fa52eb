//! `GET|POST /api/v1/export`: samples, or buckets of them, as JSON lines, CSV,
//! an Arrow stream or a Parquet file.
//!
//! JSON lines have the shape of VictoriaMetrics' export; the others are the
//! same table: a column for each label, the time, the value.

mod arrow;
mod csv;
mod json;
mod parquet;
mod rows;
mod table;

use self::rows::Rows;
use super::asked::{Asked, Unreadable, raw};
use super::envelope::answered;
use super::parameters::{Parameters, Span};
use super::stream::{self, PIECE_BYTES, PIECE_TIME, Pieces};
use super::walk::{Job, Next, Part, Walk};
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::labelled::Named;
use crate::observe::Endpoint;
use crate::observe::reads::add;
use axum::extract::{Request, State};
use axum::response::Response;
use latewood_engine::query::{Aggregation, BucketStamp};
use latewood_model::Aggregator;
use latewood_wire::prometheus::time::parse_duration;
use std::sync::Arc;
use std::time::Instant;

/// Parameters there are.
const KNOWN: [&str; 7] = [
    "match[]",
    "start",
    "end",
    "format",
    "aggregation",
    "step",
    "max_rows_per_line",
];
/// Rows of a series that are read at a time, and those of a line of JSON, at most.
const PART_ROWS: usize = 10_000;
/// Rows of one piece at most.
const PIECE_ROWS: usize = 64 << 10;
/// Bytes of labels in what is read at a time, and those of a batch of columns.
const PART_BYTES: usize = 1 << 20;
const BATCH_BYTES: usize = 4 << 20;
/// A row without its labels.
const ROW_BYTES: usize = 32;

pub(crate) async fn export(State(context): State<Context>, request: Request) -> Response {
    let result = answer(&context, request).await;
    answered(&context, Endpoint::Export, result)
}

async fn answer(context: &Context, request: Request) -> Result<Response, Answer> {
    let (asked, parameters) = Asked::with_parameters(context, Endpoint::Export, request).await?;
    parameters.only(&KNOWN)?;
    let kind = Kind::of(&parameters)?;
    let aggregation = aggregation(&parameters)?;
    let line_rows = parameters.number("max_rows_per_line")?;
    let line_rows = line_rows.unwrap_or(PART_ROWS).min(PART_ROWS);
    let span = parameters.span()?.unwrap_or(Span {
        from_ms: 0,
        to_ms: i64::MAX,
    });
    if span.to_ms < span.from_ms {
        return Err(Answer::bad("end is before start"));
    }
    let work = move || {
        let selectors = parameters.selectors_needed()?;
        // Columns are the labels of all series, whether they have samples or not.
        let among = matches!(kind, Kind::Json).then_some(span);
        let named = asked.find(&selectors, among, Unreadable::Refuse)?;
        let format = kind.format(&named, line_rows)?;
        let rows_max = format.part_rows(&named);
        let piece_rows = format.piece_rows();
        let jobs = named.into_iter().map(|named| {
            let mut query = raw(span);
            query.aggregation.clone_from(&aggregation);
            Job {
                named,
                number: 0,
                query,
            }
        });
        let walk = Walk::new(jobs.collect(), rows_max);
        let export = Export {
            walk,
            format,
            piece_rows,
            held_bytes: 0,
        };
        Ok((asked, export))
    };
    let (asked, export) = context.block_in(&context.work.readers, work).await??;
    stream::respond(asked, kind.content_type(), export, ()).await
}

/// What `aggregation` and `step` say.
fn aggregation(parameters: &Parameters) -> Result<Option<Aggregation>, Answer> {
    let (name, step) = match (parameters.one("aggregation")?, parameters.one("step")?) {
        (None, None) => return Ok(None),
        (Some(name), Some(step)) => (name, step),
        _ => return Err(Answer::bad("aggregation and step must be given together")),
    };
    let names = Aggregator::ALL.map(Aggregator::name).join(", ");
    let aggregator = Aggregator::of_name(name.as_bytes());
    let aggregator = aggregator.ok_or_else(|| {
        Answer::bad(format!(
            "unknown aggregation {name:?}; expected one of {names}"
        ))
    })?;
    let bucket_ms = parse_duration(step).map_err(|error| Answer::parameter("step", error))?;
    if bucket_ms <= 0 {
        return Err(Answer::parameter("step", "step must be positive"));
    }
    Ok(Some(Aggregation {
        aggregators: vec![aggregator],
        bucket_ms,
        align: 0,
        stamp: BucketStamp::Start,
        empty: false,
    }))
}

/// The formats there are.
#[derive(Clone, Copy)]
enum Kind {
    Json,
    Csv,
    Arrow,
    Parquet,
}

impl Kind {
    fn of(parameters: &Parameters) -> Result<Self, Answer> {
        match parameters.one("format")? {
            None | Some("json") => Ok(Self::Json),
            Some("csv") => Ok(Self::Csv),
            Some("arrow") => Ok(Self::Arrow),
            Some("parquet") => Ok(Self::Parquet),
            Some(other) => Err(Answer::bad(format!(
                "unknown format {other:?}; expected json, csv, arrow or parquet"
            ))),
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/stream+json; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Arrow => "application/vnd.apache.arrow.stream",
            Self::Parquet => "application/vnd.apache.parquet",
        }
    }

    fn format(self, named: &[Named], line_rows: usize) -> Result<Format, Answer> {
        let names = |max| table::label_names(named, max);
        let rows = |max| names(max).map(Rows::new);
        Ok(match self {
            Self::Json => Format::Json { line_rows },
            Self::Csv => Format::Csv(csv::Writer::new(names(table::LABELS_MAX)?)),
            Self::Arrow => Format::Arrow(Box::new(arrow::Writer::new(rows(table::LABELS_MAX)?)?)),
            Self::Parquet => {
                Format::Parquet(Box::new(parquet::Writer::new(rows(parquet::LABELS_MAX)?)?))
            }
        })
    }
}

/// A format under way.
enum Format {
    Json { line_rows: usize },
    Csv(csv::Writer),
    Arrow(Box<arrow::Writer>),
    Parquet(Box<parquet::Writer>),
}

impl Format {
    /// Rows that may be read at a time: in CSV each repeats its labels, in JSON
    /// each line does, and lines are whole.
    fn part_rows(&self, named: &[Named]) -> usize {
        let widest = || named.iter().map(|one| one.labels.len_bytes()).max();
        let repeats = || (PART_BYTES / (widest().unwrap_or(0) + ROW_BYTES)).max(1);
        match self {
            Self::Csv(_) => repeats().min(PART_ROWS),
            Self::Json { line_rows } => repeats().min(PART_ROWS / line_rows) * line_rows,
            Self::Arrow(_) | Self::Parquet(_) => self.piece_rows().min(PART_ROWS),
        }
    }

    /// Rows of one piece. A batch of columns is kept until it ends: a key for each label of a row.
    fn piece_rows(&self) -> usize {
        let rows = match self {
            Self::Json { .. } | Self::Csv(_) => return PIECE_ROWS,
            Self::Arrow(writer) => &writer.rows,
            Self::Parquet(writer) => &writer.rows,
        };
        (BATCH_BYTES / (4 * rows.columns() + ROW_BYTES)).clamp(1, PIECE_ROWS)
    }

    /// Bytes of memory that it holds beside a piece.
    fn held_bytes(&self) -> usize {
        match self {
            Self::Parquet(writer) => writer.held_bytes(),
            Self::Json { .. } | Self::Csv(_) | Self::Arrow(_) => 0,
        }
    }

    fn put(&mut self, part: &Part<'_>, out: &mut Vec<u8>) -> Result<(), Answer> {
        match self {
            Self::Json { line_rows } => json::put(part, *line_rows, out),
            Self::Csv(writer) => writer.put(part, out),
            Self::Arrow(writer) => writer.rows.put(part)?,
            Self::Parquet(writer) => writer.put(part)?,
        }
        Ok(())
    }

    /// Brings the rows of a piece to `out`.
    fn end_piece(&mut self, is_last: bool, out: &mut Vec<u8>) -> Result<(), Answer> {
        match self {
            Self::Json { .. } => Ok(()),
            Self::Csv(writer) => {
                writer.begin(out);
                Ok(())
            }
            Self::Arrow(writer) => writer.end_piece(is_last, out),
            Self::Parquet(writer) => writer.end_piece(is_last, out),
        }
    }
}

/// An export under way.
struct Export {
    walk: Walk,
    format: Format,
    piece_rows: usize,
    /// What counts so far of [`Format::held_bytes`].
    held_bytes: usize,
}

impl Pieces for Export {
    fn more(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        let counters = asked.counters();
        let held_bytes = self.format.held_bytes();
        asked.hold_bytes(held_bytes - self.held_bytes)?;
        self.held_bytes = held_bytes;
        let (started, mut rows, mut label_bytes) = (Instant::now(), 0, 0);
        let follows = loop {
            let is_full = out.len() >= PIECE_BYTES || rows >= self.piece_rows;
            // What is kept until the piece ends has the labels of each series once.
            let is_full = is_full || label_bytes >= BATCH_BYTES;
            if is_full || started.elapsed() >= PIECE_TIME {
                break true;
            }
            let part = match self.walk.next(asked)? {
                Next::Part(part) => part,
                Next::Nothing => continue,
                Next::End => break false,
            };
            if !part.timestamps.is_empty() {
                self.format.put(&part, out)?;
            }
            rows += part.timestamps.len();
            label_bytes += part.labels.len_bytes();
            add(&counters.items, usize::from(part.is_first));
            add(&counters.samples, part.timestamps.len());
        };
        self.format.end_piece(!follows, out)?;
        Ok(follows)
    }
}
