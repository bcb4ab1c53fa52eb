//! Walking over the keys: `KEYS pattern` and
//! `SCAN cursor [MATCH pattern] [COUNT n] [TYPE type]`.
//!
//! SCAN gives every series that is there from the first call to the last, in
//! steps of about COUNT; its cursor is 0 at the beginning and at the end. It
//! walks the places of series: a key under which RENAME, COPY or RESTORE puts
//! another series meanwhile may stand behind the cursor then, and is left out.

use super::args::Args;
use super::call::{Call, Outcome};
use super::fault::{Fault, NOT_AN_INTEGER, SYNTAX};
use super::keyspace::TYPE_NAME;
use super::reply_limit::ReplyLimit;
use super::spec::Spec;
use super::work;
use crate::base::glob::Glob;
use crate::observe::Limit;
use latewood_engine::{Listed, is_cancelled};
use latewood_wire::resp::number::parse_i64;

pub(crate) const SPECS: &[Spec] = &[
    Spec::of_group("keyspace", &["readonly"])
        .named("keys", keys)
        .words(2, "pattern")
        .about("Returns the keys that match a glob pattern."),
    Spec::of_group("keyspace", &["readonly"])
        .named("scan", scan)
        .words(-2, "cursor [MATCH pattern] [COUNT n] [TYPE type]")
        .about("Returns some of the keys and a cursor for the next call."),
];

/// Keys looked at in one step of KEYS.
const KEYS_STEP: usize = 4096;
/// Most keys looked at by one SCAN, however large its COUNT.
const SCAN_COUNT_MAX: usize = 1_000_000;

fn keys(call: &mut Call<'_>) -> Outcome {
    let glob = Glob::new(call.args.word(1))?;
    let about = work::of_names(call.shared.db.len());
    call.finish(about, move |call| matching_keys(call, &glob))
}

fn matching_keys(call: &mut Call<'_>, glob: &Glob) -> Outcome {
    let mut found = ScannedKeys::new(call);
    let mut cursor = 0;
    loop {
        cursor = call.shared.db.scan(cursor, KEYS_STEP, &mut |key| {
            if glob.matches(key) {
                found.push(key);
            }
        })?;
        if cursor == 0 || found.is_over || is_cancelled(call.cancelled) {
            break;
        }
    }
    found.write(call)
}

fn scan(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let cursor = std::str::from_utf8(args.word(1))
        .ok()
        .and_then(|text| text.parse::<u64>().ok())
        .ok_or(Fault::line("ERR invalid cursor"))?;
    let options = ScanOptions::parse(args)?;
    let about = work::of_names(options.count.min(call.shared.db.len()));
    call.finish(about, move |call| scan_from(call, cursor, &options))
}

fn scan_from(call: &mut Call<'_>, cursor: u64, options: &ScanOptions) -> Outcome {
    let mut found = ScannedKeys::new(call);
    let next = call.shared.db.scan(cursor, options.count, &mut |key| {
        if options.matches(key) {
            found.push(key);
        }
    })?;
    let mut reply = call.reply();
    reply.array(2);
    reply.bulk(next.to_string());
    found.write(call)
}

/// Keys, counted as names and values of labels are.
struct ScannedKeys {
    keys: Listed,
    bytes_max: usize,
    /// There are more than a reply may have.
    is_over: bool,
}

impl ScannedKeys {
    fn new(call: &Call<'_>) -> Self {
        Self {
            keys: Listed::default(),
            bytes_max: ReplyLimit::of(call.shared).bytes,
            is_over: false,
        }
    }

    fn push(&mut self, key: &[u8]) {
        self.is_over = self.is_over || !self.keys.push(key, self.bytes_max);
    }

    fn write(&self, call: &mut Call<'_>) -> Outcome {
        let bytes_max = self.bytes_max;
        if self.is_over {
            let text = format!(
                "ERR the reply is longer than the {bytes_max} bytes it may have; use SCAN with a \
                 smaller COUNT instead"
            );
            return Err(Fault::Limit(Limit::Reply, text.into()));
        }
        let mut reply = call.reply();
        reply.array(self.keys.len());
        for key in self.keys.iter() {
            reply.bulk(key);
        }
        Ok(())
    }
}

struct ScanOptions {
    glob: Option<Glob>,
    count: usize,
    is_series_wanted: bool,
}

impl ScanOptions {
    fn parse(args: Args<'_>) -> Result<Self, Fault> {
        let mut options = Self {
            glob: None,
            count: 10,
            is_series_wanted: true,
        };
        for at in (2..args.len()).step_by(2) {
            let value = args.get(at + 1).ok_or(SYNTAX)?;
            if args.is(at, "MATCH") {
                options.glob = Some(Glob::new(value)?);
            } else if args.is(at, "COUNT") {
                let count = parse_i64(value).ok_or(NOT_AN_INTEGER)?;
                let count = usize::try_from(count).unwrap_or(0);
                if count == 0 {
                    return Err(SYNTAX);
                }
                options.count = count.min(SCAN_COUNT_MAX);
            } else if args.is(at, "TYPE") {
                options.is_series_wanted = value.eq_ignore_ascii_case(TYPE_NAME.as_bytes());
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(options)
    }

    fn matches(&self, key: &[u8]) -> bool {
        self.is_series_wanted && self.glob.as_ref().is_none_or(|glob| glob.matches(key))
    }
}
