//! The snapshot that a primary sends to a replica, as the first copy of `import redis --psync`.
//!
//! ```text
//! AUTH..., REPLCONF capa eof, PSYNC ? -1
//! +FULLRESYNC id offset    then  $length  or  $EOF:mark,  and the bytes of dump.rdb
//! ```
//! Source: Redis' `replication.c`. What clients write meanwhile is found by the comparison that
//! follows every copy, so the commands behind the snapshot are not read.

use super::{Entry, Import, Verdict};
use crate::args::RedisImport;
use crate::connect::{Channel, channel};
use crate::error::{Doing, Error, Result, shown};
use crate::keys::Keys;
use crate::rdb_file::{Sending, damaged};
use crate::redis_import::state::Step;
use crate::series::{Info, Shape};
use latewood_rdb::File;
use std::io::{BufRead, BufReader, Read};

/// Bytes of a line of the handshake.
const LINE_BYTES_MAX: u64 = 1024;

type Snapshot = File<BufReader<Box<dyn Channel>>>;

/// Asks the source for a snapshot.
fn open(options: &RedisImport) -> Result<Snapshot> {
    let place = format!("the source {}", options.from);
    let doing = || format!("read a snapshot of {place}");
    let mut stream = BufReader::new(channel(&place, &options.from, &options.tls)?);
    let mut handshake: Vec<Vec<&str>> = Vec::new();
    let (user, password) = (&options.login.user, &options.login.password);
    if let Some(password) = password {
        let user = user.as_deref();
        handshake.push(
            ["AUTH"]
                .into_iter()
                .chain(user)
                .chain([password.as_str()])
                .collect(),
        );
    }
    handshake.push(vec!["REPLCONF", "capa", "eof"]);
    handshake.push(vec!["PSYNC", "?", "-1"]);
    for words in handshake {
        let mut command = format!("*{}\r\n", words.len());
        for word in &words {
            command.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        let written = stream.get_mut().write_all(command.as_bytes());
        written.doing(doing())?;
        let answer = line(&mut stream).doing(doing())?;
        if !answer.starts_with('+') {
            return Err(Error::Refused {
                server: place,
                command: words[0].to_owned(),
                text: answer.trim_start_matches('-').to_owned(),
            });
        }
    }
    // A length, or a mark that follows the snapshot: it says itself where it ends.
    let head = line(&mut stream).doing(doing())?;
    if !head.starts_with('$') {
        return Err(Error::Reply {
            server: place,
            command: "PSYNC".to_owned(),
        });
    }
    File::open(stream).map_err(|error| Error::Failed(format!("{}: {error}", doing())))
}

/// The next line that is not empty: a primary sends empty ones while it prepares.
fn line(stream: &mut impl BufRead) -> std::io::Result<String> {
    loop {
        let mut line = String::new();
        let read = stream.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)?;
        let text = line.trim();
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if !text.is_empty() {
            return Ok(text.to_owned());
        }
    }
}

impl Import<'_> {
    /// Copies what the snapshot has of `keys`; the others, and those that may not be changed, are
    /// left to the copy by commands.
    pub(super) fn copy_snapshot(&mut self, keys: &Keys) -> Result<()> {
        let mut file = open(self.options)?;
        let of_file = |error: latewood_rdb::Error| Error::Failed(format!("the snapshot: {error}"));
        while let Some(entry) = file.next_entry().map_err(of_file)? {
            let latewood_rdb::Entry::Series { key, db, .. } = entry else {
                continue;
            };
            let is_wanted = db == u64::from(self.options.db) && keys.series.contains(&key);
            let step = self.state.step(&key);
            if !is_wanted || step == Some(Step::Copied) {
                continue;
            }
            let is_ours = step.is_some() || self.options.overwrite;
            let replaces = Info::ask(&mut self.target, &key)?.is_some();
            if replaces && !is_ours {
                continue;
            }
            self.state.note(&key, Step::Begun)?;
            let series = file.series();
            let (series, samples) =
                series.map_err(|error| damaged("the snapshot", &key, &error))?;
            let mut sending = Sending {
                target: &mut self.target,
                rate: &mut self.rate,
                from: "the snapshot",
                replaces,
            };
            let verdict = match sending.copy(&key, &series, samples)? {
                Ok(tally) => {
                    self.state.note(&key, Step::Copied)?;
                    self.progress.add(tally.samples as usize);
                    Verdict::Copied
                }
                Err(text) => {
                    self.progress.say(&format!("{}: {text}", shown(&key)));
                    Verdict::Refused(text)
                }
            };
            let entry = Entry {
                verdict,
                shape: Shape::default(),
                rules: Vec::new(),
            };
            self.series.insert(key, entry);
        }
        Ok(())
    }
}
