//! Addresses to listen on, as options spell them: `ADDR:PORT`.

use std::net::IpAddr;

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
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err(match text.parse::<u16>() {
            Ok(port) => format!("{text:?}: the address is missing: expected ADDR:{port}"),
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
        ] {
            let error = check(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
