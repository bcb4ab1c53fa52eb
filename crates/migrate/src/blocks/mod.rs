//! `latewood import prometheus`: writes what blocks of Prometheus' or Thanos' storage hold to a server.
//!
//! A block is a directory with `meta.json`, `index`, `chunks` and perhaps `tombstones`; the data
//! directory of Prometheus has many. Samples are sent by remote write, so that they become the
//! series of a Prometheus that writes to the server, bit for bit. Samples that a tombstone deletes
//! are left out. Blocks of Thanos name external labels, which replace those of the series, as they do for
//! its readers; labels of the command are for series that lack them, as in remote write. Native histograms
//! are counted, and their metrics named. Of a block the symbols are held, and a message at a time.
//!
//! ```text
//! index      symbols and series
//!   chunk    the samples of a chunk
//! message    remote write
//! ```
//!
//! Tested in its parts, by `crates/server/tests/migrate/prometheus.rs` with a block that Prometheus
//! wrote, and by the fuzz target `import_prometheus`.

mod chunk;
#[cfg(any(fuzzing, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod index;
mod message;

use crate::args::PrometheusImport;
use crate::error::{Doing, Error, Result};
use crate::http::{Http, TRIES};
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::rate::Rate;
use index::{ChunkPlace, Index, Series, Taken, Why, checked};
use message::Message;
use reqwest::StatusCode;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// Samples and bytes of one message, more or less.
const SAMPLES: usize = 20_000;
const MESSAGE_BYTES: usize = 1 << 20;
/// Bytes of a chunk.
const CHUNK_BYTES_MAX: u64 = 16 << 20;
/// Metrics with native histograms, and refusals, that are named; the others are counted.
const NAMED: usize = 20;
/// Chunks are told apart by the byte before them.
const FLOATS: u8 = 1;
const HISTOGRAMS: [u8; 2] = [2, 3];
/// The first bytes of a file of tombstones, of the only version. The checksum is that of what follows.
const TOMBSTONES: [u8; 5] = [0x01, 0x30, 0xba, 0x30, 1];
const REMOTE_WRITE: [(&str, &str); 3] = [
    ("Content-Encoding", "snappy"),
    ("Content-Type", "application/x-protobuf"),
    ("X-Prometheus-Remote-Write-Version", "0.1.0"),
];

/// Reads every block and sends its samples to the target.
///
/// # Errors
/// When a block is damaged, the target or a file fails, or samples are refused, unless those are
/// skipped.
pub(crate) fn run(options: &PrometheusImport) -> Result<Outcome> {
    let mut labels = BTreeMap::new();
    for (name, value) in &options.labels {
        if labels.insert(name.clone(), value.clone()).is_some() {
            return Err(Error::Failed(format!("--label {name} is given twice")));
        }
    }
    let blocks = blocks(&options.directories)?;
    let http = Http::new(&options.to, "/api/v1/write", &options.login, &options.tls)?;
    let total = blocks.iter().map(|block| block.samples).sum();
    let mut import = Import {
        options,
        labels,
        http,
        rate: Rate::new(options.rate),
        progress: Progress::new("importing", Some(total)),
        message: Message::default(),
        written: 0,
        refused: 0,
        deleted: 0,
        histograms: 0,
        histogram_metrics: BTreeSet::new(),
    };
    // Check the server and the user before reading a block.
    let first = import.send();
    first.map_err(|error| import.http.explained(error))?;
    for block in &blocks {
        let read = import.block(block).and_then(|()| import.send());
        read.map_err(|error| {
            let written = import.written;
            Error::Failed(format!("{error} ({written} samples were written)"))
        })?;
    }
    Ok(import.finish(blocks.len()))
}

/// A block and what it says it has.
struct Block {
    path: PathBuf,
    samples: u64,
    /// External labels.
    external: BTreeMap<String, String>,
}

/// The blocks that are named, and those in directories that are named, oldest first.
fn blocks(directories: &[PathBuf]) -> Result<Vec<Block>> {
    let mut found = BTreeMap::new();
    for directory in directories {
        let mut candidates = vec![directory.clone()];
        let listed = directory.read_dir();
        for entry in listed.doing(format!("read {}", directory.display()))? {
            let entry = entry.doing(format!("read {}", directory.display()))?;
            candidates.push(entry.path());
        }
        candidates.retain(|path| path.join("meta.json").is_file());
        if candidates.is_empty() {
            let text = format!(
                "{} has no block (a directory with meta.json); POST /api/v1/admin/tsdb/snapshot at \
                 Prometheus writes its newest samples to blocks",
                directory.display()
            );
            return Err(Error::Failed(text));
        }
        for path in candidates {
            let (first_ms, block) = read_meta(&path)?;
            found.insert((first_ms, path), block);
        }
    }
    Ok(found.into_values().collect())
}

/// The first time of a block, and what it says of itself.
fn read_meta(block: &Path) -> Result<(i64, Block)> {
    let path = block.join("meta.json");
    let text = std::fs::read(&path).doing(format!("read {}", path.display()))?;
    let wrong = |why: &dyn std::fmt::Display| Error::Failed(format!("{}: {why}", path.display()));
    let meta: Value = serde_json::from_slice(&text).map_err(|error| wrong(&error))?;
    if meta["version"] != 1 {
        return Err(wrong(&"expected a block of version 1"));
    }
    let first_ms = meta["minTime"]
        .as_i64()
        .ok_or_else(|| wrong(&"minTime is missing"))?;
    let external = match &meta["thanos"]["labels"] {
        Value::Null => BTreeMap::new(),
        labels => serde_json::from_value(labels.clone())
            .map_err(|error| wrong(&format!("thanos.labels: {error}")))?,
    };
    let read = Block {
        path: block.to_owned(),
        samples: meta["stats"]["numSamples"].as_u64().unwrap_or(0),
        external,
    };
    Ok((first_ms, read))
}

/// Gives the labels of a series those of its block and of the command, of which an empty one leaves that
/// of the block out.
fn add_external(
    of_block: &BTreeMap<String, String>,
    of_command: &BTreeMap<String, String>,
    labels: &mut Vec<(String, String)>,
) {
    let block = of_block
        .iter()
        .filter(|(name, _)| !of_command.contains_key(*name));
    for (name, value) in block {
        labels.retain(|(own, _)| own != name);
        labels.push((name.clone(), value.clone()));
    }
    for (name, value) in of_command {
        if !labels.iter().any(|(own, _)| own == name) {
            labels.push((name.clone(), value.clone()));
        }
    }
    // An empty label is none.
    labels.retain(|(_, value)| !value.is_empty());
    labels.sort_unstable();
}

/// Spans that are deleted, both ends included, by series.
type Tombstones = HashMap<u64, Vec<(i64, i64)>>;

fn read_tombstones(path: &Path) -> std::result::Result<Tombstones, Why> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(HashMap::new()),
        Err(error) => return Err(error.to_string()),
    };
    parse_tombstones(&bytes)
}

fn parse_tombstones(bytes: &[u8]) -> std::result::Result<Tombstones, Why> {
    let body = bytes
        .strip_prefix(&TOMBSTONES)
        .ok_or("expected tombstones of version 1")?;
    let mut body = Taken(checked(body)?);
    let mut found = Tombstones::new();
    while !body.0.is_empty() {
        let one = (body.uvarint(), body.varint(), body.varint());
        let (Some(series), Some(from), Some(to)) = one else {
            return Err("the file is cut off".to_owned());
        };
        found.entry(series).or_default().push((from, to));
    }
    Ok(found)
}

/// The files of chunks of a block, opened as they are needed.
struct Segments {
    folder: PathBuf,
    open: Vec<Option<File>>,
}

impl Segments {
    /// What stands at a place: the byte that says what the chunk is, and the chunk.
    fn chunk(&mut self, place: ChunkPlace) -> std::result::Result<Vec<u8>, Why> {
        let ChunkPlace { segment, offset } = place;
        let name = format!("{:06}", segment + 1);
        let broken = |why: &str| format!("chunks/{name} at {offset}: {why}");
        if segment >= self.open.len() {
            // A segment has half a gigabyte: no block has that many.
            if segment > 1 << 20 {
                return Err(broken("the number of the chunk file is too high"));
            }
            self.open.resize_with(segment + 1, || None);
        }
        let file = match &mut self.open[segment] {
            Some(file) => file,
            closed => {
                let file = File::open(self.folder.join(&name));
                closed.insert(file.map_err(|error| broken(&error.to_string()))?)
            }
        };
        let mut head = [0; 6];
        let read = file.read_at(&mut head, offset);
        let got = read.map_err(|error| broken(&error.to_string()))?;
        let mut taken = Taken(&head[..got]);
        let length = taken.uvarint().ok_or_else(|| broken("it is cut off"))?;
        if length > CHUNK_BYTES_MAX {
            return Err(broken("it is too long"));
        }
        let begin = offset + (got - taken.0.len()) as u64;
        let mut bytes = vec![0; length as usize + 5];
        let read = file.read_exact_at(&mut bytes, begin);
        read.map_err(|error| broken(&error.to_string()))?;
        let body = checked(&bytes).map_err(|why| broken(&why))?.len();
        bytes.truncate(body);
        Ok(bytes)
    }
}

struct Import<'a> {
    options: &'a PrometheusImport,
    /// Labels for series that lack them.
    labels: BTreeMap<String, String>,
    http: Http,
    rate: Rate,
    progress: Progress,
    message: Message,
    written: u64,
    refused: u64,
    /// Samples that tombstones delete.
    deleted: u64,
    /// Native histograms that were not taken, and their metrics.
    histograms: u64,
    histogram_metrics: BTreeSet<String>,
}

impl Import<'_> {
    fn block(&mut self, block: &Block) -> Result<()> {
        let path = &block.path;
        let of_file = |file: &'static str| {
            let path = path.join(file);
            move |why: Why| Error::Failed(format!("{}: {why}", path.display()))
        };
        let mut index = Index::open(&path.join("index")).map_err(of_file("index"))?;
        let tombstones = read_tombstones(&path.join("tombstones"));
        let tombstones = tombstones.map_err(of_file("tombstones"))?;
        let mut segments = Segments {
            folder: path.join("chunks"),
            open: Vec::new(),
        };
        while let Some(mut series) = index.next().map_err(of_file("index"))? {
            add_external(&block.external, &self.labels, &mut series.labels);
            let deleted = tombstones.get(&series.reference);
            let deleted = deleted.map_or(&[][..], Vec::as_slice);
            for place in &series.chunks {
                let chunk = segments.chunk(*place).map_err(of_file(""))?;
                self.chunk(&series, &chunk, deleted).map_err(of_file(""))?;
                if self.message.samples >= SAMPLES || self.message.len_bytes() >= MESSAGE_BYTES {
                    self.send()?;
                }
            }
        }
        Ok(())
    }

    fn chunk(
        &mut self,
        series: &Series,
        chunk: &[u8],
        deleted: &[(i64, i64)],
    ) -> std::result::Result<(), Why> {
        let broken = |why: &str| format!("a chunk of {:?}: {why}", series.labels);
        let (kind, chunk) = chunk.split_first().ok_or_else(|| broken("it is empty"))?;
        if HISTOGRAMS.contains(kind) {
            let count = chunk.first_chunk().copied().unwrap_or_default();
            self.histograms += u64::from(u16::from_be_bytes(count));
            let metric = series.labels.iter().find(|(name, _)| name == "__name__");
            let metric = metric.map_or_else(String::new, |(_, metric)| metric.clone());
            self.histogram_metrics.insert(metric);
            return Ok(());
        }
        if *kind != FLOATS {
            return Err(broken(&format!("its kind is {kind}")));
        }
        let mut samples = Vec::new();
        chunk::decode(chunk, &mut samples).ok_or_else(|| broken("it is damaged"))?;
        let all = samples.len();
        let is_deleted = |at: i64| deleted.iter().any(|(from, to)| (*from..=*to).contains(&at));
        samples.retain(|(at, _)| !is_deleted(*at));
        self.deleted += (all - samples.len()) as u64;
        if !samples.is_empty() {
            self.message.put(&series.labels, &samples);
        }
        Ok(())
    }

    /// Sends the message until the server is not busy.
    fn send(&mut self) -> Result<()> {
        let samples = self.message.samples;
        self.rate.take(samples);
        let packed = self.message.take();
        let packed = packed.map_err(|error| Error::Failed(error.to_string()))?;
        for tries in 0..TRIES {
            match self.http.post(packed.clone(), &REMOTE_WRITE)? {
                None => {
                    self.written += samples as u64;
                    self.progress.add(samples);
                    return Ok(());
                }
                Some((StatusCode::SERVICE_UNAVAILABLE, why)) => {
                    if tries == 0 {
                        let text = format!("the target is busy: {}; retrying", why.trim());
                        self.progress.say(&text);
                    }
                    thread::sleep(Duration::from_secs(1));
                }
                Some((status, body)) => return self.refused(samples, status, &body),
            }
        }
        Err(Error::Failed(format!(
            "the target was busy for {TRIES} seconds"
        )))
    }

    /// Some of the samples were refused, or all of them.
    fn refused(&mut self, samples: usize, status: StatusCode, body: &str) -> Result<()> {
        let refused = counts_of(body).filter(|_| status == StatusCode::BAD_REQUEST);
        let Some((refused, kept)) = refused.filter(|_| self.options.skip_bad) else {
            return Err(self.http.refused(status, body));
        };
        if self.refused < NAMED as u64 {
            self.progress.say(body.trim());
        }
        self.refused += refused;
        self.written += kept;
        self.progress.add(samples);
        Ok(())
    }

    fn finish(self, blocks: usize) -> Outcome {
        self.progress.finish();
        eprintln!("{} samples of {blocks} blocks written", self.written);
        for (count, what) in [
            (self.deleted, "deleted samples were left out"),
            (self.refused, "samples were refused"),
            (self.histograms, "native histograms were not taken"),
        ] {
            if count > 0 {
                eprintln!("{count} {what}");
            }
        }
        for metric in self.histogram_metrics.iter().take(NAMED) {
            eprintln!("native histograms: {metric}");
        }
        let more = self.histogram_metrics.len().saturating_sub(NAMED);
        if more > 0 {
            eprintln!("native histograms: {more} metrics more");
        }
        match self.refused + self.histograms {
            0 => Outcome::Complete,
            _ => Outcome::Incomplete,
        }
    }
}

/// How many samples an answer says were refused and kept.
fn counts_of(body: &str) -> Option<(u64, u64)> {
    let text: Option<String> = serde_json::from_str(body)
        .ok()
        .and_then(|body: Value| Some(body["error"].as_str()?.to_owned()));
    let text = text.as_deref().unwrap_or(body);
    let (refused, rest) = text.split_once(" refused, ")?;
    let (kept, _) = rest.split_once(" kept")?;
    Some((refused.trim().parse().ok()?, kept.trim().parse().ok()?))
}
