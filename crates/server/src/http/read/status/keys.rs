//! `GET /api/v1/status/keys`: the keys that begin with `prefix` or match the glob `pattern`, a
//! page at a time.
//!
//! As SCAN, in no order, but only keys that the user may read; a series that exists from the first
//! page to the last is listed. A page ends after a number of keys found or looked at.
//!
//! Tested by `tests/http/status.rs`.

use crate::base::glob::Glob;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::read::asked::Asked;
use crate::http::read::envelope::respond_in_thread;
use crate::http::read::parameters::Parameters;
use crate::labelled::text;
use crate::observe::Endpoint;
use crate::observe::reads::add;
use axum::extract::{Request, State};
use axum::response::Response;
use serde_json::{Value, json};

/// Keys of a page, unless `limit` says otherwise, and at most.
const KEYS: usize = 100;
const KEYS_MAX: usize = 10_000;
/// Keys looked at for a page.
const LOOKED_MAX: usize = 1 << 20;
/// Keys looked at between two looks at the bytes.
const STEP: usize = 64;
/// Bytes of keys at which a page ends.
const BYTES_MAX: usize = 1 << 20;
/// Memory of a key for each of its bytes: as a text, and twice in the answer.
const COPIES: usize = 3;

pub(crate) async fn keys(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::Keys, request, |asked, parameters| {
        parameters.only(&["prefix", "pattern", "limit", "cursor"])?;
        let limit = parameters.limit_within(KEYS, KEYS_MAX)?;
        page(asked, &wanted(parameters)?, parameters.cursor()?, limit)
    })
    .await
}

/// What a key must be like, as it is shown.
enum Wanted {
    Prefix(String),
    Pattern(Box<Glob>),
}

fn wanted(parameters: &Parameters) -> Result<Wanted, Answer> {
    match (parameters.one("prefix")?, parameters.one("pattern")?) {
        (Some(_), Some(_)) => Err(Answer::bad("prefix and pattern exclude each other")),
        (prefix, None) => Ok(Wanted::Prefix(prefix.unwrap_or_default().to_owned())),
        (None, Some(pattern)) => {
            let glob = Glob::new(pattern.as_bytes());
            let glob = glob.map_err(|error| Answer::parameter("pattern", error))?;
            Ok(Wanted::Pattern(Box::new(glob)))
        }
    }
}

impl Wanted {
    fn matches(&self, shown: &str) -> bool {
        match self {
            Self::Prefix(prefix) => shown.starts_with(prefix),
            Self::Pattern(glob) => glob.matches(shown.as_bytes()),
        }
    }
}

fn page(asked: &Asked, wanted: &Wanted, mut cursor: u64, limit: usize) -> Result<Value, Answer> {
    let (mut keys, mut bytes, mut looked_at) = (Vec::new(), 0, 0);
    loop {
        let (step, before) = (STEP.min(limit - keys.len()), bytes);
        let scanned = asked.shared().db.scan(cursor, step, &mut |key| {
            let shown = text(key);
            if wanted.matches(&shown) && asked.may_read(key) {
                bytes += shown.len();
                keys.push(Value::from(shown.into_owned()));
            }
        });
        cursor = scanned.map_err(|error| Answer::engine(&error))?;
        asked.hold_bytes((bytes - before) * COPIES)?;
        asked.check_wanted()?;
        looked_at += step;
        if cursor == 0 || keys.len() >= limit || looked_at >= LOOKED_MAX || bytes >= BYTES_MAX {
            break;
        }
    }
    add(&asked.counters().items, keys.len());
    let cursor = (cursor != 0).then(|| cursor.to_string());
    Ok(json!({"keys": keys, "cursor": cursor}))
}
