//! Alerts are told to Alertmanagers, by version 2 of their API.
//!
//! Each Alertmanager has a queue and a thread of its own, so that one that hangs keeps nobody
//! waiting. A queue that is full loses its oldest alerts, which are counted; whatever fires is told
//! again after a while. What an alert says is made when it is put into the queues.
//!
//! Tested below and by `tests/clients/test_rules.py`.

use super::group::LiveGroup;
use super::stamp::rfc3339_ms;
use crate::state::Rules as Settings;
use latewood_promql::labels::Labels;
use latewood_rules::evaluate::{Active, State};
use parking_lot::{Condvar, Mutex};
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Alerts that wait for one Alertmanager.
pub(crate) const QUEUE_MAX: usize = 10_000;
/// Alerts of one request.
const BATCH_MAX: usize = 256;
/// How long an Alertmanager may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// How long a server that stops tells what waits.
const STOP_MAX: Duration = Duration::from_secs(2);
/// How much longer than it is told an alert lasts: two notifications may be lost.
const LASTS: i64 = 4;

/// The Alertmanagers of a server.
pub(crate) struct Notifier {
    external_labels: Labels,
    external_url: String,
    resend_delay_ms: i64,
    targets: Vec<Target>,
}

/// An Alertmanager.
pub(crate) struct Target {
    /// Where it is told, without a password.
    pub(crate) url: String,
    endpoint: Url,
    queue: Mutex<Queue>,
    changed: Condvar,
    /// Told when the server stops.
    stops: Notify,
    pub(crate) sent: AtomicU64,
    pub(crate) errors: AtomicU64,
    pub(crate) dropped: AtomicU64,
    /// How long requests that succeeded took, together: nanoseconds, and their number.
    pub(crate) took_ns: AtomicU64,
    pub(crate) requests: AtomicU64,
}

#[derive(Default)]
struct Queue {
    alerts: VecDeque<Arc<Value>>,
    stops_at: Option<Instant>,
}

impl Notifier {
    /// No alert yet.
    ///
    /// # Errors
    /// Which URL is none.
    pub(crate) fn new(settings: &Settings, external_labels: &Labels) -> Result<Self, String> {
        let targets = settings.alertmanagers.iter().map(|url| Target::new(url));
        let url = &settings.external_url;
        if !url.is_empty() && Url::parse(url).is_err() {
            return Err(format!("external-url: {url:?} is no URL"));
        }
        Ok(Self {
            external_labels: external_labels.clone(),
            external_url: url.trim_end_matches('/').to_owned(),
            resend_delay_ms: settings.resend_delay_ms as i64,
            targets: targets.collect::<Result<_, _>>()?,
        })
    }

    /// The Alertmanagers.
    pub(crate) fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Queues those of the alerts of a rule that are to be told at `at_ms`; `sent` remembers when
    /// each was.
    pub(super) fn notify(
        &self,
        group: &LiveGroup,
        rule: usize,
        alerts: &[Active],
        sent: &mut BTreeMap<Labels, i64>,
        at_ms: i64,
    ) {
        sent.retain(|labels, last_ms| {
            let found = alerts.binary_search_by(|alert| alert.labels.cmp(labels));
            // After a clock was set back.
            found.is_ok() && *last_ms <= at_ms
        });
        if self.targets.is_empty() {
            return;
        }
        let lasts_ms = LASTS * self.resend_delay_ms.max(group.interval_ms());
        let rule = &group.group.rules[rule];
        let link = self.link(&rule.query.expr().to_string());
        let mut told = Vec::new();
        for alert in alerts {
            let last_ms = sent.get(&alert.labels).copied();
            if self.is_due(alert, last_ms, at_ms) {
                sent.insert(alert.labels.clone(), at_ms);
                let ends_ms = alert.resolved_at_ms.unwrap_or(at_ms + lasts_ms);
                told.push(Arc::new(self.message(alert, ends_ms, &link)));
            }
            if told.len() == BATCH_MAX {
                self.put(&mut told);
            }
        }
        self.put(&mut told);
    }

    /// Queues alerts for each Alertmanager.
    fn put(&self, told: &mut Vec<Arc<Value>>) {
        for target in self.targets.iter().filter(|_| !told.is_empty()) {
            target.put(told);
        }
        told.clear();
    }

    fn is_due(&self, alert: &Active, last_ms: Option<i64>, at_ms: i64) -> bool {
        if alert.state == State::Pending {
            return false;
        }
        let Some(last_ms) = last_ms else {
            // Nobody needs to hear of the end of what was never told; Prometheus tells it.
            return true;
        };
        let is_news = alert.resolved_at_ms.is_some_and(|at_ms| at_ms > last_ms);
        is_news || last_ms + self.resend_delay_ms < at_ms
    }

    /// An alert as the API has it.
    fn message(&self, alert: &Active, ends_ms: i64, link: &str) -> Value {
        let mut labels: Map<String, Value> = alert
            .labels
            .iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect();
        for (name, value) in self.external_labels.iter() {
            let held = labels.entry(name).or_insert_with(|| value.into());
            debug_assert!(held.is_string());
        }
        let annotations = alert.annotations.iter();
        let annotations: Map<String, Value> = annotations
            .filter(|(_, text)| !text.is_empty())
            .map(|(name, text)| (name.clone(), text.as_str().into()))
            .collect();
        let starts_ms = alert.fired_at_ms.unwrap_or(alert.active_at_ms);
        json!({
            "labels": labels,
            "annotations": annotations,
            "startsAt": rfc3339_ms(starts_ms),
            "endsAt": rfc3339_ms(ends_ms),
            "generatorURL": link,
        })
    }

    /// Where an expression is shown as a table.
    fn link(&self, expression: &str) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("g0.expr", expression);
        query.append_pair("g0.tab", "1");
        format!("{}/graph?{}", self.external_url, query.finish())
    }

    /// Ends soon, with a last word to each.
    pub(super) fn stop(&self) {
        for target in &self.targets {
            target.queue.lock().stops_at = Some(Instant::now() + STOP_MAX);
            target.changed.notify_all();
            target.stops.notify_one();
        }
    }
}

impl Target {
    fn new(url: &str) -> Result<Self, String> {
        // A URL that is none may hold a password all the same.
        let wrong = |why: &str| format!("alertmanager: a URL is wrong: {why}");
        let mut endpoint = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
        if !matches!(endpoint.scheme(), "http" | "https") || endpoint.host().is_none() {
            return Err(wrong("expected http://HOST:PORT or https://HOST:PORT"));
        }
        let prefix = endpoint.path().trim_end_matches('/').to_owned();
        endpoint.set_path(&format!("{prefix}/api/v2/alerts"));
        let mut shown = endpoint.clone();
        // Both have a host.
        let _ = (shown.set_username(""), shown.set_password(None));
        Ok(Self {
            url: shown.to_string(),
            endpoint,
            queue: Mutex::default(),
            changed: Condvar::new(),
            stops: Notify::new(),
            sent: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            took_ns: AtomicU64::new(0),
            requests: AtomicU64::new(0),
        })
    }

    /// Alerts that wait.
    pub(crate) fn queued(&self) -> usize {
        self.queue.lock().alerts.len()
    }

    fn put(&self, alerts: &[Arc<Value>]) {
        let mut queue = self.queue.lock();
        queue.alerts.extend(alerts.iter().cloned());
        let over = queue.alerts.len().saturating_sub(QUEUE_MAX);
        queue.alerts.drain(..over);
        drop(queue);
        self.changed.notify_all();
        if over > 0 {
            self.dropped.fetch_add(over as u64, Ordering::Relaxed);
            let alertmanager = &self.url;
            tracing::warn!(
                alertmanager,
                over,
                "too many alerts wait; the oldest are dropped"
            );
        }
    }

    /// The next alerts to tell, and how long that may take; `None` once the server has stopped.
    fn next(&self) -> Option<(Vec<Arc<Value>>, Duration)> {
        let mut queue = self.queue.lock();
        loop {
            let left = match queue.stops_at {
                Some(at) => at.saturating_duration_since(Instant::now()),
                None => ANSWER_MAX,
            };
            if queue.stops_at.is_some() && (queue.alerts.is_empty() || left.is_zero()) {
                return None;
            }
            if !queue.alerts.is_empty() {
                let some = queue.alerts.len().min(BATCH_MAX);
                return Some((queue.alerts.drain(..some).collect(), left));
            }
            self.changed.wait(&mut queue);
        }
    }

    /// Tells alerts until the server stops.
    ///
    /// # Errors
    /// Where there is no client of HTTP.
    pub(crate) fn run(&self) -> io::Result<()> {
        latewood_tls::install_provider();
        let client = Client::builder().redirect(Policy::none()).build();
        let client = client.map_err(io::Error::other)?;
        let runtime = latewood_tls::runtime()?;
        while let Some((alerts, longest)) = self.next() {
            let count = alerts.len() as u64;
            let begun = Instant::now();
            let told = runtime.block_on(async {
                tokio::select! {
                    told = self.tell(&client, &alerts, longest) => told,
                    () = self.has_stopped() => Err("the server stops".to_owned()),
                }
            });
            match told {
                Ok(()) => {
                    let took_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    self.took_ns.fetch_add(took_ns, Ordering::Relaxed);
                    self.requests.fetch_add(1, Ordering::Relaxed);
                    self.sent.fetch_add(count, Ordering::Relaxed);
                }
                Err(why) => {
                    self.errors.fetch_add(count, Ordering::Relaxed);
                    self.dropped.fetch_add(count, Ordering::Relaxed);
                    let alertmanager = &self.url;
                    tracing::warn!(alertmanager, count, why, "alerts could not be told");
                }
            }
        }
        self.dropped
            .fetch_add(self.queued() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Comes some time after a stop.
    async fn has_stopped(&self) {
        self.stops.notified().await;
        tokio::time::sleep(STOP_MAX).await;
    }

    async fn tell(
        &self,
        client: &Client,
        alerts: &[Arc<Value>],
        longest: Duration,
    ) -> Result<(), String> {
        let alerts: Vec<&Value> = alerts.iter().map(|alert| &**alert).collect();
        let body = serde_json::to_vec(&alerts).map_err(|error| error.to_string())?;
        // The client takes user and password out of the URL.
        let request = client
            .post(self.endpoint.clone())
            .header("Content-Type", "application/json")
            .timeout(longest)
            .body(body);
        let answer = request.send().await.map_err(|error| reason(&error))?;
        if answer.status().is_success() {
            Ok(())
        } else {
            Err(format!("it answered {}", answer.status()))
        }
    }
}

/// The error at the bottom: those above have the URL, with its password.
fn reason(error: &reqwest::Error) -> String {
    let mut bottom: &(dyn Error + 'static) = error;
    while let Some(source) = bottom.source() {
        bottom = source;
    }
    if error.is_timeout() {
        "it did not answer in time".to_owned()
    } else if error.source().is_none() {
        "the request failed".to_owned()
    } else {
        latewood_tls::with_hint(bottom)
    }
}
