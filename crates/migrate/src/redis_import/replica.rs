//! What a source sends to a replica: a snapshot, and every command since.
//!
//! ```text
//! AUTH..., REPLCONF capa eof, PSYNC ? -1
//! +FULLRESYNC id offset    then  $length  or  $EOF:mark,  the bytes of dump.rdb, the mark
//! *3 $6 TS.ADD ...         and REPLCONF ACK offset from here, at least once a minute
//! ```
//! Source: Redis' `replication.c`. Commands are read as they come, and only what they touch is kept,
//! however slow the target is. While the snapshot is copied, they wait in the source, which ends the connection
//! where `client-output-buffer-limit replica` says so.

use super::touched::{Times, Touched};
use crate::args::RedisImport;
use crate::connect::{channel, is_silence};
use crate::error::{Doing, Error, Result};
use latewood_rdb::File;
use latewood_tls::Duplex;
use latewood_wire::resp::{Limits, Parsed, Parser, encode_command};
use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of a line of the handshake.
const LINE_BYTES_MAX: u64 = 1024;
/// Time that a source may take until it sends more of a snapshot.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(300);
/// Time between two acknowledgements.
const ACK_EVERY: Duration = Duration::from_secs(1);
/// The same until the first command: a source begins to send them at the first one after it has seen that
/// its snapshot was sent.
const FIRST_ACK_EVERY: Duration = Duration::from_millis(100);
/// Bytes of a mark behind a snapshot.
const MARK_BYTES: usize = 40;
/// As large as a source may send them.
const LIMITS: Limits = Limits {
    arguments_max: 1 << 24,
    argument_bytes_max: 512 << 20,
    command_bytes_max: 1 << 31,
    inline_bytes_max: 64 << 10,
    authenticated: true,
};

/// A source that sends a snapshot.
pub(super) struct Replica {
    pub(super) file: File<BufReader<Patient>>,
    /// Where in the source's stream of commands the snapshot is.
    offset: u64,
    /// Whether a mark follows the snapshot.
    is_marked: bool,
    place: String,
}

/// A connection whose reads wait as long as a source may be silent while it writes a snapshot.
pub(super) struct Patient {
    stream: Box<dyn Duplex>,
    /// When the source last heard something, once the snapshot comes: until then it waits for silence.
    heard: Option<Instant>,
}

impl Read for Patient {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let began = Instant::now();
        loop {
            // As a replica that loads: it is not taken for one that died.
            if self.heard.is_some_and(|at| at.elapsed() >= ACK_EVERY) {
                self.stream.write_all(b"\n")?;
                self.stream.flush()?;
                self.heard = Some(Instant::now());
            }
            match self.stream.read(into) {
                Err(error) if is_silence(&error) && began.elapsed() < SNAPSHOT_PATIENCE => {}
                read => return read,
            }
        }
    }
}

impl Replica {
    /// Asks the source for a snapshot.
    ///
    /// # Errors
    /// When it cannot be reached, or refuses.
    pub(super) fn open(options: &RedisImport) -> Result<Self> {
        let place = format!("the source {}", options.from);
        let doing = || format!("read a snapshot of {place}");
        let stream = channel(&place, &options.from, &options.tls)?;
        let heard = None;
        let mut stream = BufReader::new(Patient { stream, heard });
        let mut handshake: Vec<Vec<&str>> = Vec::new();
        if let Some(password) = &options.login.password {
            let user = options.login.user.as_deref();
            let words = ["AUTH"].into_iter().chain(user).chain([password.as_str()]);
            handshake.push(words.collect());
        }
        handshake.push(vec!["REPLCONF", "capa", "eof"]);
        handshake.push(vec!["PSYNC", "?", "-1"]);
        let mut answer = String::new();
        for words in handshake {
            send(&mut *stream.get_mut().stream, &words).doing(doing())?;
            answer = line(&mut stream).doing(doing())?;
            if !answer.starts_with('+') {
                return Err(Error::Refused {
                    server: place,
                    command: words[0].to_owned(),
                    text: answer.trim_start_matches('-').to_owned(),
                });
            }
        }
        let offset = answer.rsplit(' ').next().and_then(|word| word.parse().ok());
        // A length, or a mark that follows the snapshot: it says itself where it ends.
        let head = line(&mut stream).doing(doing())?;
        let Some((offset, kind)) = offset.zip(head.strip_prefix('$')) else {
            return Err(Error::Reply {
                server: place,
                command: "PSYNC".to_owned(),
            });
        };
        stream.get_mut().heard = Some(Instant::now());
        let is_marked = kind.starts_with("EOF:");
        let file = File::open(stream);
        let file = file.map_err(|error| Error::Failed(format!("{}: {error}", doing())))?;
        Ok(Self {
            file,
            offset,
            is_marked,
            place,
        })
    }

    /// The commands of a database behind the snapshot, which must have been read whole.
    ///
    /// # Errors
    /// When the connection is lost.
    pub(super) fn commands(self, db: u16) -> Result<Commands> {
        let mut stream = self.file.into_inner();
        if self.is_marked {
            let mut mark = [0; MARK_BYTES];
            let read = stream.read_exact(&mut mark);
            read.doing(format!("read a snapshot of {}", self.place))?;
        }
        let shared = Arc::new(Mutex::new(Shared::default()));
        let listener = Listener {
            buffer: stream.buffer().to_vec(),
            stream: stream.into_inner().stream,
            offset: self.offset,
            wanted: db.to_string(),
            db: "0".to_owned(),
            shared: Arc::clone(&shared),
        };
        let begin = std::thread::Builder::new().name("replica".to_owned());
        let begun = begin.spawn(move || listener.run());
        begun.doing("start a thread that reads commands")?;
        Ok(Commands { shared })
    }
}

/// The next line that is not empty: a primary sends empty ones while it prepares.
fn line(stream: &mut impl BufRead) -> io::Result<String> {
    loop {
        let mut line = String::new();
        let read = stream.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)?;
        let text = line.trim();
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if !text.is_empty() {
            return Ok(text.to_owned());
        }
    }
}

fn send(stream: &mut dyn Duplex, words: &[&str]) -> io::Result<()> {
    let mut command = Vec::new();
    encode_command(&mut command, words);
    stream.write_all(&command)?;
    stream.flush()
}

/// What the commands of a source touch, while they come.
pub(super) struct Commands {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Default)]
struct Shared {
    touched: Touched,
    /// Series of the import.
    known: HashSet<Vec<u8>>,
    /// Why no more commands come.
    end: Option<String>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Commands {
    /// Says which series the import has.
    pub(super) fn know<'a>(&self, keys: impl Iterator<Item = &'a Vec<u8>>) {
        let mut shared = lock(&self.shared);
        for key in keys {
            if !shared.known.contains(key) {
                shared.known.insert(key.clone());
            }
        }
    }

    /// Whether more commands come, and none since the last call of [`Commands::take`] touched a key that
    /// `is_ours`.
    pub(super) fn is_quiet(&self, is_ours: impl Fn(&[u8], &Times) -> bool) -> bool {
        let shared = lock(&self.shared);
        let mut series = shared.touched.series.iter();
        shared.end.is_none()
            && !shared.touched.all
            && !series.any(|(key, times)| is_ours(key, times))
    }

    /// What was touched since the last call.
    ///
    /// # Errors
    /// Why no more commands come.
    pub(super) fn take(&self) -> std::result::Result<Touched, String> {
        let mut shared = lock(&self.shared);
        match &shared.end {
            Some(why) => Err(why.clone()),
            None => Ok(std::mem::take(&mut shared.touched)),
        }
    }
}

/// Reads commands on a thread of its own, until the connection or the import ends.
struct Listener {
    stream: Box<dyn Duplex>,
    /// Bytes behind the last whole command.
    buffer: Vec<u8>,
    offset: u64,
    /// The database that is copied, and the one of the next command.
    wanted: String,
    db: String,
    shared: Arc<Mutex<Shared>>,
}

impl Listener {
    fn run(mut self) {
        let end = self.listen();
        let why = end.map_or_else(|error| error.to_string(), |()| "it closed".to_owned());
        lock(&self.shared).end = Some(why);
    }

    fn listen(&mut self) -> io::Result<()> {
        let (mut parser, mut piece) = (Parser::new(), vec![0; 64 << 10]);
        let mut acked: Option<Instant> = None;
        let mut ack_every = FIRST_ACK_EVERY;
        // The last one is this thread's own.
        while Arc::strong_count(&self.shared) > 1 {
            let asked = self.note(&mut parser)?;
            if asked || acked.is_none_or(|at| at.elapsed() >= ack_every) {
                let offset = self.offset.to_string();
                send(&mut *self.stream, &["REPLCONF", "ACK", &offset])?;
                acked = Some(Instant::now());
            }
            match self.stream.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(read) => {
                    self.buffer.extend_from_slice(&piece[..read]);
                    ack_every = ACK_EVERY;
                }
                Err(error) if is_silence(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Notes the whole commands of the buffer; whether one of them asks for an acknowledgement.
    fn note(&mut self, parser: &mut Parser) -> io::Result<bool> {
        let (mut at, mut asks) = (0, false);
        let mut shared = lock(&self.shared);
        loop {
            let rest = &self.buffer[at..];
            match parser.parse(rest, &LIMITS).map_err(io::Error::other)? {
                Parsed::Incomplete { .. } => break,
                Parsed::Empty { consumed } => at += consumed,
                Parsed::Command { consumed } => {
                    let words: Vec<&[u8]> = parser.command().args(rest).collect();
                    let name = words[0].to_ascii_uppercase();
                    asks |= name == b"REPLCONF";
                    if name == b"SELECT" {
                        let db = words.get(1).copied().unwrap_or_default();
                        self.db = String::from_utf8_lossy(db).into_owned();
                    }
                    if self.db == self.wanted || matches!(&*name, b"FLUSHALL" | b"SWAPDB") {
                        let Shared { touched, known, .. } = &mut *shared;
                        touched.note(&words, |key| known.contains(key));
                    }
                    at += consumed;
                }
            }
        }
        drop(shared);
        self.offset += at as u64;
        self.buffer.drain(..at);
        Ok(asks)
    }
}
