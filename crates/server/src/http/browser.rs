//! Requests that a browser makes for a page of somebody else are refused.
//!
//! A page may send requests to any address without its user's knowledge. `Origin`
//! and `Sec-Fetch-Site` tell such requests apart: they must name the host that the
//! request is for. By DNS rebinding a page gives its own host the address of this
//! machine; then `Host` names it. So, while reading and writing need no password,
//! `Host` must be an address, a name that nobody can register, the name of this
//! machine or one of `--http-hosts`. Senders set no `Origin`, and `Host` is the name
//! they were configured with.
//!
//! Tested below and by `tests/http/browser.rs`.

use super::answer::Answer;
use super::context::Context;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Domains in which nobody can register a name.
const PRIVATE: [&str; 5] = [
    "localhost",
    "internal",
    "svc",
    "cluster.local",
    "localdomain",
];

/// Requests of the console have this header. It asks for a login itself: with a challenge,
/// browsers would ask first.
const CONSOLE: &str = "x-latewood-console";

/// Serves a request unless a page of somebody else makes it.
pub(super) async fn guard(
    State(context): State<Context>,
    request: Request,
    next: Next,
) -> Response {
    let shared = &context.shared;
    let hosts = &shared.settings.senders.http_hosts;
    let is_open = shared.runtime.users.is_open();
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    match check(request.headers(), is_read, hosts, is_open) {
        Ok(()) => {
            let is_of_console = request.headers().contains_key(CONSOLE);
            let mut response = next.run(request).await;
            if is_of_console {
                response.headers_mut().remove(header::WWW_AUTHENTICATE);
            }
            response
        }
        Err(text) => {
            tell(request.uri().path(), &text);
            Answer::new(StatusCode::FORBIDDEN, text).into_response()
        }
    }
}

/// Between two lines of the log: a page can send requests without end.
const QUIET_S: u64 = 10;

fn tell(path: &str, text: &str) {
    static NEXT_S: AtomicU64 = AtomicU64::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = now.unwrap_or_default().as_secs();
    let order = Ordering::Relaxed;
    let is_due = |next_s| (next_s <= now_s).then_some(now_s + QUIET_S);
    if NEXT_S.fetch_update(order, order, is_due).is_ok() {
        tracing::warn!(path, "{text}");
    }
}

/// Whether a request with these headers is served where `is_read` says whether its
/// method is that of a link, `hosts` are this server's own, and `is_open` says whether no
/// password is needed.
///
/// # Errors
/// Says why not.
fn check(
    headers: &HeaderMap,
    is_read: bool,
    hosts: &[String],
    is_open: bool,
) -> Result<(), String> {
    let text =
        |name| -> Option<&str> { headers.get(name).map(|value| value.to_str().unwrap_or("")) };
    let host = text(header::HOST);
    if headers.get_all(header::HOST).iter().nth(1).is_some() {
        return Err("more than one Host".to_owned());
    }
    if is_open
        && let Some(host) = host
        && !is_own(name_of(host), hosts)
    {
        return Err(format!(
            "Host {host:?} is not one of http-hosts: add it there or set a password"
        ));
    }
    if let Some(origin) = text(header::ORIGIN) {
        let authority = origin
            .split_once("://")
            .map_or("", |(_, authority)| authority);
        let is_named = hosts
            .iter()
            .any(|host| host.eq_ignore_ascii_case(name_of(authority)));
        let is_same = host.is_some_and(|host| host.eq_ignore_ascii_case(authority));
        if !is_same && !is_named {
            return Err(format!(
                "Origin {origin:?} is neither this server nor one of http-hosts"
            ));
        }
        return Ok(());
    }
    let fetch = |name: &str| headers.get(name).map(|value| value.as_bytes());
    let is_foreign = fetch("sec-fetch-site") == Some(b"cross-site");
    // A link that is followed; a form is sent with an `Origin`.
    let is_link = is_read && fetch("sec-fetch-mode") == Some(b"navigate");
    if is_foreign && !is_link {
        Err("requests of other sites (Sec-Fetch-Site) are not supported".to_owned())
    } else {
        Ok(())
    }
}

/// The name in `host` or `host:port`, without the brackets of an address.
fn name_of(host: &str) -> &str {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    name.trim_start_matches('[').trim_end_matches([']', '.'])
}

/// Whether `name` can only mean this server.
fn is_own(name: &str, hosts: &[String]) -> bool {
    let is_below = |domain: &str| {
        let (name, domain) = (name.as_bytes(), domain.as_bytes());
        let rest = name.len().checked_sub(domain.len());
        rest.is_some_and(|rest| {
            name[rest..].eq_ignore_ascii_case(domain) && (rest == 0 || name[rest - 1] == b'.')
        })
    };
    name.parse::<IpAddr>().is_ok()
        // Only the networks' own search domains complete it.
        || !name.contains('.')
        || PRIVATE.into_iter().any(is_below)
        || hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
        || name.as_bytes().eq_ignore_ascii_case(rustix::system::uname().nodename().to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(headers: &[(&'static str, &str)], is_open: bool) -> Result<(), String> {
        let headers = headers.iter().map(|(name, value)| {
            let name = header::HeaderName::from_static(name);
            (name, value.parse().unwrap())
        });
        check(
            &headers.collect(),
            true,
            &["db.example.org".to_owned()],
            is_open,
        )
    }

    #[test]
    fn hosts_of_others_are_refused_while_there_is_no_password() {
        for host in [
            "127.0.0.1:8086",
            "[::1]:8086",
            "10.1.2.3",
            "localhost:8086",
            "latewood",
            "LATEWOOD:1",
            "latewood.monitoring.svc",
            "a.svc.cluster.local:80",
            "db.localhost.",
            "db.example.org:8086",
            "DB.example.org",
        ] {
            assert_eq!(checked(&[("host", host)], true), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8086",
            "127.0.0.1.evil.example",
            "notsvc.com",
            "x.mysvc.de",
        ] {
            assert!(checked(&[("host", host)], true).is_err(), "{host}");
            assert_eq!(checked(&[("host", host)], false), Ok(()), "{host}");
        }
        assert_eq!(checked(&[], true), Ok(()));
        let twice = [("host", "127.0.0.1"), ("host", "evil.example")];
        assert!(checked(&twice, false).is_err());
    }

    #[test]
    fn pages_of_others_are_refused_always() {
        let host = ("host", "127.0.0.1:8086");
        for is_open in [false, true] {
            for origin in [
                "null",
                "http://evil.example",
                "http://127.0.0.1:3000",
                "file://",
                "\u{e4}",
            ] {
                assert!(
                    checked(&[host, ("origin", origin)], is_open).is_err(),
                    "{origin}"
                );
            }
            for origin in ["http://127.0.0.1:8086", "https://db.example.org:3000"] {
                assert_eq!(
                    checked(&[host, ("origin", origin)], is_open),
                    Ok(()),
                    "{origin}"
                );
            }
            let site = ("sec-fetch-site", "cross-site");
            assert!(checked(&[host, site], is_open).is_err());
            assert!(checked(&[host, site, ("sec-fetch-mode", "no-cors")], is_open).is_err());
            assert_eq!(
                checked(&[host, site, ("sec-fetch-mode", "navigate")], is_open),
                Ok(())
            );
            let link = [host, site, ("sec-fetch-mode", "navigate")];
            let link = link.map(|(name, value)| {
                let name = header::HeaderName::from_static(name);
                (name, value.parse().unwrap())
            });
            let form = check(&link.into_iter().collect(), false, &[], is_open);
            assert!(form.is_err(), "a form is no link");
            assert_eq!(
                checked(&[host, ("sec-fetch-site", "same-origin")], is_open),
                Ok(())
            );
        }
    }
}
