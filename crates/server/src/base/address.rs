//! Addresses to listen on, as options spell them: `ADDR:PORT`.

use std::net::IpAddr;

/// Words of other options, which are no hosts.
const SWITCHES: [&str; 6] = ["on", "off", "yes", "no", "true", "false"];

/// Looks whether `text` is a host or an address with a port.
///
/// # Errors
/// A sentence that says which of them is missing or wrong.
pub(crate) fn check(text: &str) -> Result<(), String> {
    match text.parse() {
        Ok(IpAddr::V4(address)) => return Err(no_port(text, &address.to_string())),
        Ok(IpAddr::V6(address)) => return Err(no_port(text, &format!("[{address}]"))),
        Err(_) => {}
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        return Err(format!(
            "{text:?}: {scheme}:// is not supported here: expected {rest}"
        ));
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(match text.parse::<u16>() {
            Ok(port) => format!("{text:?}: the address is missing: expected ADDR:{port}"),
            Err(_) if SWITCHES.contains(&text) => {
                format!("{text:?} is not an address: expected ADDR:PORT")
            }
            Err(_) => no_port(text, if text.is_empty() { "ADDR" } else { text }),
        });
    };
    if host.is_empty() {
        Err(format!(
            "{text:?}: the address is missing: expected ADDR:{port}"
        ))
    } else if port.is_empty() || host.starts_with('[') && !host.ends_with(']') {
        Err(no_port(text, host))
    } else if port.parse::<u16>().is_err() {
        Err(format!(
            "{text:?}: {port:?} is not a port: expected a number from 0 to 65535"
        ))
    } else {
        Ok(())
    }
}

/// Looks whether `text` can be the name or the address of a host in a request, without its port.
///
/// # Errors
/// A sentence that says what is expected.
pub(crate) fn check_name(text: &str) -> Result<(), String> {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_name = text.bytes().all(is_letter) && !text.ends_with('.');
    if is_name || text.parse::<IpAddr>().is_ok() {
        Ok(())
    } else {
        Err(format!(
            "{text:?} is not a name: expected the name or address of a host, without a port"
        ))
    }
}

fn no_port(text: &str, host: &str) -> String {
    format!("{text:?}: the port is missing: expected {host}:PORT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told() {
        for good in [
            "127.0.0.1:6379",
            "[::1]:0",
            "localhost:65535",
            "db.example.org:1",
        ] {
            assert_eq!(check(good), Ok(()));
        }
        for (text, told) in [
            ("127.0.0.1", "the port is missing: expected 127.0.0.1:PORT"),
            ("::1", "the port is missing: expected [::1]:PORT"),
            ("localhost", "the port is missing: expected localhost:PORT"),
            ("localhost:", "the port is missing: expected localhost:PORT"),
            ("", "the port is missing: expected ADDR:PORT"),
            ("6379", "the address is missing: expected ADDR:6379"),
            (":6379", "the address is missing: expected ADDR:6379"),
            (
                "localhost:http",
                "\"http\" is not a port: expected a number from 0 to 65535",
            ),
            ("localhost:65536", "\"65536\" is not a port"),
            ("tls://db:1", "tls:// is not supported here: expected db:1"),
            ("on", "\"on\" is not an address: expected ADDR:PORT"),
        ] {
            let error = check(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn a_name_that_no_request_can_have_is_refused() {
        for good in ["db", "db_1.example-2.org", "192.0.2.1", "2001:db8::1"] {
            assert_eq!(check_name(good), Ok(()));
        }
        for wrong in [
            "a b", " a", "a:8086", "[::1]", "http://a", "a.", "*.a", "\u{e4}",
        ] {
            let error = check_name(wrong).unwrap_err();
            assert!(error.contains("without a port"), "{wrong}: {error}");
        }
    }
}
