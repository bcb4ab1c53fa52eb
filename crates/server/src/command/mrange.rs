//! `TS.MRANGE from to RANGE-OPTS [WITHLABELS | SELECTED_LABELS name...]
//! [EXCLUDEEMPTY] FILTER expr... [GROUPBY label REDUCE reducer]` and
//! `TS.MREVRANGE`, the same newest first.
//!
//! Reply: an array of `[key, labels, rows]` by key, in RESP3 a map from key to
//! `[labels, {aggregators: [...]}, rows]`. What is sent in parts is one moment
//! of each series: all are looked at before the first is sent, and as much as
//! may wait is written then, while what was read is still near. Grouped
//! replies are made in [`groups`].

mod groups;
mod parse;

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::label_options::Shown;
use super::reply_limit::ReplyLimit;
use super::rows::{self, Shape};
use super::spec::Spec;
use super::{mget, work};
use crate::client::{Part, Stream};
use latewood_engine::{RangeQuery, SeriesRef, SeriesView, is_cancelled};
use latewood_wire::resp::{Protocol, Reply};
use parse::Request;
use std::iter::Peekable;
use std::sync::atomic::{AtomicUsize, Ordering};

const SYNTAX: &str = "from to [LATEST] [FILTER_BY_TS ts ...] [FILTER_BY_VALUE min max] \
                      [WITHLABELS | SELECTED_LABELS name ...] [COUNT n] \
                      [[ALIGN start|end|ms] AGGREGATION agg[,agg...] bucket-ms \
                      [BUCKETTIMESTAMP start|mid|end] [EMPTY]] [EXCLUDEEMPTY] \
                      FILTER expression ... [GROUPBY label REDUCE reducer]";

pub(crate) const MRANGE: Spec = Spec::of_group("timeseries", &["readonly", "module"])
    .named("ts.mrange", |call| apply(call, false))
    .words(-4, SYNTAX)
    .about("Query a range across multiple time series by filters in forward direction");

pub(crate) const MREVRANGE: Spec = MRANGE
    .named("ts.mrevrange", |call| apply(call, true))
    .about("Query a range across multiple time series by filters in reverse direction");

/// Samples that are read for one part of a reply, unless one series has more.
const PART_SAMPLES: u64 = 256 * 1024;
/// Series of one part of a reply.
const PART_SERIES: usize = 512;
/// Bytes of a part that is written already.
const PART_BYTES: usize = 256 * 1024;
/// Series that a thread takes at a time.
const PIECE_SERIES: usize = 16;
/// Pieces that a part is cut into at least, if it has as many series.
const PART_PIECES: usize = 32;
/// Bytes there is room for in the reply about them from the start.
const PIECE_BYTES: usize = 16 * 1024;
/// Bytes of a reply that are written before the first is sent.
const WRITTEN_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Series that rest that are looked at together.
const TOGETHER: usize = 1024;
/// Samples of a series that is written before the first byte is sent.
const WRITTEN_SAMPLES_MAX: u64 = 64 * 1024;

fn apply(call: &mut Call<'_>, reverse: bool) -> Outcome {
    let request = parse::request(call, reverse)?;
    let about = call.work_of_finding(&request.matchers);
    // How much is to be read of what is found is not known yet.
    let about = if call.leaves(about) {
        work::UNKNOWN
    } else {
        about
    };
    call.finish(about, move |call| find(call, request))
}

fn find(call: &mut Call<'_>, request: Request) -> Outcome {
    let series = call.select(&request.matchers)?;
    let samples = call.shared.db.samples_about(&series, &request.query);
    let about = work::of_series(&request.query, series.len(), samples);
    let about = call.work_in(work::span_of(&request.query), about);
    call.finish(about, move |call| read(call, request, series, samples))
}

fn read(call: &mut Call<'_>, request: Request, series: Vec<SeriesRef>, samples: u64) -> Outcome {
    if let Some(group_by) = request.group_by {
        let question = groups::Question::new(request.query, request.shown, group_by);
        return groups::apply(call, series, samples, question);
    }
    let question = Question {
        query: request.query,
        shown: request.shown,
        exclude_empty: request.exclude_empty,
    };
    let (count, answers) = question.look(call, &series, samples)?;
    mget::begin(&mut call.reply(), count);
    let answers = answers.into_iter().peekable();
    call.begin_stream(Ranges {
        answers,
        question,
        is_long: false,
    });
    Ok(())
}

/// What is asked of every series.
struct Question {
    query: RangeQuery,
    shown: Shown,
    exclude_empty: bool,
}

/// What became of some series when they were looked at.
enum Answer {
    /// Replies about any number of them. Most often that is less to keep than
    /// what they are made of.
    Written(Vec<u8>),
    /// One that is written when it is sent: a long one, or one of very many.
    Later(Box<SeriesView>),
}

impl Question {
    /// Looks at all series: how many are in the reply, and what of it.
    fn look(
        &self,
        call: &Call<'_>,
        series: &[SeriesRef],
        samples: u64,
    ) -> Result<(usize, Vec<Answer>), Fault> {
        let (written, held) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let (part, db) = (call.part(), &call.shared.db);
        let limit = ReplyLimit::of(call.shared);
        let hold = |bytes| match held.fetch_add(bytes, Ordering::Relaxed) + bytes {
            held if held > limit.bytes => Err(limit.fault_of_labels()),
            _ => Ok(()),
        };
        let pieces = if db.parked_len() > 0 {
            let views = self.views_by_id(part, series, samples, hold)?;
            db.spread(samples, |spread| {
                spread.map(in_pieces(views, PIECE_SERIES), |views| {
                    self.look_at(part, views, &written, |_| Ok(()))
                })
            })
        } else {
            db.spread(samples, |spread| {
                spread.map(series.chunks(PIECE_SERIES).collect(), |some| {
                    // Others may hold too much already.
                    hold(0)?;
                    if is_cancelled(part.cancelled) {
                        return Ok((0, Vec::new()));
                    }
                    let views = db.views(some, &self.query, self.shown.any()).into_iter();
                    let views = views.filter_map(|view| self.wanted(part, view).transpose());
                    self.look_at(part, views.collect::<Result<_, _>>()?, &written, hold)
                })
            })
        };
        let (mut count, mut answers) = (0, Vec::new());
        for piece in pieces {
            let (here, some) = piece?;
            count += here;
            answers.extend(some);
        }
        Ok((count, answers))
    }

    /// Views of series of which some rest, in their order; those that went or are not wanted are left
    /// out.
    fn views_by_id(
        &self,
        part: Part<'_>,
        series: &[SeriesRef],
        samples: u64,
        hold: impl Fn(usize) -> Result<(), Fault> + Sync,
    ) -> Result<Vec<SeriesView>, Fault> {
        let db = &part.shared.db;
        let order = db.order_of_reads(series.iter().map(|one| one.id));
        let pieces = db.spread(samples, |spread| {
            spread.map(order.chunks(TOGETHER).collect(), |some| {
                let mut found = Vec::new();
                hold(0)?;
                if is_cancelled(part.cancelled) {
                    return Ok(found);
                }
                let refs: Vec<SeriesRef> = some.iter().map(|&at| series[at].clone()).collect();
                let mut places = some.iter();
                for view in db.views(&refs, &self.query, self.shown.any()) {
                    let place = places.find(|&&at| series[at].key == view.key);
                    if let (Some(&at), Some(view)) = (place, self.wanted(part, view)?) {
                        hold(view.labels.as_bytes().len())?;
                        found.push((at, view));
                    }
                }
                Ok(found)
            })
        });
        let pieces = pieces.into_iter().collect::<Result<Vec<_>, Fault>>()?;
        let mut found: Vec<_> = pieces.into_iter().flatten().collect();
        found.sort_unstable_by_key(|(at, _)| *at);
        Ok(found.into_iter().map(|(_, view)| view).collect())
    }

    /// The view, unless it is left out because it is empty.
    fn wanted(&self, part: Part<'_>, view: SeriesView) -> Result<Option<SeriesView>, Fault> {
        if self.exclude_empty && view.view.is_empty(&self.query, part.cancelled)? {
            return Ok(None);
        }
        Ok(Some(view))
    }

    /// What of some series is in the reply; `written` counts bytes of all, `hold` those of labels that are
    /// written later.
    fn look_at(
        &self,
        part: Part<'_>,
        found: Vec<SeriesView>,
        written: &AtomicUsize,
        hold: impl Fn(usize) -> Result<(), Fault>,
    ) -> Result<(usize, Vec<Answer>), Fault> {
        let shared = part.shared;
        let count = found.len();
        let mut found = found.into_iter().peekable();
        let written_max = WRITTEN_BYTES_MAX.min(ReplyLimit::of(shared).bytes);
        let fits = |series: &SeriesView| {
            series.view.samples() <= WRITTEN_SAMPLES_MAX
                && series.view.filled_rows_max(&self.query) <= WRITTEN_SAMPLES_MAX
                && written.load(Ordering::Relaxed) < written_max
        };
        let mut reply = Vec::new();
        while let Some(series) = found.next_if(fits) {
            reply.reserve(PIECE_BYTES.saturating_sub(reply.len()));
            let start = reply.len();
            self.append(&mut reply, part, series);
            written.fetch_add(reply.len() - start, Ordering::Relaxed);
        }
        reply.shrink_to_fit();
        let mut answers = Vec::new();
        if !reply.is_empty() {
            answers.push(Answer::Written(reply));
        }
        for series in found {
            hold(series.labels.as_bytes().len())?;
            answers.push(Answer::Later(Box::new(series)));
        }
        Ok((count, answers))
    }
}

/// What is not sent yet.
struct Ranges {
    answers: Peekable<std::vec::IntoIter<Answer>>,
    question: Question,
    /// The next one is not written.
    is_long: bool,
}

impl Stream for Ranges {
    fn more(&mut self, part: Part<'_>, out: &mut Vec<u8>) -> bool {
        let (start, end) = (out.len(), out.len() + PART_BYTES);
        while out.len() < end {
            let written = |answer: &Answer| matches!(answer, Answer::Written(_));
            let Some(Answer::Written(reply)) = self.answers.next_if(written) else {
                break;
            };
            out.extend_from_slice(&reply);
        }
        // What is written already does not wait for the rest, nor for a thread.
        if out.len() == start {
            let (series, samples) = self.part();
            self.question.write(part, out, series, samples);
        }
        let next = self.answers.peek();
        self.is_long = matches!(next, Some(Answer::Later(_)));
        next.is_some()
    }

    fn is_long(&self) -> bool {
        self.is_long
    }
}

impl Ranges {
    /// The series that are written together next, and about how many samples
    /// they have.
    fn part(&mut self) -> (Vec<SeriesView>, u64) {
        let (mut part, mut samples, mut work) = (Vec::new(), 0, 0u64);
        while part.len() < PART_SERIES && work < PART_SAMPLES {
            let later = |answer: &Answer| matches!(answer, Answer::Later(_));
            let Some(Answer::Later(series)) = self.answers.next_if(later) else {
                break;
            };
            let (query, view) = (&self.question.query, &series.view);
            samples += view.samples();
            let rows = view.filled_rows_max(query);
            let about = work::of_rows(query, view.samples(), rows);
            work = about.saturating_add(work);
            part.push(*series);
        }
        (part, samples)
    }
}

impl Question {
    /// Appends a part, made by several threads where it is worth it.
    fn write(&self, part: Part<'_>, out: &mut Vec<u8>, series: Vec<SeriesView>, samples: u64) {
        part.shared.db.spread(samples, |spread| {
            if !spread.is_parallel() {
                for one in series {
                    self.append(out, part, one);
                }
                return;
            }
            // Few series are long ones: no thread should wait for another.
            let each = (series.len() / PART_PIECES).clamp(1, PIECE_SERIES);
            let replies = spread.map(in_pieces(series, each), |piece| {
                let mut reply = Vec::new();
                for series in piece {
                    self.append(&mut reply, part, series);
                }
                reply
            });
            for reply in replies {
                out.extend_from_slice(&reply);
            }
        });
    }

    /// Appends one series. The reply's header is written: an error stands where
    /// the rows would.
    fn append(&self, out: &mut Vec<u8>, part: Part<'_>, series: SeriesView) {
        let mut reply = Reply::new(out, part.protocol);
        let resp3 = part.protocol == Protocol::Resp3;
        mget::entry(&mut reply, &series.key, if resp3 { 3 } else { 2 });
        self.shown.write(&mut reply, &series.labels);
        if resp3 {
            let aggregation = self.query.aggregation.as_ref();
            let aggregators = aggregation.map_or(&[][..], |aggregation| &aggregation.aggregators);
            reply.map(1);
            reply.key("aggregators").array(aggregators.len());
            for aggregator in aggregators {
                reply.bulk(aggregator.name());
            }
        }
        let start = out.len();
        let rows = rows::of_view(out, part, Shape::Flat, &self.query, series.view);
        let rows = rows.map_err(|fault| rows::name_key(fault, &series.key));
        or_error(out, part, start, rows);
    }
}

/// The views in their order, `each` at a time.
fn in_pieces(views: Vec<SeriesView>, each: usize) -> Vec<Vec<SeriesView>> {
    let mut views = views.into_iter();
    let pieces = std::iter::from_fn(|| {
        let piece: Vec<SeriesView> = views.by_ref().take(each).collect();
        (!piece.is_empty()).then_some(piece)
    });
    pieces.collect()
}

/// Puts the error of a part of a reply in the place of what it wrote.
fn or_error(out: &mut Vec<u8>, part: Part<'_>, start: usize, written: Result<(), Fault>) {
    if let Err(fault) = written {
        let refused = &part.shared.observe.refused;
        fault.limit().inspect(|&limit| refused.note(limit));
        out.truncate(start);
        Reply::new(out, part.protocol).error(fault.text("ts.mrange").as_bytes());
    }
}
