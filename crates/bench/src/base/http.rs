//! A small HTTP client for servers on this machine: one connection, kept open, no encryption.

use std::time::Duration;

use serde_json::Value;

use crate::base::address::Address;
use crate::base::error::{Doing, Error, Result};

/// Longer than any load or query here may take.
const PATIENCE: Duration = Duration::from_secs(600);
const ANSWER_BYTES_MAX: u64 = 1 << 30;

#[derive(Debug)]
pub(crate) struct Http {
    agent: ureq::Agent,
    base: String,
}

impl Http {
    /// A client of the server at `address`; connects with the first request.
    pub(crate) fn new(address: &Address) -> Self {
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(PATIENCE))
            .http_status_as_error(false);
        Http {
            agent: config.build().new_agent(),
            base: format!("http://{address}"),
        }
    }

    /// Gets `path` with the parameters `query`; returns the text of the answer.
    pub(crate) fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<String> {
        let request = self.agent.get(format!("{}{path}", self.base));
        text(path, request.query_pairs(query.iter().copied()).call())
    }

    /// As `get`, read as JSON.
    pub(crate) fn get_json(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        serde_json::from_str(&self.get(path, query)?).doing(path)
    }

    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<()> {
        let mut request = self.agent.post(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        text(path, request.send(body)).map(drop)
    }
}

type Answer = std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>;

fn text(path: &str, answer: Answer) -> Result<String> {
    let mut answer = answer.doing(path)?;
    let status = answer.status();
    let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX);
    let text = body.read_to_string().doing(path)?;
    if status.is_success() {
        return Ok(text);
    }
    let said: String = text.chars().take(500).collect();
    Err(Error::new(format!("{path} was answered {status}: {said}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn answers_and_refusals() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let there = Address::loopback(listener.local_addr().unwrap().port());
        let answer = |text: &'static str| {
            let listener = listener.try_clone().unwrap();
            std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]).unwrap();
                stream.write_all(text.as_bytes()).unwrap();
            });
        };
        answer("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}");
        let json = Http::new(&there).get_json("/x", &[("q", "a b")]).unwrap();
        assert_eq!(json["a"], 1);
        answer("HTTP/1.1 400 Bad Request\r\nContent-Length: 8\r\n\r\ntoo late");
        let error = Http::new(&there).post("/w", &[], b"x").unwrap_err();
        assert_eq!(
            error.to_string(),
            "/w was answered 400 Bad Request: too late"
        );
    }
}
