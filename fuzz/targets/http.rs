//! HTTP requests, also compressed ones that become large: none makes the server fail.
//!
//! Requests stand between two bytes 0xff. The first byte of a request compresses its body, which
//! stands behind its head and an empty line.
#![cfg_attr(fuzzing, no_main)]

use latewood_server::fuzz::Http;
use libfuzzer_sys::fuzz_target;
use std::io::Write;
use std::sync::LazyLock;

type Request<'a> = (&'a [u8], &'a [u8], Vec<(&'a [u8], &'a [u8])>, Vec<u8>);

static HTTP: LazyLock<Http> = LazyLock::new(Http::default);

fn compressed(how: u8, body: &[u8]) -> Option<(&'static [u8], Vec<u8>)> {
    match how % 4 {
        1 => {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(body).ok()?;
            Some((b"gzip", out.finish().ok()?))
        }
        2 => Some((b"zstd", zstd::bulk::compress(body, 1).ok()?)),
        3 => Some((
            b"snappy",
            snap::raw::Encoder::new().compress_vec(body).ok()?,
        )),
        _ => None,
    }
}

fn split_at<'a>(text: &'a [u8], by: &[u8]) -> (&'a [u8], &'a [u8]) {
    match text.windows(by.len()).position(|part| part == by) {
        Some(at) => (&text[..at], &text[at + by.len()..]),
        None => (text, b""),
    }
}

fn request(bytes: &[u8]) -> Option<Request<'_>> {
    let (how, bytes) = bytes.split_first()?;
    let (head, body) = split_at(bytes, b"\n\n");
    let (first, lines) = split_at(head, b"\n");
    let (method, path) = split_at(first, b" ");
    let lines = lines.split(|byte| *byte == b'\n');
    let mut headers: Vec<_> = lines.map(|line| split_at(line, b": ")).collect();
    headers.retain(|(name, _)| !name.is_empty());
    let body = match compressed(*how, body) {
        Some((name, body)) => {
            headers.push((b"content-encoding", name));
            body
        }
        None => body.to_vec(),
    };
    Some((method, path, headers, body))
}

fuzz_target!(|bytes: &[u8]| {
    let (mut rest, mut requests) = (bytes, Vec::new());
    while !rest.is_empty() {
        let (first, others) = split_at(rest, b"\xff\xff");
        requests.extend(request(first));
        rest = others;
    }
    for (status, body) in HTTP.send(requests.into_iter()) {
        assert_ne!(status, 500, "{}", body.escape_ascii());
    }
});
