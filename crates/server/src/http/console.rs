//! The console: pages for browsers, which `console/` makes and the program contains.
//!
//! They hold nothing of the database, so they need no login; what they ask of the server does.
//! Each asset is there twice, compressed with brotli and with gzip; a reader that accepts
//! neither gets the second one decompressed, once for all readers. A page may load and run only
//! what is served here, and may not stand in a page of others.
//!
//! Tested by `tests/http/console.rs`, and by `tests/console` in a browser.

use super::answer::Answer;
use super::context::Context;
use super::encodings::Encodings;
use super::{health, nothing_there};
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use flate2::read::GzDecoder;
use sha2::{Digest, Sha256};
use std::io::Read;
use std::sync::LazyLock;

/// One file.
struct Asset {
    name: &'static str,
    kind: &'static str,
    brotli: &'static [u8],
    gzip: &'static [u8],
    plain: LazyLock<Bytes>,
}

macro_rules! asset {
    ($name:literal, $kind:literal) => {
        Asset {
            name: $name,
            kind: concat!($kind, "; charset=utf-8"),
            brotli: include_bytes!(concat!("../../assets/console/", $name, ".br")),
            gzip: include_bytes!(concat!("../../assets/console/", $name, ".gz")),
            plain: LazyLock::new(|| {
                unpacked(include_bytes!(concat!(
                    "../../assets/console/",
                    $name,
                    ".gz"
                )))
            }),
        }
    };
}

/// The page, and what it loads.
static PAGE: Asset = asset!("index.html", "text/html");
static LOADED: [Asset; 3] = [
    asset!("console.js", "text/javascript"),
    asset!("console.css", "text/css"),
    asset!("notices.txt", "text/plain"),
];

/// Names this version of the assets.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let mut hash = Sha256::new();
    for asset in LOADED.iter().chain([&PAGE]) {
        hash.update(asset.brotli);
        hash.update(asset.gzip);
    }
    let bytes = hash.finalize();
    bytes[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
});

/// Scripts, styles and requests of this server only; an icon in the page itself.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

/// `/`: the console for browsers, a text for others.
pub(super) async fn home(State(context): State<Context>, headers: HeaderMap) -> Response {
    let mut response = if context.shared.settings.senders.console && is_browser(&headers) {
        PAGE.response(&headers)
    } else {
        health::home().into_response()
    };
    let varies = HeaderValue::from_static("accept, accept-encoding");
    response.headers_mut().insert(header::VARY, varies);
    response
}

/// `/console/NAME`.
pub(super) async fn asset(
    State(context): State<Context>,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Answer> {
    let wanted = LOADED.iter().find(|asset| asset.name == name);
    match wanted.filter(|_| context.shared.settings.senders.console) {
        Some(asset) => Ok(asset.response(&headers)),
        None => Err(nothing_there(uri).await),
    }
}

/// Whether the reader names HTML; other programs say `*/*`, or nothing.
fn is_browser(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut texts = accepted.filter_map(|line| line.to_str().ok());
    texts.any(|line| line.contains("text/html"))
}

impl Asset {
    /// The file in the best coding that the reader accepts; 304 if it has this one.
    fn response(&self, headers: &HeaderMap) -> Response {
        let encodings = Encodings::of(headers);
        let (coding, body) = match (encodings.has("br"), encodings.has("gzip")) {
            (true, _) => ("br", Bytes::from_static(self.brotli)),
            (_, true) => ("gzip", Bytes::from_static(self.gzip)),
            _ => ("identity", self.plain.clone()),
        };
        let tag = format!("\"{}-{coding}\"", *VERSION);
        let known = headers.get_all(header::IF_NONE_MATCH).iter();
        let mut known = known.filter_map(|line| line.to_str().ok());
        let mut response = if known.any(|line| line.contains(&tag)) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            ([(header::CONTENT_TYPE, self.kind)], body).into_response()
        };
        let head = response.headers_mut();
        let fixed = [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            // Asked for each time, so that a page never runs with a script of another version.
            (header::CACHE_CONTROL, "no-cache"),
            (header::VARY, "accept-encoding"),
        ];
        for (name, value) in fixed {
            head.insert(name, HeaderValue::from_static(value));
        }
        if coding != "identity" {
            head.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
        }
        // Hexadecimal digits and a word.
        if let Ok(tag) = HeaderValue::try_from(tag) {
            head.insert(header::ETAG, tag);
        }
        response
    }
}

fn unpacked(gzip: &[u8]) -> Bytes {
    let mut plain = Vec::new();
    GzDecoder::new(gzip)
        .read_to_end(&mut plain)
        .expect("the program contains whole files, as tests/http/console.rs shows");
    plain.into()
}
