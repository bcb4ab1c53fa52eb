//! What templates do with texts and numbers, as Go and Prometheus do it.

use latewood_promql::number::general_to;
use std::net::IpAddr;

/// Prefixes of units from thousand up, and from a thousandth down.
const UP: [&str; 8] = ["k", "M", "G", "T", "P", "E", "Z", "Y"];
const UP_1024: [&str; 8] = ["ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"];
const DOWN: [&str; 8] = ["m", "u", "n", "p", "f", "a", "z", "y"];

/// The value, in units of `prefixes` that are `step` apart.
fn raised(mut value: f64, step: f64, prefixes: [&str; 8]) -> String {
    let mut prefix = "";
    for next in prefixes {
        if value.abs() < step {
            break;
        }
        prefix = next;
        value /= step;
    }
    general_to(value, 4) + prefix
}

fn lowered(mut value: f64) -> String {
    let mut prefix = "";
    for next in DOWN {
        if value.abs() >= 1.0 {
            break;
        }
        prefix = next;
        value *= 1000.0;
    }
    general_to(value, 4) + prefix
}

/// `1.235M`, `120m`
pub(super) fn humanize(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        general_to(value, 4)
    } else if value.abs() >= 1.0 {
        raised(value, 1000.0, UP)
    } else {
        lowered(value)
    }
}

/// `1.177Mi`
pub(super) fn humanize_1024(value: f64) -> String {
    if value.abs() <= 1.0 || !value.is_finite() {
        general_to(value, 4)
    } else {
        raised(value, 1024.0, UP_1024)
    }
}

/// `1d 2h 3m 4s`
pub(super) fn humanize_duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return general_to(seconds, 4);
    }
    if seconds == 0.0 {
        return general_to(seconds, 4) + "s";
    }
    if seconds.abs() < 1.0 {
        return lowered(seconds) + "s";
    }
    let sign = if seconds < 0.0 { "-" } else { "" };
    let whole = seconds.abs() as i64;
    let (days, hours) = (whole / 86_400, whole / 3600 % 24);
    let (minutes, rest) = (whole / 60 % 60, whole % 60);
    if days != 0 {
        format!("{sign}{days}d {hours}h {minutes}m {rest}s")
    } else if hours != 0 {
        format!("{sign}{hours}h {minutes}m {rest}s")
    } else if minutes != 0 {
        format!("{sign}{minutes}m {rest}s")
    } else {
        format!("{sign}{}s", general_to(seconds.abs(), 4))
    }
}

/// The first letter of each word in upper case, all others as they are.
pub(super) fn title(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let is_word = |at: usize| {
        let plain = |at: usize| {
            let letter = letters.get(at);
            letter.is_some_and(|letter| letter.is_alphanumeric() || *letter == '_')
        };
        // As in "don't" and "example.com".
        let joins = matches!(
            letters.get(at),
            Some('\'' | '\u{2019}' | '.' | ':' | '\u{b7}')
        );
        plain(at) || joins && at > 0 && plain(at - 1) && plain(at + 1)
    };
    let mut out = String::with_capacity(text.len());
    for (at, letter) in letters.iter().enumerate() {
        if is_word(at) && (at == 0 || !is_word(at - 1)) {
            out.extend(letter.to_uppercase());
        } else {
            out.push(*letter);
        }
    }
    out
}

/// `host:port`, `[host]:port`
fn split_host_port(text: &str) -> Option<(&str, &str)> {
    let colon = text.rfind(':')?;
    let port = &text[colon + 1..];
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => {
            let end = inner.find(']')?;
            if end + 2 != colon {
                return None;
            }
            (&inner[..end], port)
        }
        None => (&text[..colon], text),
    };
    let is_bare = !text.starts_with('[');
    let is_bad = is_bare && host.contains(':') || host.contains('[') || rest.contains(['[', ']']);
    (!is_bad).then_some((host, port))
}

/// A host without its port.
pub(super) fn strip_port(text: &str) -> &str {
    split_host_port(text).map_or(text, |(host, _)| host)
}

/// A host without its domain; its port stays.
pub(super) fn strip_domain(text: &str) -> String {
    let (host, port) = split_host_port(text).unwrap_or((text, ""));
    let address = match host.split_once('%') {
        Some((address, zone)) if !zone.is_empty() && address.contains(':') => address,
        _ => host,
    };
    if address.parse::<IpAddr>().is_ok() {
        return text.to_owned();
    }
    let host = host.split('.').next().unwrap_or_default();
    match (port, host.contains(':')) {
        ("", _) => host.to_owned(),
        (_, true) => format!("[{host}]:{port}"),
        (_, false) => format!("{host}:{port}"),
    }
}

/// The path of an URL, as `url.URL.Path` of Go.
pub(super) fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').map_or("", |at| &rest[at..]);
    path.split(['?', '#']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_lose_their_ports_and_domains() {
        for (text, host, short) in [
            ("foo.example.com", "foo.example.com", "foo"),
            ("foo.example.com:12345", "foo.example.com", "foo:12345"),
            ("192.0.2.1:12345", "192.0.2.1", "192.0.2.1:12345"),
            ("2001:db8::1", "2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]:12345", "2001:db8::1", "[2001:db8::1]:12345"),
            (
                "[2001:db8::1]::12345",
                "[2001:db8::1]::12345",
                "[2001:db8::1]::12345",
            ),
            ("fe80::1%eth0.100", "fe80::1%eth0.100", "fe80::1%eth0.100"),
        ] {
            assert_eq!(
                (strip_port(text), &*strip_domain(text)),
                (host, short),
                "{text}"
            );
        }
        assert_eq!(path("http://host:9090/a/b?c#d"), "/a/b");
        assert_eq!(path("http://host"), "");
    }

    #[test]
    fn words_are_titled() {
        assert_eq!(
            title("aa bb CC, d-e don't x.y a_b"),
            "Aa Bb CC, D-E Don't X.y A_b"
        );
    }
}
