//! Answers that say what is wrong: a status, and JSON with a sentence.

use crate::intake::{Failure, Report};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use latewood_engine::{Error, ErrorKind, shown_key};
use serde::Serialize;
use serde_json::{Value, json};

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// A sentence.
    pub(crate) text: String,
    /// What Prometheus' API calls such an error, where the status does not say it.
    pub(crate) error_type: Option<&'static str>,
}

/// Seconds after which a refused sender tries again.
const RETRY_AFTER_S: &str = "1";

impl Answer {
    /// A refusal with this status and sentence.
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self {
            status,
            text: text.into(),
            error_type: None,
        }
    }

    /// 400 about a parameter, in the words of Prometheus.
    pub(crate) fn parameter(name: &str, wrong: impl std::fmt::Display) -> Self {
        Self::bad(format!("invalid parameter {name:?}: {wrong}"))
    }

    /// 400.
    pub(crate) fn bad(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// 503: the sender tries again.
    pub(crate) fn busy(text: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, text)
    }

    /// What the engine could not do.
    pub(crate) fn engine(error: &Error) -> Self {
        let status = match error.kind() {
            ErrorKind::OutOfMemory
            | ErrorKind::DiskBudget
            | ErrorKind::LogFull
            | ErrorKind::Halted
            | ErrorKind::Unknown
            | ErrorKind::Away
            | ErrorKind::AtOwner
            | ErrorKind::Io => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Invalid | ErrorKind::Limit => StatusCode::BAD_REQUEST,
            ErrorKind::NoSuchKey => StatusCode::NOT_FOUND,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }

    /// What kept samples from being applied, and how many, if anything did.
    pub(crate) fn failed(report: &Report) -> Option<Self> {
        let failure = report.failure.as_ref()?;
        let mut answer = match failure {
            Failure::Engine(error) => Self::engine(error),
            Failure::NoRoom(_) | Failure::Paused => Self::busy(failure.to_string()),
            Failure::Unknown(_) => {
                let text = format!("{failure} ({} samples)", report.unknown);
                return Some(Self::busy(text));
            }
        };
        let (kept, lost) = (report.samples, report.failed);
        answer.text += &format!(" ({kept} samples kept, {lost} not)");
        Some(answer)
    }

    /// This answer to a body whose end is damaged, but where samples before it
    /// found no memory or disk: they are worth sending again, and the damage is
    /// told of then.
    pub(crate) fn behind(self, report: &Report) -> Self {
        match Self::failed(report) {
            Some(failed) if failed.status == StatusCode::SERVICE_UNAVAILABLE => failed,
            _ => self,
        }
    }

    /// The same as [`Answer::engine`] for what the engine did not do with the series under `key`,
    /// which is named where it is damaged or not on this machine.
    pub(crate) fn of_series(error: &Error, key: &[u8]) -> Self {
        let mut answer = Self::engine(error);
        if error.is_damage() || error.is_away() {
            answer.text = format!("{error}, for key '{}'", shown_key(key));
        }
        answer
    }

    /// The name of the status as InfluxDB 2 has it.
    fn code(&self) -> &'static str {
        match self.status {
            StatusCode::BAD_REQUEST => "invalid",
            StatusCode::UNAUTHORIZED => "unauthorized",
            StatusCode::FORBIDDEN => "forbidden",
            StatusCode::NOT_FOUND => "not found",
            StatusCode::METHOD_NOT_ALLOWED => "method not allowed",
            StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::URI_TOO_LONG
            | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "request too large",
            StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported media type",
            StatusCode::SERVICE_UNAVAILABLE => "unavailable",
            _ => "internal error",
        }
    }

    fn json(&self) -> Value {
        json!({"code": self.code(), "message": self.text, "error": self.text})
    }

    /// Its body, which is JSON.
    pub(super) fn body(&self) -> String {
        json_text(&self.json()).1
    }
}

impl IntoResponse for Answer {
    /// The sentence stands under `error` for clients of InfluxDB 1 and under
    /// `message` for those of 2.
    fn into_response(self) -> Response {
        let mut response = (self.status, json_text(&self.json())).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            let realm = HeaderValue::from_static("Basic realm=\"latewood\", charset=\"UTF-8\"");
            headers.insert(header::WWW_AUTHENTICATE, realm);
        }
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let seconds = HeaderValue::from_static(RETRY_AFTER_S);
            headers.insert(header::RETRY_AFTER, seconds);
        }
        response
    }
}

/// A body of JSON with its type.
pub(crate) fn json_text(value: &impl Serialize) -> ([(HeaderName, &'static str); 1], String) {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    // Nothing that is answered has keys that are no texts, which alone can fail.
    let text = serde_json::to_string(value).unwrap_or_default();
    (kind, text + "\n")
}
