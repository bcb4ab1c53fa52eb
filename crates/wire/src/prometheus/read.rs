//! Remote read: `prometheus.ReadRequest`, and both types of response.
//!
//! `SAMPLES` is one `prometheus.ReadResponse`, which holds every sample;
//! `STREAMED_XOR_CHUNKS` a sequence of `prometheus.ChunkedReadResponse`, each
//! in its own frame ([`frames`]) with compressed samples ([`chunk`]). The caller
//! must add the series of a query in the order of their labels.
//!
//! Message layouts: `remote.proto` and `types.proto` of Prometheus, and the
//! page on its remote read API. Tested by `read/tests.rs`, which decodes the
//! responses, and by the fuzz target `remote_read`.

pub mod chunk;
pub mod frames;
#[cfg(test)]
mod tests;

use crate::protobuf::{Fields, ProtobufError, Value, varint};
use crate::selector::{MATCHERS_MAX, Matcher, Pattern, Patterns, SelectorError, Test};
use prost::encoding::{WireType, encode_key, encode_varint};

/// Queries of one request.
pub const QUERIES_MAX: usize = 64;

/// A read request.
#[derive(Clone, Debug)]
pub struct Request {
    /// Each has its own result.
    pub queries: Vec<Query>,
    /// The response type.
    pub form: Form,
}

/// A time range of some series.
#[derive(Clone, Debug)]
pub struct Query {
    /// Oldest timestamp, in milliseconds.
    pub from_ms: i64,
    /// Newest timestamp in milliseconds, inclusive.
    pub to_ms: i64,
    /// Conditions on the labels; without one, all series match.
    pub matchers: Vec<Matcher>,
}

/// The supported response types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One message with every sample.
    Samples,
    /// Compressed chunks, series by series.
    StreamedXorChunks,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It cannot be decoded.
    #[error(transparent)]
    Message(#[from] ProtobufError),
    /// A matcher of an unknown type.
    #[error("unknown matcher type {0}")]
    MatcherType(u64),
    /// A label or value that is not UTF-8.
    #[error("a matcher is not valid UTF-8")]
    NotUtf8,
    /// A bad regular expression.
    #[error("{0}")]
    Pattern(String),
    /// More than [`MATCHERS_MAX`] matchers in a query.
    #[error(transparent)]
    Matchers(#[from] SelectorError),
    /// More queries than [`QUERIES_MAX`].
    #[error("more than {QUERIES_MAX} queries")]
    TooMany,
    /// None of the accepted response types is supported.
    #[error("none of the accepted response types is supported: use SAMPLES or STREAMED_XOR_CHUNKS")]
    NoForm,
}

/// Compiles a regular expression as one of the patterns of a request, or says what is wrong.
pub type Compile = fn(&[u8], &mut Patterns) -> Result<Pattern, String>;

impl Request {
    /// Decodes an uncompressed message; `compile` is asked for each regular expression.
    ///
    /// The response type is the first supported one that the reader accepts,
    /// `SAMPLES` if it names none.
    ///
    /// # Errors
    /// The message is invalid or asks for something that is not supported.
    pub fn read(message: &[u8], compile: Compile) -> Result<Self, ReadError> {
        let (mut queries, mut forms) = (Vec::new(), Vec::new());
        let mut patterns = Patterns::default();
        let mut compile = |text: &[u8]| compile(text, &mut patterns);
        let mut fields = Fields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            match (number, value) {
                (1, Value::Bytes(_)) if queries.len() == QUERIES_MAX => {
                    return Err(ReadError::TooMany);
                }
                (1, Value::Bytes(query)) => queries.push(Query::read(query, &mut compile)?),
                (2, Value::Varint(form)) => forms.push(form),
                (2, Value::Bytes(mut packed)) => {
                    while !packed.is_empty() {
                        forms.push(varint(&mut packed)?);
                    }
                }
                _ => {}
            }
        }
        let form = match forms.iter().find(|form| **form <= 1) {
            None if !forms.is_empty() => return Err(ReadError::NoForm),
            Some(1) => Form::StreamedXorChunks,
            _ => Form::Samples,
        };
        Ok(Self { queries, form })
    }
}

impl Query {
    fn read(
        message: &[u8],
        compile: &mut impl FnMut(&[u8]) -> Result<Pattern, String>,
    ) -> Result<Self, ReadError> {
        let mut query = Self {
            from_ms: 0,
            to_ms: 0,
            matchers: Vec::new(),
        };
        let mut fields = Fields::of(message);
        while let Some((number, value)) = fields.next_field()? {
            match (number, value) {
                // An int64 is encoded as the unsigned number of the same bits.
                (1, Value::Varint(number)) => query.from_ms = number as i64,
                (2, Value::Varint(number)) => query.to_ms = number as i64,
                (3, Value::Bytes(_)) if query.matchers.len() == MATCHERS_MAX => {
                    return Err(SelectorError::TooMany.into());
                }
                (3, Value::Bytes(message)) => query.matchers.push(matcher(message, compile)?),
                // Hints do not change the result.
                _ => {}
            }
        }
        Ok(query)
    }
}

fn matcher(
    message: &[u8],
    compile: &mut impl FnMut(&[u8]) -> Result<Pattern, String>,
) -> Result<Matcher, ReadError> {
    let (mut kind, mut name, mut value) = (0, &[][..], &[][..]);
    let mut fields = Fields::of(message);
    while let Some((number, field)) = fields.next_field()? {
        match (number, field) {
            (1, Value::Varint(number)) => kind = number,
            (2, Value::Bytes(bytes)) => name = bytes,
            (3, Value::Bytes(bytes)) => value = bytes,
            _ => {}
        }
    }
    let text = |bytes| std::str::from_utf8(bytes).map_err(|_| ReadError::NotUtf8);
    let (name, value) = (text(name)?, text(value)?);
    let test = match kind {
        0 => Test::Equal(value.as_bytes().into()),
        1 => Test::NotEqual(value.as_bytes().into()),
        2 => Test::Match(compile(value.as_bytes()).map_err(ReadError::Pattern)?),
        3 => Test::NotMatch(compile(value.as_bytes()).map_err(ReadError::Pattern)?),
        other => return Err(ReadError::MatcherType(other)),
    };
    Ok(Matcher::new(name.as_bytes(), test))
}

/// The response `SAMPLES`, built series by series.
///
/// A message begins with its length, so it can be sent only when complete.
#[derive(Clone, Debug, Default)]
pub struct SamplesAnswer {
    message: Vec<u8>,
    /// The result of the current query.
    result: Vec<u8>,
    /// The current series.
    series: Vec<u8>,
    sample: Vec<u8>,
}

impl SamplesAnswer {
    /// An empty response.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a series of the current query.
    pub fn begin_series<'a>(&mut self, labels: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
        self.series.clear();
        put_labels(&mut self.series, labels);
    }

    /// Adds samples to the current series.
    pub fn samples(&mut self, timestamps: &[i64], values: &[f64]) {
        for (timestamp, value) in timestamps.iter().zip(values) {
            self.sample.clear();
            encode_key(1, WireType::SixtyFourBit, &mut self.sample);
            self.sample
                .extend_from_slice(&value.to_bits().to_le_bytes());
            put_int(&mut self.sample, 2, *timestamp);
            put_bytes(&mut self.series, 2, &self.sample);
        }
    }

    /// Ends the current series.
    pub fn end_series(&mut self) {
        put_bytes(&mut self.result, 1, &self.series);
        self.series.clear();
    }

    /// Ends the result of a query; results are in the order of the queries.
    pub fn end_query(&mut self) {
        put_bytes(&mut self.message, 1, &self.result);
        self.result.clear();
    }

    /// Length of the message so far.
    pub fn len_bytes(&self) -> usize {
        self.message.len() + self.result.len() + self.series.len()
    }

    /// The message, uncompressed.
    pub fn finish(self) -> Vec<u8> {
        self.message
    }
}

/// Appends labels, each a message in field 1.
fn put_labels<'a>(out: &mut Vec<u8>, labels: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
    let mut label = Vec::new();
    for (name, value) in labels {
        label.clear();
        put_bytes(&mut label, 1, name);
        put_bytes(&mut label, 2, value);
        put_bytes(out, 1, &label);
    }
}

fn put_bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    encode_key(field, WireType::LengthDelimited, out);
    encode_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

fn put_int(out: &mut Vec<u8>, field: u32, number: i64) {
    encode_key(field, WireType::Varint, out);
    encode_varint(number as u64, out);
}
