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
    /// none does, 1 if some do, 2 if rows could not be compared, or no rule has any.
    Verify(Verify),
    /// Have rows of recording rules computed again, also those of before the rule was
    /// there; exit status 0 if the server does it, 2 if not, or if no rule can be.
    Backfill(Backfill),
}

/// Options of `latewood rules verify`.
#[derive(Args, Debug)]
pub(crate) struct Verify {
    /// The first time, as 2026-01-31T00:00:00Z or in seconds since 1970
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    from: String,
    /// The last time [default: now]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    to: Option<String>,
    #[command(flatten)]
    asked: Asked,
}

/// Options of `latewood rules backfill`.
#[derive(Args, Debug)]
pub(crate) struct Backfill {
    /// The first time, as 2026-01-31T00:00:00Z or in seconds since 1970
    #[arg(
        long,
        value_name = "TIME",
        allow_negative_numbers = true,
        required_unless_present = "cancel"
    )]
    from: Option<String>,
    /// The last time [default: now]
    #[arg(long, value_name = "TIME", allow_negative_numbers = true)]
    to: Option<String>,
    /// Drop all steps that wait to be computed because of a backfill, or because the
    /// server missed them; rows that are not computed yet stay as they are
    #[arg(long, conflicts_with_all = ["from", "to"])]
    cancel: bool,
    #[command(flatten)]
    asked: Asked,
}

/// Which rules, and of which server.
#[derive(Args, Debug)]
struct Asked {
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
    let done = match options {
        Rules::Verify(Verify { from, to, asked }) => {
            let times = Times {
                from: Some(from),
                to: to.as_ref(),
            };
            asked.ask("verify", &times, false)
        }
        Rules::Backfill(Backfill {
            from,
            to,
            cancel,
            asked,
        }) => {
            let times = Times {
                from: from.as_ref(),
                to: to.as_ref(),
            };
            asked.ask("backfill", &times, *cancel)
        }
    };
    match done.and_then(|last| outcome(&last, options)) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(DIFFERS),
        Err(why) => failed(&why),
    }
}

/// What the last line of an answer says: how many rows differ.
fn outcome(last: &Value, options: &Rules) -> Result<u64, String> {
    if let Value::String(error) = &last["error"] {
        return Err(error.clone());
    }
    let (rules, differences) = (last["rules"].as_u64(), last["differences"].as_u64());
    let what = match options {
        Rules::Backfill(Backfill { cancel: true, .. }) => {
            return rules.map(|_| 0).ok_or_else(broken);
        }
        Rules::Backfill(_) => "computed again",
        Rules::Verify(_) => "compared",
    };
    if rules.ok_or_else(broken)? == 0 {
        let mut why = format!("no rule can be {what}");
        for one in last["skipped"].as_array().into_iter().flatten() {
            let text = |name: &str| one[name].as_str().unwrap_or_default();
            why.push_str(&format!("\n  {}: {}", text("rule"), text("reason")));
        }
        return Err(why);
    }
    match options {
        Rules::Backfill(_) => Ok(0),
        Rules::Verify(_) => differences.ok_or_else(broken),
    }
}

fn broken() -> String {
    "the server broke its answer off; its log says why".to_owned()
}

/// Which rows.
struct Times<'a> {
    from: Option<&'a String>,
    to: Option<&'a String>,
}

impl Asked {
    /// Prints the lines of the answer. Returns the last one.
    fn ask(&self, what: &str, times: &Times<'_>, cancels: bool) -> Result<Value, String> {
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
            .body(self.form(times, cancels));
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

    fn form(&self, times: &Times<'_>, cancels: bool) -> String {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(times.from.map(|from| ("from", from)));
        form.extend_pairs(times.to.map(|to| ("to", to)));
        form.extend_pairs(cancels.then_some(("cancel", "true")));
        form.extend_pairs(self.group.iter().map(|name| ("rule_group[]", name)));
        form.extend_pairs(self.rule.iter().map(|name| ("rule_name[]", name)));
        form.finish()
    }
}

async fn print(mut answer: Response) -> Result<Value, String> {
    let (mut text, mut last) = (Vec::new(), None);
    while let Some(more) = answer.chunk().await.map_err(|_| broken())? {
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
    last.ok_or_else(broken)
}

/// What the server says why it does not.
async fn refusal(answer: Response) -> String {
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    let told: Option<Value> = serde_json::from_str(&text).ok();
    let told = told.and_then(|told| Some(told["error"].as_str()?.to_owned()));
    told.unwrap_or_else(|| format!("the server answered {status}"))
}
