//! Sends pieces to a server and reports the results.

use super::scan::Piece;
use crate::args::InfluxImport;
use crate::error::{Error, Result};
use crate::http::{Http, TRIES};
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::rate::Rate;
use reqwest::StatusCode;
use serde_json::Value;
use std::thread;
use std::time::Duration;

/// Skipped lines that are shown; the others are counted.
const NAMED: u64 = 20;
/// The target and the results.
pub(super) struct Sender<'a> {
    options: &'a InfluxImport,
    http: Http,
    rate: Rate,
    progress: Progress,
    written: u64,
    texts: u64,
    bad: u64,
}

/// The result of one piece.
enum Reply {
    /// Everything was stored.
    Kept,
    /// The number of samples or lines that were not stored, and the first of
    /// them, by line of the piece, with reasons.
    Refused(u64, Vec<(usize, String)>),
    /// The server is temporarily unavailable, with the reason.
    Busy(String),
}

impl<'a> Sender<'a> {
    /// Connects to the server.
    ///
    /// # Errors
    /// When it does not respond or refuses the user.
    pub(super) fn open(options: &'a InfluxImport) -> Result<Self> {
        let lines = &options.lines;
        let mut http = Http::new(&options.to, "/write", &options.login, &lines.tls)?;
        let mut query = http.url().query_pairs_mut();
        // What is made of JSON lines is in milliseconds.
        let is_made = options.measurement.is_some();
        query.append_pair("precision", if is_made { "ms" } else { &options.precision });
        query.extend_pairs(options.db.as_ref().map(|db| ("db", db)));
        drop(query);
        let mut sender = Self {
            options,
            http,
            rate: Rate::new(lines.rate),
            progress: Progress::new("importing", None),
            written: 0,
            texts: 0,
            bad: 0,
        };
        // Check the server and the user before reading a file.
        sender
            .keep(b"")
            .map_err(|error| sender.http.explained(error))?;
        Ok(sender)
    }

    /// Sends one piece.
    ///
    /// # Errors
    /// At a refused line, unless those are skipped; when the server fails.
    pub(super) fn send(&mut self, piece: &Piece) -> Result<()> {
        let samples = piece.samples;
        let (mut dropped, mut refused) = (0, Vec::new());
        if samples > 0 {
            self.rate
                .take(usize::try_from(samples).unwrap_or(usize::MAX));
            (dropped, refused) = self.keep(&piece.text)?;
        }
        let kept = samples.saturating_sub(dropped);
        self.written += kept;
        self.texts += piece.texts;
        self.progress
            .add(usize::try_from(kept).unwrap_or(usize::MAX));
        let of_file = |line: usize| line.checked_sub(1).and_then(|at| piece.starts.get(at));
        let refused = refused
            .into_iter()
            .map(|(line, why)| (of_file(line).copied().unwrap_or(0), why));
        let mut bad: Vec<_> = piece.bad.iter().cloned().chain(refused).collect();
        bad.sort();
        self.left_out(&piece.name, dropped + piece.bad.len() as u64, &bad)
    }

    /// Adds the number of written samples to `error`.
    pub(super) fn stopped(&self, error: Error) -> Error {
        Error::Failed(format!("{error} ({} samples were written)", self.written))
    }

    /// Prints the summary.
    pub(super) fn finish(self) -> Outcome {
        self.progress.finish();
        eprintln!("{} samples written", self.written);
        for (count, what) in [
            (self.texts, "text values were not stored"),
            (self.bad, "lines or samples were skipped"),
        ] {
            if count > 0 {
                eprintln!("{count} {what}");
            }
        }
        match self.bad {
            0 => Outcome::Complete,
            _ => Outcome::Incomplete,
        }
    }

    /// Counts skipped lines and shows the first ones, or fails.
    fn left_out(&mut self, name: &str, count: u64, bad: &[(u64, String)]) -> Result<()> {
        for (line, reason) in bad {
            let text = format!("{name} line {line}: {reason}");
            if !self.options.lines.skip_bad {
                return Err(Error::Failed(text));
            }
            if self.bad < NAMED {
                self.progress.say(&text);
            }
            self.bad += 1;
        }
        self.bad += count.saturating_sub(bad.len() as u64);
        Ok(())
    }

    /// Sends until the server is not busy; returns the number of refusals and the
    /// first ones.
    fn keep(&mut self, text: &[u8]) -> Result<(u64, Vec<(usize, String)>)> {
        for tries in 0..TRIES {
            match self.post(text)? {
                Reply::Kept => return Ok((0, Vec::new())),
                Reply::Refused(count, lines) => return Ok((count, lines)),
                Reply::Busy(why) => {
                    if tries == 0 {
                        self.progress
                            .say(&format!("the target is busy: {why}; retrying"));
                    }
                    thread::sleep(Duration::from_secs(1));
                }
            }
        }
        Err(Error::Failed(format!(
            "the target was busy for {TRIES} seconds"
        )))
    }

    fn post(&self, text: &[u8]) -> Result<Reply> {
        let Some((status, body)) = self.http.post(text.to_vec(), &[])? else {
            return Ok(Reply::Kept);
        };
        read(status, &body).ok_or_else(|| self.http.refused(status, &body))
    }
}

/// Parses a response; `None` if neither a retry nor skipping lines would help.
fn read(status: StatusCode, body: &str) -> Option<Reply> {
    let body: Value = serde_json::from_str(body).ok()?;
    match status {
        StatusCode::SERVICE_UNAVAILABLE => Some(Reply::Busy(body["error"].as_str()?.to_owned())),
        StatusCode::BAD_REQUEST | StatusCode::FORBIDDEN => {
            let lines = body["lines"].as_array()?.iter().map(|line| {
                let number = usize::try_from(line["line"].as_u64()?).ok()?;
                Some((number, line["error"].as_str()?.to_owned()))
            });
            // Samples and unreadable lines; of an older server, `dropped` is that.
            let refused = body["refused"].as_u64().or(body["dropped"].as_u64());
            Some(Reply::Refused(refused?, lines.collect::<Option<_>>()?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let refused = r#"{"dropped":3,"lines":[{"line":2,"error":"no"},{"line":7,"error":"x"}]}"#;
        match read(StatusCode::BAD_REQUEST, refused) {
            Some(Reply::Refused(3, lines)) => {
                assert_eq!(lines, [(2, "no".to_owned()), (7, "x".to_owned())]);
            }
            _ => panic!("not read"),
        }
        let busy = r#"{"error":"the data is being loaded"}"#;
        assert!(matches!(
            read(StatusCode::SERVICE_UNAVAILABLE, busy),
            Some(Reply::Busy(_))
        ));
        // A password that is wrong, another program, and a precision it does not know.
        for (status, body) in [
            (StatusCode::UNAUTHORIZED, busy),
            (StatusCode::BAD_REQUEST, "not found"),
            (StatusCode::BAD_REQUEST, r#"{"error":"invalid precision"}"#),
            (StatusCode::INTERNAL_SERVER_ERROR, refused),
        ] {
            assert!(read(status, body).is_none(), "{status} {body}");
        }
    }
}
