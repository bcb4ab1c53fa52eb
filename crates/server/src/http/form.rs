//! Parameters in the body of a request: `application/x-www-form-urlencoded`, or
//! `multipart/form-data` (RFC 7578), as `curl -F` and `FormData` of browsers send them.
//!
//! Tested below and by `tests/http/reading.rs`.

use super::answer::{Answer, json_text};
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use memchr::memmem;
use serde_json::json;
use url::form_urlencoded;

/// Names and values in their order.
pub(super) type Pairs = Vec<(String, String)>;

/// Parameters of VictoriaMetrics that add labels to what is written and hide what others wrote from who
/// reads. Ignored, samples would get into other series, and readers would see more than they should.
const NOT_IGNORED: [&str; 3] = ["extra_label", "extra_filters", "extra_filters[]"];

/// Refuses a parameter that changes what others mean, and that is not known here.
///
/// # Errors
/// 400 that names it.
pub(super) fn refuse_unmet(mut names: impl Iterator<Item = impl AsRef<str>>) -> Result<(), Answer> {
    match names.find(|name| NOT_IGNORED.contains(&name.as_ref())) {
        None => Ok(()),
        Some(name) => Err(Answer::bad(format!(
            "the parameter {} is not supported: write labels with the samples, and ask for them with \
             selectors",
            name.as_ref()
        ))),
    }
}

/// Serves a request unless the query of its path has such a parameter.
pub(super) async fn guard(request: Request, next: Next) -> Response {
    let query = request.uri().query().unwrap_or_default();
    let names = form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name);
    match refuse_unmet(names) {
        Ok(()) => next.run(request).await,
        Err(answer) => {
            // In the form of every reader: that of Prometheus, and that of senders.
            let body = json!({
                "status": "error", "errorType": "bad_data", "code": "invalid",
                "message": answer.text, "error": answer.text,
            });
            (answer.status, json_text(&body)).into_response()
        }
    }
}

/// How a form is written.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// `name=value&...`.
    Encoded,
    /// Parts between delimiters, which consist of this boundary.
    Multipart(String),
}

impl Form {
    /// What `Content-Type` says, if it is a form.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        let (kind, parameters) = text.split_once(';').unwrap_or((text, ""));
        match kind.trim().to_ascii_lowercase().as_str() {
            "application/x-www-form-urlencoded" => Some(Self::Encoded),
            "multipart/form-data" => {
                let boundary = parameter(parameters, "boundary").unwrap_or_default();
                Some(Self::Multipart(boundary.to_owned()))
            }
            _ => None,
        }
    }

    /// The first `pairs_max` parameters of a body.
    ///
    /// # Errors
    /// 400 if it is not a form of this kind.
    pub(super) fn read(&self, body: &[u8], pairs_max: usize) -> Result<Pairs, Answer> {
        match self {
            Self::Encoded => Ok(encoded(body, pairs_max)),
            Self::Multipart(boundary) => multipart(body, boundary, pairs_max)
                .ok_or_else(|| Answer::bad("the body is not valid multipart/form-data")),
        }
    }
}

/// The first `pairs_max` parameters of a form or of the query of a path.
pub(super) fn encoded(text: &[u8], pairs_max: usize) -> Pairs {
    let pairs = form_urlencoded::parse(text).take(pairs_max);
    pairs
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect()
}

/// The value of the first parameter with this name in the query of a path: as in InfluxDB, others
/// with the name are ignored.
pub(super) fn first(query: Option<&str>, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let found = pairs.find(|(one, _)| one == name);
    found.map(|(_, value)| value.into_owned())
}

/// A parameter in the query of a path that is none of `known`.
pub(super) fn unknown(query: Option<&str>, known: &[&str]) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let found = pairs.find(|(name, _)| !known.contains(&&**name));
    found.map(|(name, _)| name.into_owned())
}

fn multipart(body: &[u8], boundary: &str, pairs_max: usize) -> Option<Pairs> {
    if boundary.is_empty() {
        return None;
    }
    let delimiter = format!("\r\n--{boundary}").into_bytes();
    let first = &delimiter[2..];
    let start = memmem::find(body, first)?;
    let (mut rest, mut pairs) = (&body[start + first.len()..], Pairs::new());
    while pairs.len() < pairs_max && !rest.starts_with(b"--") {
        let blank = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t'));
        rest = rest[blank.count()..].strip_prefix(b"\r\n")?;
        let head_end = memmem::find(rest, b"\r\n\r\n")?;
        let (head, content) = (&rest[..head_end], &rest[head_end + 4..]);
        let end = memmem::find(content, &delimiter)?;
        let value = String::from_utf8_lossy(&content[..end]).into_owned();
        pairs.push((name_of(&String::from_utf8_lossy(head))?, value));
        rest = &content[end + delimiter.len()..];
    }
    Some(pairs)
}

/// The name in the head of a part.
fn name_of(head: &str) -> Option<String> {
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-disposition"))?;
    let (_, parameters) = value.split_once(';')?;
    parameter(parameters, "name").map(str::to_owned)
}

/// The value of a parameter of a header.
fn parameter<'a>(parameters: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = parameters.split(';').filter_map(|one| one.split_once('='));
    let (_, value) = pairs.find(|(held, _)| held.trim().eq_ignore_ascii_case(name))?;
    Some(value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(kind: &str) -> Option<Form> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
        Form::of(&headers)
    }

    #[test]
    fn forms_of_both_kinds_are_read_in_their_order() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            pair("match[]", "up{a=\"b\"}"),
            pair("end", ""),
            pair("match[]", "x\r\ny"),
        ];
        let encoded = b"match%5B%5D=up%7Ba%3D%22b%22%7D&end=&match[]=x%0D%0Ay";
        let form_encoded = form("application/x-www-form-urlencoded; charset=utf-8").unwrap();
        assert_eq!(form_encoded.read(encoded, 9).unwrap(), expected);
        let parts =
            b"preamble\r\n--b--b\r\nContent-Disposition: form-data; name=\"match[]\"\r\n\r\n\
            up{a=\"b\"}\r\n--b--b \r\nContent-Type: text/plain\r\ncontent-disposition: form-data; \
            filename=\"f\"; name=end\r\n\r\n\r\n--b--b\r\nContent-Disposition: form-data; \
            name=\"match[]\"\r\n\r\nx\r\ny\r\n--b--b--\r\n";
        for kind in [
            "multipart/form-data; boundary=b--b",
            "Multipart/Form-Data;Boundary=\"b--b\"",
        ] {
            let form = form(kind).unwrap();
            assert_eq!(form.read(parts, 9).unwrap(), expected);
            assert_eq!(form.read(parts, 2).unwrap(), expected[..2]);
            for cut in 0..parts.len() - 4 {
                assert!(form.read(&parts[..cut], 9).is_err(), "cut at {cut}");
            }
        }
        assert!(form("multipart/form-data").unwrap().read(parts, 9).is_err());
        assert_eq!(form("application/json"), None);
    }
}
