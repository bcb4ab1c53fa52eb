//! `GET /federate`: the newest sample of every series that matches, in the text format of
//! Prometheus, for another Prometheus to scrape.
//!
//! As there: samples within the lookback, none of a series that is stale, all metrics untyped, and
//! an empty label `instance` where a series has none, so that a scrape with `honor_labels` adds
//! none. A series whose labels have no metric cannot be named by that format and is passed over.
//!
//! Tested by `tests/http/federate.rs`.

use super::asked::{Asked, Unreadable, raw};
use super::envelope::answered;
use super::parameters::Span;
use super::stream::{self, PIECE_BYTES, PIECE_TIME, Pieces};
use super::walk::{Job, Next, Walk};
use crate::base::clock::now_ms;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::observe::Endpoint;
use crate::observe::reads::add;
use axum::extract::{Request, State};
use axum::response::Response;
use latewood_promql::labels::Labels;
use latewood_promql::number::push_plain;
use latewood_promql::source::is_stale;
use std::sync::Arc;
use std::time::Instant;

/// Rows of a series that are read at a time.
const PART_ROWS: usize = 4096;
/// The type of the text.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) async fn federate(State(context): State<Context>, request: Request) -> Response {
    let result = answer(&context, request).await;
    answered(&context, Endpoint::Federate, result)
}

async fn answer(context: &Context, request: Request) -> Result<Response, Answer> {
    let (asked, parameters) = Asked::with_parameters(context, Endpoint::Federate, request).await?;
    let to_ms = now_ms();
    let lookback_ms = asked.shared().settings.promql.lookback_ms;
    let from_ms = to_ms.saturating_sub_unsigned(lookback_ms.saturating_sub(1));
    let span = Span { from_ms, to_ms };
    let work = move || {
        let selectors = parameters.selectors_needed()?;
        let mut named = asked.find(&selectors, Some(span), Unreadable::Refuse)?;
        named.retain(|one| !one.labels.metric().is_empty());
        // A metric stands in one piece, whatever sorts before `__name__`.
        named.sort_by(|one, other| one.labels.metric().cmp(other.labels.metric()));
        let jobs = named.into_iter().map(|named| Job {
            named,
            number: 0,
            query: raw(span),
        });
        let walk = Walk::new(jobs.collect(), PART_ROWS);
        let newest = Newest {
            walk,
            metric: String::new(),
            last: None,
        };
        Ok((asked, newest))
    };
    let (asked, newest) = context.block_in(&context.work.readers, work).await??;
    stream::respond(asked, TEXT, newest, ()).await
}

/// Newest samples under way.
struct Newest {
    walk: Walk,
    /// The last one whose type was told.
    metric: String,
    /// The newest row yet of a series that has more parts.
    last: Option<(i64, f64)>,
}

impl Pieces for Newest {
    fn more(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        let started = Instant::now();
        while out.len() < PIECE_BYTES && started.elapsed() < PIECE_TIME {
            let part = match self.walk.next(asked)? {
                Next::Part(part) => part,
                Next::Nothing => continue,
                Next::End => return Ok(false),
            };
            let newest = part.timestamps.last().zip(part.values.last());
            self.last = newest.map(|(at, value)| (*at, *value)).or(self.last);
            if !part.is_last {
                continue;
            }
            if let Some((at, value)) = self.last.take()
                && !is_stale(value)
            {
                if self.metric != part.labels.metric() {
                    part.labels.metric().clone_into(&mut self.metric);
                    put_type(&self.metric, out);
                }
                put_sample(part.labels, (at, value), out);
                add(&asked.counters().items, 1);
                add(&asked.counters().samples, 1);
            }
        }
        Ok(true)
    }
}

/// Whether a name needs no quotes.
fn is_plain(name: &str, more: char) -> bool {
    let may_begin = |letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == more;
    name.starts_with(may_begin)
        && name
            .chars()
            .all(|one| may_begin(one) || one.is_ascii_digit())
}

fn put_type(metric: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"# TYPE ");
    put_name(metric, ':', out);
    out.extend_from_slice(b" untyped\n");
}

/// Appends `up{job="a",instance=""} 1 1700000000000`.
fn put_sample(labels: &Labels, (at, value): (i64, f64), out: &mut Vec<u8>) {
    let metric = labels.metric();
    let is_quoted = !is_plain(metric, ':');
    if is_quoted {
        out.push(b'{');
    }
    put_name(metric, ':', out);
    out.push(if is_quoted { b',' } else { b'{' });
    let all = labels.iter().filter(|(name, _)| *name != "__name__");
    for (name, text) in all {
        put_name(name, '_', out);
        out.push(b'=');
        put_quoted(text, out);
        out.push(b',');
    }
    if labels.get("instance").is_empty() {
        out.extend_from_slice(b"instance=\"\"");
    } else {
        out.pop();
    }
    out.extend_from_slice(b"} ");
    push_plain(out, value);
    out.push(b' ');
    out.extend_from_slice(itoa::Buffer::new().format(at).as_bytes());
    out.push(b'\n');
}

fn put_name(name: &str, more: char, out: &mut Vec<u8>) {
    if is_plain(name, more) {
        out.extend_from_slice(name.as_bytes());
    } else {
        put_quoted(name, out);
    }
}

fn put_quoted(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            byte => out.push(byte),
        }
    }
    out.push(b'"');
}
