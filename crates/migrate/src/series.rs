//! The options, labels, rules and expiry of a series.
//!
//! Read from TS.INFO of RedisTimeSeries 1.x and 8.x and Latewood; fields that an old version lacks
//! get the value that describes its behaviour. Written with TS.CREATE and TS.ALTER. IGNORE is set
//! after the samples, because it would drop some of them.

use crate::connect::{
    Answer, Link, bytes, float, integer, items, says_no_such_key, series_command,
};
use crate::error::{Result, shown};
use crate::samples::{Cursor, Sample, Stop};
use redis::{Cmd, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// Options and labels; `None` leaves an option to the server that creates the series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Milliseconds; 0 keeps all.
    pub(crate) retention_ms: Option<i64>,
    pub(crate) chunk_size_bytes: Option<i64>,
    pub(crate) uncompressed: Option<bool>,
    /// The series' own policy.
    pub(crate) policy: Option<Vec<u8>>,
    pub(crate) ignore: Option<Ignore>,
    pub(crate) labels: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The IGNORE rule; the difference in value as the server wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ignore {
    pub(crate) max_time_diff_ms: i64,
    pub(crate) max_value_diff: Vec<u8>,
}

impl Default for Ignore {
    fn default() -> Self {
        Self {
            max_time_diff_ms: 0,
            max_value_diff: b"0".to_vec(),
        }
    }
}

/// A compaction rule, as its source lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) destination: Vec<u8>,
    pub(crate) bucket_ms: i64,
    pub(crate) aggregator: Vec<u8>,
    pub(crate) align_ms: i64,
}

/// The reply of TS.INFO.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Info {
    pub(crate) shape: Shape,
    pub(crate) rules: Vec<Rule>,
    pub(crate) samples: i64,
    /// Milliseconds; 0 for an empty series.
    pub(crate) last_timestamp: i64,
}

impl Rule {
    /// Whether both are the same rule; the case of the aggregator does not matter.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.destination == other.destination
            && self.bucket_ms == other.bucket_ms
            && self.align_ms == other.align_ms
            && self.aggregator.eq_ignore_ascii_case(&other.aggregator)
    }

    /// TS.DELETERULE for the source `key`.
    pub(crate) fn delete(&self, key: &[u8]) -> Cmd {
        let mut command = redis::cmd("TS.DELETERULE");
        command.arg(key).arg(&self.destination).take()
    }

    /// TS.CREATERULE for the source `key`.
    pub(crate) fn create(&self, key: &[u8]) -> Cmd {
        let mut command = redis::cmd("TS.CREATERULE");
        command
            .arg(key)
            .arg(&self.destination)
            .arg("AGGREGATION")
            .arg(&self.aggregator)
            .arg(self.bucket_ms);
        if self.align_ms != 0 {
            command.arg(self.align_ms);
        }
        command
    }
}

impl Info {
    /// Sends TS.INFO for `key` and asks for its newest sample, since RedisTimeSeries says another time
    /// where rows of rules came late; `None` if the series does not exist.
    ///
    /// # Errors
    /// When the connection is lost or the reply is invalid.
    pub(crate) fn ask(link: &mut Link, key: &[u8]) -> Result<Option<Self>> {
        let mut both = redis::pipe();
        both.cmd("TS.INFO").arg(key);
        both.cmd("TS.REVRANGE")
            .arg(key)
            .arg(&["-", "+", "COUNT", "1"]);
        let mut answers = link.ask_all(&mut both)?.into_iter();
        let (Some(info), Some(newest)) = (answers.next(), answers.next()) else {
            return Err(link.unexpected("TS.INFO"));
        };
        // One of another type is no series either.
        let is_gone = |text: &str| says_no_such_key(text) || text.contains("WRONGTYPE");
        let refused = |link: &Link, name: &str, text| {
            Err(link.refused(format!("{name} {}", shown(key)), text))
        };
        let mut info = match info {
            Ok(value) => Self::parse(&value).ok_or_else(|| link.unexpected("TS.INFO"))?,
            Err(text) if is_gone(&text) => return Ok(None),
            Err(text) => return refused(link, "TS.INFO", text),
        };
        let newest = match newest {
            Ok(value) => value,
            Err(text) if is_gone(&text) => return Ok(None),
            // Before 1.4: that of TS.INFO has to do.
            Err(text) if text.contains("unknown command") => return Ok(Some(info)),
            Err(text) => return refused(link, "TS.REVRANGE", text),
        };
        let rows = items(&newest).ok_or_else(|| link.unexpected("TS.REVRANGE"))?;
        if let Some(row) = rows.first() {
            let at = items(row).and_then(|row| integer(row.first()?));
            info.last_timestamp = at.ok_or_else(|| link.unexpected("TS.REVRANGE"))?;
        }
        Ok(Some(info))
    }

    /// Parses the reply, alternating field names and values.
    pub(crate) fn parse(value: &Value) -> Option<Self> {
        let mut info = Self::default();
        info.shape.retention_ms = Some(0);
        info.shape.uncompressed = Some(false);
        let mut ignore = Ignore::default();
        let fields = items(value)?;
        let mut known = 0;
        for pair in fields.chunks_exact(2) {
            let value = &pair[1];
            let shape = &mut info.shape;
            known += 1;
            match bytes(&pair[0])? {
                b"totalSamples" => info.samples = integer(value)?,
                b"lastTimestamp" => info.last_timestamp = integer(value)?,
                b"retentionTime" => shape.retention_ms = Some(integer(value)?),
                b"chunkSize" => shape.chunk_size_bytes = Some(integer(value)?),
                b"chunkType" => shape.uncompressed = Some(bytes(value)? == b"uncompressed"),
                b"duplicatePolicy" => shape.policy = bytes(value).map(<[u8]>::to_vec),
                b"ignoreMaxTimeDiff" => ignore.max_time_diff_ms = integer(value)?,
                b"ignoreMaxValDiff" => ignore.max_value_diff = number_text(value)?,
                b"labels" => {
                    shape.labels = items(value)?.iter().map(label).collect::<Option<_>>()?;
                }
                b"rules" => info.rules = items(value)?.iter().map(rule).collect::<Option<_>>()?,
                _ => known -= 1,
            }
        }
        info.shape.ignore = Some(ignore);
        (known > 0).then_some(info)
    }
}

/// When `key` expires, milliseconds since 1970.
///
/// # Errors
/// When the connection is lost or the reply is invalid.
pub(crate) fn expiry(link: &mut Link, key: &[u8]) -> Result<Option<i64>> {
    // Redis before 7 has no PEXPIRETIME.
    let left = match link.ask(&redis::cmd("PTTL").arg(key).take())? {
        // A server without expiry has none to copy.
        Err(text) if text.contains("unknown command") => return Ok(None),
        left => left.ok(),
    };
    let left = left.as_ref().and_then(integer);
    let left = left.ok_or_else(|| link.unexpected("PTTL"))?;
    if left < 0 {
        return Ok(None);
    }
    let at = link.ask(&redis::cmd("PEXPIRETIME").arg(key).take())?;
    Ok(match at.ok().as_ref().and_then(integer) {
        Some(at) if at > 0 => Some(at),
        _ => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let now = now.map_or(0, |now| now.as_millis() as i64);
            Some(now.saturating_add(left))
        }
    })
}

/// Writes the newest sample of `key` again, so that its new rules include the bucket that was
/// open when they were created; without a write they would not.
///
/// # Errors
/// When the connection is lost.
pub(crate) fn touch(link: &mut Link, key: &[u8]) -> Result<Answer> {
    let newest = match link.ask(&redis::cmd("TS.GET").arg(key).take())? {
        Ok(newest) => newest,
        refused => return Ok(refused),
    };
    let Some([timestamp, value]) = items(&newest) else {
        return Ok(Ok(Value::Nil));
    };
    let (timestamp, value) = (integer(timestamp), float(value));
    let (Some(timestamp), Some(value)) = (timestamp, value) else {
        return Err(link.unexpected("TS.GET"));
    };
    let mut sample = Sample { timestamp, value };
    if value.is_nan() {
        // TS.GET does not return the bits of a NaN.
        let mut exact = Cursor::new(key, timestamp, timestamp);
        match exact.peek(link) {
            Ok(exact) => sample = exact.unwrap_or(sample),
            Err(Stop::SeriesGone) => return Ok(Ok(Value::Nil)),
            Err(Stop::Error(error)) => return Err(error),
        }
    }
    let mut add = sample.add(link, key);
    link.ask(add.arg("ON_DUPLICATE").arg("LAST"))
}

/// The command that makes `key` expire at `at_ms`, milliseconds since 1970.
pub(crate) fn expire(key: &[u8], at_ms: i64) -> Cmd {
    redis::cmd("PEXPIREAT").arg(key).arg(at_ms).take()
}

impl Shape {
    /// TS.CREATE with all options except IGNORE, which [`Shape::alter_ignore`] sets.
    pub(crate) fn create(&self, is_exact: bool, key: &[u8]) -> Cmd {
        let mut command = self.command(is_exact, "CREATE");
        command.arg(key);
        if let Some(uncompressed) = self.uncompressed {
            let word = ["COMPRESSED", "UNCOMPRESSED"][usize::from(uncompressed)];
            command.arg("ENCODING").arg(word);
        }
        self.options(is_exact, &mut command);
        command
    }

    /// TS.ALTER with all options except IGNORE and the encoding, which cannot be changed.
    pub(crate) fn alter(&self, is_exact: bool, key: &[u8]) -> Cmd {
        let mut command = self.command(is_exact, "ALTER");
        command.arg(key);
        self.options(is_exact, &mut command);
        command
    }

    /// A label whose value RedisTimeSeries cannot parse.
    fn odd_label(&self) -> Option<&(Vec<u8>, Vec<u8>)> {
        let is_odd = |byte: &u8| matches!(byte, b'(' | b')' | b',');
        let mut labels = self.labels.iter();
        labels.find(|(_, value)| value.iter().any(is_odd))
    }

    fn command(&self, is_exact: bool, verb: &str) -> Cmd {
        // Every user may send the plain command, so prefer it.
        if self.odd_label().is_some() || self.policy.is_none() {
            series_command(is_exact, verb)
        } else {
            redis::cmd(&format!("TS.{verb}"))
        }
    }

    /// The reason why a target that `is_exact` or not refused these options with `text`.
    pub(crate) fn refusal(&self, is_exact: bool, text: &str) -> String {
        match self.odd_label().filter(|_| !is_exact) {
            Some((name, value)) => format!(
                "{text}: label values with ( ) or , are not supported, such as {}={}",
                shown(name),
                shown(value)
            ),
            None => text.to_owned(),
        }
    }

    /// TS.ALTER with the IGNORE rule only; `None` if the series has none.
    pub(crate) fn alter_ignore(&self, key: &[u8]) -> Option<Cmd> {
        let ignore = self.ignore.as_ref();
        let ignore = ignore.filter(|ignore| **ignore != Ignore::default())?;
        let mut command = redis::cmd("TS.ALTER");
        command
            .arg(key)
            .arg("IGNORE")
            .arg(ignore.max_time_diff_ms)
            .arg(&ignore.max_value_diff);
        Some(command)
    }

    /// The shape while samples are being copied.
    pub(crate) fn without_ignore(&self) -> Self {
        Self {
            ignore: self.ignore.as_ref().map(|_| Ignore::default()),
            ..self.clone()
        }
    }

    fn options(&self, is_exact: bool, command: &mut Cmd) {
        if let Some(retention_ms) = self.retention_ms {
            command.arg("RETENTION").arg(retention_ms);
        }
        if let Some(size) = self.chunk_size_bytes {
            command.arg("CHUNK_SIZE").arg(size);
        }
        match &self.policy {
            Some(policy) => drop(command.arg("DUPLICATE_POLICY").arg(policy)),
            // Otherwise the server gives it the one of the moment.
            None if is_exact => drop(command.arg("DUPLICATE_POLICY").arg("none")),
            None => {}
        }
        if self.ignore.is_some() {
            command.arg("IGNORE").arg(0).arg(0);
        }
        command.arg("LABELS");
        for (name, value) in &self.labels {
            command.arg(name).arg(value);
        }
    }
}

fn label(pair: &Value) -> Option<(Vec<u8>, Vec<u8>)> {
    match items(pair)? {
        [name, value] => Some((bytes(name)?.to_vec(), bytes(value)?.to_vec())),
        _ => None,
    }
}

fn rule(row: &Value) -> Option<Rule> {
    let row = items(row)?;
    Some(Rule {
        destination: bytes(row.first()?)?.to_vec(),
        bucket_ms: integer(row.get(1)?)?,
        aggregator: bytes(row.get(2)?)?.to_vec(),
        // Rules had no alignment before 1.8.
        align_ms: row.get(3).and_then(integer).unwrap_or(0),
    })
}

fn number_text(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::Int(number) => Some(number.to_string().into_bytes()),
        Value::Double(number) => Some(number.to_string().into_bytes()),
        other => bytes(other).map(<[u8]>::to_vec),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn words(command: &Cmd) -> String {
        let packed = String::from_utf8(command.get_packed_command()).unwrap();
        let lines = packed.split("\r\n").filter(|line| !line.is_empty());
        lines.skip(2).step_by(2).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn reads_an_answer_and_writes_the_commands_that_make_it() {
        let answer = Value::Array(vec![
            text("totalSamples"),
            Value::Int(7),
            text("retentionTime"),
            Value::Int(60_000),
            text("chunkSize"),
            Value::Int(128),
            text("chunkType"),
            Value::SimpleString("uncompressed".into()),
            text("duplicatePolicy"),
            text("max"),
            text("labels"),
            Value::Array(vec![Value::Array(vec![text("site"), text("a b")])]),
            text("sourceKey"),
            Value::Nil,
            text("rules"),
            Value::Array(vec![Value::Array(vec![
                text("day"),
                Value::Int(10),
                text("SUM"),
                Value::Int(3),
            ])]),
            text("ignoreMaxTimeDiff"),
            Value::Int(5),
            text("ignoreMaxValDiff"),
            text("0.5"),
        ]);
        let info = Info::parse(&answer).unwrap();
        assert_eq!(info.samples, 7);
        assert_eq!(info.rules[0].aggregator, b"SUM");
        assert_eq!((info.rules[0].bucket_ms, info.rules[0].align_ms), (10, 3));
        assert_eq!(
            words(&info.shape.create(true, b"k")),
            "TS.CREATE k ENCODING UNCOMPRESSED RETENTION 60000 CHUNK_SIZE 128 \
             DUPLICATE_POLICY max IGNORE 0 0 LABELS site a b"
        );
        assert_eq!(
            words(&info.shape.alter_ignore(b"k").unwrap()),
            "TS.ALTER k IGNORE 5 0.5"
        );
        assert!(info.shape.without_ignore().alter_ignore(b"k").is_none());
    }

    #[test]
    fn an_old_servers_answer_has_fewer_fields() {
        let rule = Value::Array(vec![text("day"), Value::Int(10), text("AVG")]);
        let answer = Value::Array(vec![
            text("totalSamples"),
            Value::Int(0),
            text("rules"),
            Value::Array(vec![rule]),
        ]);
        let info = Info::parse(&answer).unwrap();
        assert_eq!(info.shape.retention_ms, Some(0));
        assert!(info.shape.alter_ignore(b"k").is_none());
        assert_eq!(info.rules[0].align_ms, 0);
    }

    #[test]
    fn strange_answers_are_none() {
        for answer in [
            Value::Nil,
            Value::Array(vec![]),
            Value::Array(vec![text("a"), text("b")]),
            Value::Array(vec![text("totalSamples"), text("many")]),
            Value::Array(vec![text("labels"), Value::Array(vec![text("x")])]),
        ] {
            assert_eq!(Info::parse(&answer), None, "{answer:?}");
        }
    }
}
