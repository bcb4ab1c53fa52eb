//! A loaded server, and asking it.

use std::time::Instant;

use hdrhistogram::Histogram;
use latewood_wire::resp::parse_reply;

use super::QueryRun;
use super::data::{Kind, Set};
use super::digest::Digest;
use super::idle::IdleRun;
use super::question::Question;
use crate::absent::Absent;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::late;
use crate::machine::own_cpu_seconds;
use crate::report::json::TargetInfo;
use crate::target::{Ready, Target};
use crate::usage::anonymous_bytes;

/// Queries of a round, at least.
const QUERIES_MIN: u64 = 3;

/// A server with its data.
pub(super) struct Server {
    control: Control,
    info: TargetInfo,
    is_peer: bool,
    _ready: Ready,
}

/// What a server's reply to a question looks like.
pub(super) struct Shape {
    reply_bytes: usize,
    digest: Digest,
}

impl Server {
    /// Starts it and loads a set; tells what the series cost where that is asked.
    ///
    /// # Errors
    /// When it does not come up or does not take the data.
    pub(super) fn load(target: &Target, set: &Set) -> Result<(Self, Option<IdleRun>)> {
        let ready = target.ready()?;
        let process = ready
            .process_id()
            .ok_or_else(|| Error::new("the server has ended"))?;
        let mut control = Control::connect(&ready.address)?;
        let empty_bytes = anonymous_bytes(process)?;
        set.load(&mut control, &target.name())?;
        let idle = matches!(set.kind, Kind::Index | Kind::Idle).then_some(IdleRun {
            target: target.name(),
            series: set.series,
            small_chunks: set.kind == Kind::Index,
            empty_bytes,
            loaded_bytes: anonymous_bytes(process)?,
        });
        let server = Server {
            info: TargetInfo {
                name: target.name(),
                version: late::version(&ready.address)?,
                settings: ready.settings.clone(),
            },
            control,
            is_peer: target.is_started_peer(),
            _ready: ready,
        };
        Ok((server, idle))
    }

    /// Who it is, for the report.
    pub(super) fn info(&self) -> TargetInfo {
        self.info.clone()
    }

    /// Takes a turn of this server, unless it is left out.
    ///
    /// # Errors
    /// The turn's, unless this is a peer: that is left out from now on.
    pub(super) fn turn<T>(
        &mut self,
        absent: &mut Absent,
        turn: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<Option<T>> {
        let (name, is_peer) = (self.info.name.clone(), self.is_peer);
        absent.turn(&name, is_peer, || turn(self))
    }

    /// Asks `question` for about `seconds`, whose replies look like `shape`.
    ///
    /// # Errors
    /// When the connection breaks or a reply is another one.
    pub(super) fn ask(
        &mut self,
        question: &Question,
        shape: &Shape,
        repeat: usize,
        seconds: f64,
    ) -> Result<QueryRun> {
        let parts: Vec<&[u8]> = question.words.iter().map(String::as_bytes).collect();
        let mut latencies = new_histogram()?;
        let cpu_before = late::cpu_seconds(&mut self.control)?;
        let own_before = own_cpu_seconds();
        let began = Instant::now();
        let mut queries = 0;
        while queries < QUERIES_MIN || began.elapsed().as_secs_f64() < seconds {
            let asked = Instant::now();
            self.control.ask_bytes(&parts, shape.reply_bytes)?;
            let taken_ns = u64::try_from(asked.elapsed().as_nanos()).unwrap_or(u64::MAX);
            latencies.saturating_record(taken_ns);
            queries += 1;
        }
        let elapsed = began.elapsed().as_secs_f64();
        let client_cpu_seconds = own_cpu_seconds() - own_before;
        // A reply of another length would stand in the way of this one.
        let cpu_seconds = late::cpu_seconds(&mut self.control)? - cpu_before;
        Ok(QueryRun {
            question: question.name.to_owned(),
            command: question.words.join(" "),
            target: self.info.name.clone(),
            repeat,
            queries,
            rows: shape.digest.rows_or_keys(),
            reply_bytes: shape.reply_bytes,
            seconds: elapsed,
            cpu_seconds,
            client_cpu_seconds,
            p50_us: latencies.value_at_quantile(0.5) as f64 / 1e3,
            p99_us: latencies.value_at_quantile(0.99) as f64 / 1e3,
        })
    }

    fn look(&mut self, question: &Question) -> Result<Shape> {
        let parts: Vec<&[u8]> = question.words.iter().map(String::as_bytes).collect();
        let reply = self.control.ask_raw(&parts, |bytes| {
            let reply = parse_reply(bytes).map(|parsed| parsed.map(|(_, reply)| reply));
            (bytes.len(), reply)
        })?;
        let (reply_bytes, reply) = (reply.0, reply.1?);
        let reply = reply.ok_or_else(|| Error::new("half a reply"))?;
        if let latewood_wire::resp::Value::Error(text) = &reply {
            let text = String::from_utf8_lossy(text);
            return Err(Error::new(format!("{}: {text}", question.words.join(" "))));
        }
        let digest = Digest::of(&reply);
        Ok(Shape {
            reply_bytes,
            digest,
        })
    }
}

/// Asks every server once; their shapes, if they all say the same. Those that are left out go.
///
/// # Errors
/// When they do not, or when Latewood does not answer.
pub(super) fn agree(
    servers: &mut Vec<Server>,
    question: &Question,
    absent: &mut Absent,
) -> Result<Vec<Shape>> {
    let mut shapes: Vec<Shape> = Vec::new();
    while let Some(server) = servers.get_mut(shapes.len()) {
        let looked = server.turn(absent, |server| server.look(question))?;
        let Some(shape) = looked else {
            servers.remove(shapes.len());
            continue;
        };
        if let Some(first) = shapes.first()
            && !first.digest.agrees(&shape.digest)
        {
            return Err(Error::new(format!(
                "{}: servers disagree: {:?} and {:?}",
                question.words.join(" "),
                first.digest,
                shape.digest
            )));
        }
        shapes.push(shape);
    }
    Ok(shapes)
}

/// From a microsecond to minutes, in nanoseconds, with three digits.
fn new_histogram() -> Result<Histogram<u64>> {
    Histogram::new_with_bounds(1_000, 600_000_000_000, 3)
        .map_err(|error| Error::new(error.to_string()))
}
