//! Sends pieces to a server and reports the results.

use super::scan::Piece;
use crate::args::InfluxImport;
use crate::error::{Error, Result};
use crate::other_port;
use crate::outcome::Outcome;
use crate::progress::Progress;
use crate::rate::Rate;
use latewood_tls::{runtime, with_hint};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde_json::Value;
use std::thread;
use std::time::Duration;
use tokio::runtime::Runtime;

/// The port of a server named without one.
const PORT_DEFAULT: u16 = 8086;
/// Timeout of a request; longer than a server needs for one piece.
const PATIENCE: Duration = Duration::from_secs(600);
/// Attempts on a busy server, one second apart.
const TRIES: u32 = 60;
/// Skipped lines that are shown; the others are counted.
const NAMED: u64 = 20;
/// Longest response that is read.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// The target and the results.
pub(super) struct Sender<'a> {
    options: &'a InfluxImport,
    runtime: &'static Runtime,
    client: Client,
    url: Url,
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
        let failed = |reason: String| {
            let server = options.to.clone();
            Error::Connect { server, reason }
        };
        let (host, is_tls) = options.lines.tls.split(&options.to).map_err(failed)?;
        // Without TLS no authority is needed, and a small system may have none.
        let tls = if is_tls {
            options.lines.tls.config().map_err(failed)?
        } else {
            latewood_tls::nothing_trusted()
        };
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .timeout(PATIENCE)
            .redirect(Policy::none());
        let client = client.build().map_err(|error| failed(reason(&error)))?;
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| !port.ends_with(']'));
        let port = if has_port {
            String::new()
        } else {
            format!(":{PORT_DEFAULT}")
        };
        let address = format!("{host}{port}");
        let scheme = if is_tls { "https" } else { "http" };
        let url = format!("{scheme}://{address}/write");
        let url = Url::parse(&url).map_err(|error| failed(error.to_string()))?;
        let runtime = runtime().map_err(|error| failed(error.to_string()))?;
        let mut sender = Self {
            options,
            runtime,
            client,
            url: options.target(url),
            rate: Rate::new(options.lines.rate),
            progress: Progress::new("importing", None),
            written: 0,
            texts: 0,
            bad: 0,
        };
        // Check the server and the user before reading a file.
        sender.keep(b"").map_err(|error| match error {
            Error::Connect { server, reason } if !is_tls => Error::Connect {
                server,
                reason: other_port::as_other_than_http(&address[..]).unwrap_or(reason),
            },
            other => other,
        })?;
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
        let failed = |error: reqwest::Error| Error::Connect {
            server: self.options.to.clone(),
            reason: reason(&error),
        };
        let mut request = self.client.post(self.url.clone()).body(text.to_vec());
        if let Some(token) = self.options.token() {
            request = request.header("Authorization", token);
        }
        let answered = self.runtime.block_on(answer(request)).map_err(failed)?;
        let Some((status, body)) = answered else {
            return Ok(Reply::Kept);
        };
        read(status, &body).ok_or_else(|| {
            let said: String = body.chars().take(500).collect();
            Error::Refused {
                server: self.options.to.clone(),
                command: "/write".to_owned(),
                text: format!("{status}: {}", said.trim()),
            }
        })
    }
}

impl InfluxImport {
    /// The URL of writes with the parameters of each.
    fn target(&self, mut url: Url) -> Url {
        let mut query = url.query_pairs_mut();
        query.append_pair("precision", &self.precision);
        query.extend_pairs(self.db.as_ref().map(|db| ("db", db)));
        drop(query);
        url
    }

    /// The login, as a header has it.
    fn token(&self) -> Option<String> {
        let (user, password) = (&self.login.to_user, &self.login.to_password);
        if user.is_none() && password.is_none() {
            return None;
        }
        let user = user.as_deref().unwrap_or("default");
        let password = password.as_deref().unwrap_or_default();
        Some(format!("Token {user}:{password}"))
    }
}

/// Status and start of the body of a response; `None` for one that everything is stored.
async fn answer(request: reqwest::RequestBuilder) -> reqwest::Result<Option<(StatusCode, String)>> {
    let mut response = request.send().await?;
    let status = response.status();
    if status == StatusCode::NO_CONTENT {
        return Ok(None);
    }
    let mut body = Vec::new();
    while body.len() < ANSWER_BYTES_MAX
        && let Some(piece) = response.chunk().await?
    {
        body.extend_from_slice(&piece);
    }
    Ok(Some((status, String::from_utf8_lossy(&body).into_owned())))
}

/// Why a request failed: the error at the bottom, as those above only name the request.
fn reason(error: &reqwest::Error) -> String {
    let mut bottom: &(dyn std::error::Error + 'static) = error;
    while let Some(source) = bottom.source() {
        bottom = source;
    }
    with_hint(bottom)
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
