//! Authentication of a request: the users of the Redis side, by any of the methods
//! that senders use.
//!
//! `Authorization: Basic` with name and password; `Bearer` or `Token` with
//! `name:password`, or with the password of the user `default` alone; the
//! parameters `u` and `p` of InfluxDB 1; or a client certificate that names one. While the user `default` needs no
//! password, a request without a user's name and password is one of `default`.

use super::answer::Answer;
use crate::acl::log::HTTP;
use crate::acl::{DEFAULT, User, Users};
use axum::http::{HeaderMap, StatusCode, header};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;

/// A name and a password.
#[derive(Debug, PartialEq, Eq)]
struct Credentials {
    name: Vec<u8>,
    password: Vec<u8>,
}

/// The user that the headers, or the parameters, name; without either, `certified`.
///
/// # Errors
/// 401, which ACL LOG shows.
pub(crate) fn user(
    users: &Users,
    headers: &HeaderMap,
    parameters: (Option<&str>, Option<&str>),
    certified: Option<Arc<User>>,
) -> Result<Arc<User>, Answer> {
    let given = match headers.get(header::AUTHORIZATION) {
        Some(value) => credentials(value.as_bytes()),
        None => match parameters {
            (Some(name), password) => Some(Credentials {
                name: name.as_bytes().to_vec(),
                password: password.unwrap_or_default().as_bytes().to_vec(),
            }),
            _ => None,
        },
    };
    let known = match &given {
        Some(given) => {
            let user = users.get(&given.name);
            user.filter(|user| user.accepts(&given.password))
        }
        None => certified,
    };
    let is_of_user = given
        .as_ref()
        .is_some_and(|given| users.get(&given.name).is_some());
    match known {
        Some(user) => Ok(user),
        // As InfluxDB without users does not ask who somebody says to be; but who names a
        // user means that one's rights, not those of `default`.
        None if users.is_open() && !is_of_user => Ok(users.default_user()),
        None => {
            // A name that nobody has may be part of a secret, mistyped.
            let names = given.as_ref().map(|given| &given.name[..]);
            let name = names.filter(|name| users.get(name).is_some());
            users
                .log
                .note_sender(HTTP, None, b"HTTP", name.unwrap_or(DEFAULT));
            Err(Answer::new(
                StatusCode::UNAUTHORIZED,
                match given {
                    Some(_) => "wrong user name or password",
                    None => "user name and password are required",
                },
            ))
        }
    }
}

fn credentials(value: &[u8]) -> Option<Credentials> {
    let space = value.iter().position(|byte| *byte == b' ')?;
    let (scheme, rest) = (&value[..space], value[space + 1..].trim_ascii());
    if scheme.eq_ignore_ascii_case(b"basic") {
        return split(&BASE64_STANDARD.decode(rest).ok()?);
    }
    if scheme.eq_ignore_ascii_case(b"bearer") || scheme.eq_ignore_ascii_case(b"token") {
        return split(rest).or_else(|| {
            Some(Credentials {
                name: DEFAULT.to_vec(),
                password: rest.to_vec(),
            })
        });
    }
    None
}

fn split(text: &[u8]) -> Option<Credentials> {
    let colon = text.iter().position(|byte| *byte == b':')?;
    Some(Credentials {
        name: text[..colon].to_vec(),
        password: text[colon + 1..].to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::testing;

    fn headers(value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::AUTHORIZATION, value.parse().unwrap());
        headers
    }

    fn name(users: &Users, headers: &HeaderMap, u: Option<&str>, p: Option<&str>) -> String {
        match user(users, headers, (u, p), None) {
            Ok(user) => String::from_utf8(user.name.to_vec()).unwrap(),
            Err(answer) => answer.status.as_str().to_owned(),
        }
    }

    #[test]
    fn every_way_to_name_a_user_is_known() {
        let users = testing::users();
        let rules = ["on", ">secret:1", "+@all", "~*"].map(|rule| rule.as_bytes().to_vec());
        users.set(b"ann", &rules).unwrap();
        assert_eq!(name(&users, &HeaderMap::new(), None, None), "default");
        assert_eq!(
            name(&users, &headers("Token anything"), None, None),
            "default"
        );
        // While `default` is open, whoever names a user must still be that one.
        for (value, wanted) in [
            ("Bearer ann:secret:1", "ann"),
            ("Bearer ann:wrong", "401"),
            ("Bearer nobody:x", "default"),
            ("Bearer default:x", "default"),
        ] {
            assert_eq!(name(&users, &headers(value), None, None), wanted, "{value}");
        }
        users.set(b"ann", &[b"off".to_vec()]).unwrap();
        assert_eq!(
            name(&users, &headers("Bearer ann:secret:1"), None, None),
            "401"
        );
        users.set(b"ann", &[b"on".to_vec()]).unwrap();
        users.set_default_password("sesame");
        let basic = format!("Basic {}", BASE64_STANDARD.encode("ann:secret:1"));
        for (value, wanted) in [
            (basic.as_str(), "ann"),
            ("Token ann:secret:1", "ann"),
            ("bearer sesame", "default"),
            ("Bearer default:sesame", "default"),
            ("Bearer ann", "401"),
            ("Bearer ann:secret", "401"),
            ("Basic not-base64", "401"),
            ("Digest x", "401"),
            ("", "401"),
        ] {
            assert_eq!(name(&users, &headers(value), None, None), wanted, "{value}");
        }
        let none = HeaderMap::new();
        assert_eq!(name(&users, &none, None, None), "401");
        assert_eq!(name(&users, &none, Some("ann"), Some("secret:1")), "ann");
        assert_eq!(name(&users, &none, Some("ann"), None), "401");
    }

    #[test]
    fn no_part_of_a_mistyped_secret_is_kept_for_a_name() {
        let users = testing::users();
        users.set_default_password("s3cr:et");
        users.set(b"ann", &[]).unwrap();
        for (value, shown) in [
            ("Bearer s3cr:ey", DEFAULT),
            ("Bearer ann:x", b"ann".as_slice()),
        ] {
            assert_eq!(name(&users, &headers(value), None, None), "401");
            assert_eq!(users.log.newest(1)[0].event.user, shown, "{value}");
        }
    }
}
