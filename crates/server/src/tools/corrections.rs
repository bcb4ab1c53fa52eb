//! `latewood rules verify` and `latewood rules backfill`: a running server compares the rows of
//! recording rules with what their expressions give, or computes them again.
//!
//! The work is the server's (`http/read/corrections.rs`); here its lines are printed. Tested by
//! `tests/http/corrections.rs`.

use super::output::{failed, say};
use clap::{Args, Subcommand};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use serde_json::Value;
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

/// Exit status where rows differ.
const DIFFERS: u8 = 1;
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Bytes of one line of an answer.
const LINE_BYTES_MAX: usize = 16 << 20;

/// What is asked of the rules of a server.
#[derive(Debug, Subcommand)]
pub(crate) enum Rules {
    /// Evaluate recording rules again and list the rows that differ; exit status 0 if
    /// none does, 1 if some do, 2 if not all could be compared.
    Verify(Asked),
    /// Have rows of recording rules computed again, also those of before the rule was
    /// there; exit status 0 if the server does it, 2 if not.
    Backfill(Asked),
}

/// Which rules, and which of their rows.
#[derive(Args, Debug)]
pub(crate) struct Asked {
    /// The first time, as 2026-01-31T00:00:00Z or in seconds since 1970
    #[arg(long, value_name = "TIME")]
    from: String,
    /// The last time [default: now]
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Only rules of groups of this name; may be given several times
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,
    /// Only rules of this name; may be given several times
    #[arg(long, value_name = "NAME")]
    rule: Vec<String>,
    /// HTTP address of the server
    #[arg(long, default_value = "http://127.0.0.1:8086")]
    url: String,
    /// User to log in as
    #[arg(
        long,
        value_name = "NAME",
        env = "LATEWOOD_RULES_USER",
        default_value = "default"
    )]
    user: String,
    /// Password of that user
    #[arg(long, env = "LATEWOOD_REQUIREPASS", hide_env_values = true)]
    password: Option<String>,
}

/// Runs `latewood rules`.
pub(crate) fn rules(options: &Rules) -> ExitCode {
    let (what, options) = match options {
        Rules::Verify(options) => ("verify", options),
        Rules::Backfill(options) => ("backfill", options),
    };
    match options.ask(what) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(DIFFERS),
        Err(why) => failed(&why),
    }
}

impl Asked {
    /// Prints the lines of the answer. Returns the differences that the last one counts.
    fn ask(&self, what: &str) -> Result<u64, String> {
        let url = self.url.trim_end_matches('/');
        let url = Url::parse(&format!("{url}/api/v1/rules/{what}"))
            .map_err(|error| format!("--url {}: {error}", self.url))?;
        latewood_tls::install_provider();
        let runtime = latewood_tls::runtime().map_err(|error| error.to_string())?;
        let client = Client::builder()
            .redirect(Policy::none())
            .connect_timeout(CONNECT_MAX)
            .build()
            .map_err(|error| error.to_string())?;
        let request = client
            .post(url)
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(self.form());
        let request = match &self.password {
            Some(password) => request.basic_auth(&self.user, Some(password)),
            None if self.user == "default" => request,
            None => request.basic_auth(&self.user, Some("")),
        };
        runtime.block_on(async {
            let answer = request.send().await;
            let answer = answer.map_err(|error| {
                let mut bottom: &(dyn Error + 'static) = &error;
                while let Some(source) = bottom.source() {
                    bottom = source;
                }
                let why = latewood_tls::with_hint(bottom);
                format!("cannot ask {}: {why}", self.url)
            })?;
            if answer.status().is_success() {
                print(answer).await
            } else {
                Err(refusal(answer).await)
            }
        })
    }

    fn form(&self) -> String {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("from", &self.from);
        form.extend_pairs(self.to.iter().map(|to| ("to", to)));
        form.extend_pairs(self.group.iter().map(|name| ("rule_group[]", name)));
        form.extend_pairs(self.rule.iter().map(|name| ("rule_name[]", name)));
        form.finish()
    }
}

async fn print(mut answer: Response) -> Result<u64, String> {
    let broken = "the server broke its answer off; its log says why";
    let (mut text, mut last) = (Vec::new(), None);
    while let Some(more) = answer.chunk().await.map_err(|_| broken.to_owned())? {
        text.extend_from_slice(&more);
        let end = text.iter().rposition(|byte| *byte == b'\n');
        let whole: Vec<u8> = text.drain(..end.map_or(0, |end| end + 1)).collect();
        for line in whole
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
        {
            say(&String::from_utf8_lossy(line));
            last = Some(line.to_vec());
        }
        if text.len() > LINE_BYTES_MAX {
            return Err("the answer has a line that is too long".to_owned());
        }
    }
    let last: Option<Value> = last.and_then(|line| serde_json::from_slice(&line).ok());
    let last = last.ok_or(broken)?;
    match (&last["error"], last["differences"].as_u64()) {
        (Value::String(error), _) => Err(error.clone()),
        (_, Some(differences)) => Ok(differences),
        (_, None) => Err(broken.to_owned()),
    }
}

/// What the server says why it does not.
async fn refusal(answer: Response) -> String {
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    let told: Option<Value> = serde_json::from_str(&text).ok();
    let told = told.and_then(|told| Some(told["error"].as_str()?.to_owned()));
    told.unwrap_or_else(|| format!("the server answered {status}"))
}
