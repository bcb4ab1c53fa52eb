//! `DUMP key`: a series as bytes, and
//! `RESTORE key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ n]`:
//! a series from them.
//!
//! The bytes are of a format of their own (`docs/format/dump.md`), or those of RedisTimeSeries, which
//! RESTORE takes as well and `--dump-format redis` has DUMP write. IDLETIME and FREQ are checked and
//! mean nothing here.

use super::args::Args;
use super::call::{Call, Outcome};
use super::fault::{Fault, NOT_AN_INTEGER, SYNTAX};
use super::keys::{Access, Keys, Run};
use super::reply_limit::ReplyLimit;
use super::spec::Spec;
use crate::messaging::Class;
use latewood_engine::{Cancelled, Dump, DumpFault, DumpWriter, ErrorKind, Restored, is_cancelled};
use latewood_model::limits::{FRAME_SAMPLES_MAX, RESTORE_SAMPLES_MAX};
use latewood_rdb::PayloadWriter;
use latewood_wire::resp::number::parse_i64;
use std::sync::atomic::Ordering;

pub(crate) const SPECS: &[Spec] = &[
    Spec::of_group("keyspace", &["readonly"])
        .named("dump", dump)
        .words(2, "key")
        .keys(Keys::ONE)
        .about("Returns a series as bytes for RESTORE."),
    Spec::of_group("keyspace", &["write", "denyoom"])
        .named("restore", restore)
        .words(
            -4,
            "key ttl payload [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
        )
        .keys(Keys(&[Run::at(1, Access::Overwrite)]))
        .about("Creates a series from the bytes of DUMP."),
];

fn dump(call: &mut Call<'_>) -> Outcome {
    let samples = call.shared.db.samples_of(call.args.word(1));
    call.finish(samples.unwrap_or(0), written)
}

fn written(call: &mut Call<'_>) -> Outcome {
    let key = call.args.word(1);
    let limit = ReplyLimit::of(call.shared);
    match call.shared.db.dump_within(key, limit.bytes, call.cancelled) {
        Ok(bytes) if call.shared.runtime.dumps_for_redis.load(Ordering::Relaxed) => {
            let payload = for_redis(key, &bytes, limit.bytes, call.cancelled);
            match payload.map_err(|fault| refusal(&fault))? {
                Some(payload) => call.reply().bulk(payload),
                None => {
                    return Err(limit.refuse("the reply has more bytes than fit in", ""));
                }
            }
        }
        Ok(bytes) => call.reply().bulk(bytes),
        Err(error) if error.kind() == ErrorKind::Limit => {
            return Err(limit.refuse("the reply has more bytes than fit in", ""));
        }
        Err(error) if error.kind() == ErrorKind::NoSuchKey => {
            call.shared.events.missed(key);
            call.reply().null();
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

fn restore(call: &mut Call<'_>) -> Outcome {
    const BUSY: Fault = Fault::line("BUSYKEY Target key name already exists.");
    let options = RestoreOptions::parse(call.args)?;
    let (shared, key) = (call.shared, call.args.word(1));
    if !options.replace && shared.db.contains(key) {
        return Err(BUSY);
    }
    let expires_at_ms = expiry(
        call.args.word(2),
        options.is_absolute,
        call.shared.db.now_ms(),
    )?;
    let translated;
    let dump = match Dump::parse(call.args.word(3)) {
        Err(DumpFault::Redis) => {
            translated = of_redis(call.args.word(3))?;
            Dump::parse(&translated)
        }
        parsed => parsed,
    };
    let dump = dump.map_err(|fault| refusal(&fault))?;
    let restored = shared
        .db
        .restore(key, dump, expires_at_ms, options.replace)
        .map_err(|error| match error.kind() {
            ErrorKind::Corrupt => refusal(&DumpFault::Malformed),
            _ => Fault::about(error, key),
        })?;
    call.session.wrote(restored.1);
    match restored.0 {
        Restored::Taken => return Err(BUSY),
        Restored::Made => {
            shared.events.created(key);
            shared.changed(Class::Generic, "restore", key);
        }
        Restored::Removed => shared.changed(Class::Generic, "del", key),
        Restored::Past => {}
    }
    call.ok()
}

/// A payload of RedisTimeSeries in Latewood's form, without the rules it may name.
fn of_redis(payload: &[u8]) -> Result<Vec<u8>, Fault> {
    latewood_rdb::read_payload(payload, |series, samples| {
        let mut writer = DumpWriter::new(&series.options, usize::MAX)?;
        let mut left = RESTORE_SAMPLES_MAX;
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        while samples.next(&mut timestamps, &mut values)? {
            left = left.checked_sub(timestamps.len() as u64).ok_or_else(|| {
                let text =
                    format!("ERR TSDB: a payload must have at most {RESTORE_SAMPLES_MAX} samples");
                Fault::Line(text.into())
            })?;
            let pieces = timestamps.chunks(FRAME_SAMPLES_MAX);
            for (timestamps, values) in pieces.zip(values.chunks(FRAME_SAMPLES_MAX)) {
                writer.samples(timestamps, values)?;
            }
        }
        Ok(writer.finish())
    })
}

impl From<latewood_rdb::Error> for Fault {
    fn from(error: latewood_rdb::Error) -> Self {
        match error {
            latewood_rdb::Error::Checksum => refusal(&DumpFault::Unknown),
            _ => Self::Line(format!("ERR Bad data format: {error}").into()),
        }
    }
}

/// A dump of Latewood's form in that of RedisTimeSeries; `None` if it has more than `bytes_max`. Once
/// `cancelled`, it may lack samples.
fn for_redis(
    key: &[u8],
    dump: &[u8],
    bytes_max: usize,
    cancelled: Cancelled<'_>,
) -> Result<Option<Vec<u8>>, DumpFault> {
    let mut dump = Dump::parse(dump)?;
    let options = dump.options().clone();
    let mut writer = PayloadWriter::new(&options);
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    while !is_cancelled(cancelled) && dump.next(&mut timestamps, &mut values)? {
        writer.samples(&timestamps, &values);
        if writer.bytes() > bytes_max {
            return Ok(None);
        }
    }
    let payload = writer.finish(key, &options);
    Ok(Some(payload).filter(|payload| payload.len() <= bytes_max))
}

fn refusal(fault: &DumpFault) -> Fault {
    Fault::Line(format!("ERR {fault}").into())
}

/// When the series expires, milliseconds since the Unix epoch.
fn expiry(ttl: &[u8], is_absolute: bool, now_ms: i64) -> Result<Option<i64>, Fault> {
    let ttl_ms = parse_i64(ttl).ok_or(NOT_AN_INTEGER)?;
    match ttl_ms {
        0 => Ok(None),
        ..0 => Fault::refuse("ERR Invalid TTL value, must be >= 0"),
        _ if is_absolute => Ok(Some(ttl_ms)),
        _ => match ttl_ms.checked_add(now_ms) {
            Some(at_ms) => Ok(Some(at_ms)),
            None => Fault::refuse("ERR invalid expire time in 'restore' command"),
        },
    }
}

struct RestoreOptions {
    replace: bool,
    is_absolute: bool,
}

impl RestoreOptions {
    fn parse(args: Args<'_>) -> Result<Self, Fault> {
        let mut options = Self {
            replace: false,
            is_absolute: false,
        };
        let (mut has_idle_time, mut has_frequency) = (false, false);
        let mut at = 4;
        while at < args.len() {
            if args.is(at, "REPLACE") {
                options.replace = true;
            } else if args.is(at, "ABSTTL") {
                options.is_absolute = true;
            } else if args.is(at, "IDLETIME") && at + 1 < args.len() && !has_frequency {
                has_idle_time = true;
                at += 1;
                if parse_i64(args.word(at)).ok_or(NOT_AN_INTEGER)? < 0 {
                    return Fault::refuse("ERR Invalid IDLETIME value, must be >= 0");
                }
            } else if args.is(at, "FREQ") && at + 1 < args.len() && !has_idle_time {
                has_frequency = true;
                at += 1;
                if !(0..=255).contains(&parse_i64(args.word(at)).ok_or(NOT_AN_INTEGER)?) {
                    return Fault::refuse("ERR Invalid FREQ value, must be >= 0 and <= 255");
                }
            } else {
                return Err(SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }
}
