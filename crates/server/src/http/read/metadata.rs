//! `GET /api/v1/metadata`: type, help and unit of metrics, by their names.
//!
//! A user who may not read every series sees only those of metrics whose name its rules let it
//! read. The answer is made as it is taken, some metrics at a time.
//!
//! Tested by `tests/http/metadata.rs`.

use super::asked::Asked;
use super::envelope::answered;
use super::list::put_text;
use super::parameters::Parameters;
use super::stream::{self, PIECE_BYTES, PIECE_TIME, Pieces};
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::observe::Endpoint;
use crate::observe::reads::add;
use axum::extract::{Request, State};
use axum::response::Response;
use latewood_engine::Metadata;
use std::sync::Arc;
use std::time::Instant;

/// Metrics that are fetched at a time.
const FETCHED_MAX: usize = 64;

pub(crate) async fn metadata(State(context): State<Context>, request: Request) -> Response {
    let result = answer(&context, request).await;
    answered(&context, Endpoint::Metadata, result)
}

async fn answer(context: &Context, request: Request) -> Result<Response, Answer> {
    let (asked, parameters) = Asked::with_parameters(context, Endpoint::Metadata, request).await?;
    let left = number(&parameters, "limit")?.unwrap_or(usize::MAX);
    // A metric has one here.
    number(&parameters, "limit_per_metric")?;
    let metric = parameters.first("metric");
    let listing = Listing {
        metric: (!metric.is_empty()).then(|| metric.to_owned()),
        after: "".into(),
        left,
        is_begun: false,
        is_first: true,
    };
    stream::respond(asked, "application/json", listing, ()).await
}

/// A limit; a negative one is none.
fn number(parameters: &Parameters, name: &'static str) -> Result<Option<usize>, Answer> {
    match parameters.first(name) {
        "" => Ok(None),
        text => match text.parse::<i64>() {
            Ok(number) => Ok(usize::try_from(number).ok()),
            Err(_) => Err(Answer::bad(format!("{name} must be a number"))),
        },
    }
}

/// Metrics under way.
struct Listing {
    /// The only one that is asked for.
    metric: Option<String>,
    /// The last one that was looked at.
    after: Arc<str>,
    /// Metrics that may still be shown.
    left: usize,
    is_begun: bool,
    /// None was shown yet.
    is_first: bool,
}

impl Listing {
    fn fetch(&self, asked: &Asked) -> Vec<(Arc<str>, Arc<Metadata>)> {
        let db = &asked.shared().db;
        match &self.metric {
            Some(metric) => {
                let found = db.metadata(metric).into_iter();
                found.map(|one| (metric.as_str().into(), one)).collect()
            }
            None => db.metadata_after(&self.after, FETCHED_MAX.min(self.left)),
        }
    }

    fn put(&mut self, name: &str, one: &Metadata, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.is_first) {
            out.push(b',');
        }
        put_text(name, out);
        let parts = [
            (&b":[{\"type\":"[..], &one.kind),
            (b",\"unit\":", &one.unit),
            (b",\"help\":", &one.help),
        ];
        for (key, text) in parts {
            out.extend_from_slice(key);
            put_text(text, out);
        }
        out.extend_from_slice(b"}]");
    }

    /// Appends some more; false where there is no more.
    fn put_some(&mut self, asked: &Asked, out: &mut Vec<u8>) -> bool {
        let found = match self.left {
            0 => Vec::new(),
            _ => self.fetch(asked),
        };
        let is_last = found.is_empty() || self.metric.is_some();
        for (name, one) in found {
            if out.len() >= PIECE_BYTES {
                return true;
            }
            if asked.may_read(name.as_bytes()) {
                self.put(&name, &one, out);
                self.left -= 1;
                add(&asked.counters().items, 1);
            }
            self.after = name;
        }
        !is_last
    }
}

impl Pieces for Listing {
    fn more(&mut self, asked: &Arc<Asked>, out: &mut Vec<u8>) -> Result<bool, Answer> {
        if !std::mem::replace(&mut self.is_begun, true) {
            out.extend_from_slice(b"{\"status\":\"success\",\"data\":{");
        }
        let began = Instant::now();
        while self.put_some(asked, out) {
            if out.len() >= PIECE_BYTES || began.elapsed() >= PIECE_TIME {
                return Ok(true);
            }
        }
        out.extend_from_slice(b"}}\n");
        Ok(false)
    }
}
