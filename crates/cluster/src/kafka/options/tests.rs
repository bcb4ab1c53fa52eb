//! Tables of URLs and options, those that are refused included.

use super::*;

fn address(text: &str) -> Result<(String, String), String> {
    let address: Address = text.parse()?;
    Ok((address.brokers.join(" "), address.name))
}

#[test]
fn urls_that_name_brokers_and_a_name() {
    for (url, brokers, name) in [
        ("kafka://a:1/metrics", "a:1", "metrics"),
        ("kafka://a:1,b:65535/m-1.x_2", "a:1 b:65535", "m-1.x_2"),
        ("kafka://a,10.0.0.1/m", "a:9092 10.0.0.1:9092", "m"),
        (
            "kafka://[::1]:19092,[fe80::1]/m",
            "[::1]:19092 [fe80::1]:9092",
            "m",
        ),
    ] {
        assert_eq!(address(url), Ok((brokers.into(), name.into())), "{url}");
    }
    let url = "kafka://a:9092,[::1]:9092/m";
    assert_eq!(url.parse::<Address>().unwrap().to_string(), url);
}

#[test]
fn urls_that_do_not_are_refused_with_the_reason() {
    let long = format!("kafka://a/{}", "m".repeat(NAME_BYTES_MAX + 1));
    for (url, reason) in [
        ("s3://a/m", "must begin with kafka://"),
        ("kafka://a:1", "missing name"),
        ("kafka://a:1/", "missing name"),
        ("kafka:///m", "invalid broker \"\""),
        ("kafka://a:1,,b:1/m", "invalid broker \"\""),
        ("kafka://:9092/m", "invalid broker \":9092\""),
        ("kafka://::1/m", "invalid broker \"::1\""),
        ("kafka://a:b:1/m", "invalid broker \"a:b:1\""),
        ("kafka://a:0/m", "invalid port number in \"a:0\""),
        ("kafka://a:65536/m", "invalid port number in \"a:65536\""),
        ("kafka://a:kafka/m", "invalid port number in \"a:kafka\""),
        ("kafka://a:1/m/n", "invalid name"),
        ("kafka://a:1/mäh", "invalid name"),
        ("kafka://a:1/m?acks=0", "? and # are not supported"),
        (&long, "name is too long"),
    ] {
        let error = address(url).unwrap_err();
        assert!(error.contains(reason), "{url}: {error}");
        assert!(error.starts_with("invalid Kafka URL"), "{url}: {error}");
    }
}

#[test]
fn a_password_in_a_url_is_refused_and_not_repeated() {
    let error = address("kafka://me:s3cret@a:1/m").unwrap_err();
    assert!(error.contains("user and password are options"), "{error}");
    assert!(!error.contains("s3cret"), "{error}");
}

/// Of the user `me`, with `s3cret` from the environment.
fn me() -> Given {
    Given {
        user: Some("me".into()),
        password: Some(Password::new("s3cret")),
        ..Given::default()
    }
}

#[test]
fn files_of_tls_imply_tls() {
    let tls = |given: Given| Access::try_from(given).unwrap().tls;
    assert_eq!(tls(Given::default()), None);
    let plain = Given {
        tls: true,
        ..Given::default()
    };
    let all_of_system = ClientOptions {
        tls: true,
        ..ClientOptions::default()
    };
    assert_eq!(tls(plain), Some(all_of_system.clone()));
    let cacert = Some(PathBuf::from("ca.pem"));
    let given = Given {
        cacert: cacert.clone(),
        ..Given::default()
    };
    let with_cacert = ClientOptions {
        cacert,
        ..all_of_system.clone()
    };
    assert_eq!(tls(given), Some(with_cacert));
    let (cert, key) = (Some("c.pem".into()), Some("c.key".into()));
    let given = Given {
        cert: cert.clone(),
        key: key.clone(),
        ..Given::default()
    };
    let with_cert = ClientOptions {
        cert,
        key,
        ..all_of_system
    };
    assert_eq!(tls(given), Some(with_cert));
}

#[test]
fn the_mechanism_is_the_strongest_unless_named() {
    for (name, mechanism) in [
        (None, Mechanism::ScramSha512),
        (Some("scram-sha-256"), Mechanism::ScramSha256),
        (Some("SCRAM-SHA-512"), Mechanism::ScramSha512),
        (Some("PLAIN"), Mechanism::Plain),
    ] {
        let given = Given {
            mechanism: name.map(str::to_owned),
            tls: true,
            ..me()
        };
        let login = Access::try_from(given).unwrap().login.unwrap();
        assert_eq!(login.mechanism, mechanism);
        assert_eq!(
            (login.user.as_str(), login.password.reveal()),
            ("me", "s3cret")
        );
    }
}

#[test]
fn a_file_goes_before_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("password");
    for (text, password) in [
        ("a b", "a b"),
        ("a\n", "a"),
        ("a\r\n", "a"),
        ("a\n\n", "a\n"),
    ] {
        fs::write(&path, text).unwrap();
        let given = Given {
            password_file: Some(path.clone()),
            ..me()
        };
        let login = Access::try_from(given).unwrap().login.unwrap();
        assert_eq!(login.password.reveal(), password, "{text:?}");
    }
    fs::write(&path, "\n").unwrap();
    let given = Given {
        password_file: Some(path),
        ..me()
    };
    let error = Access::try_from(given).unwrap_err();
    assert!(error.contains("it is empty"), "{error}");
}

fn assert_refused(mut given: Given, change: impl FnOnce(&mut Given), reason: &str) {
    change(&mut given);
    let error = Access::try_from(given).unwrap_err();
    assert!(error.contains(reason), "{error}");
}

#[test]
fn options_that_lack_another_are_refused() {
    let file = || Some(PathBuf::from("/no/such/file"));
    assert_refused(
        Given::default(),
        |given| given.cert = file(),
        "a certificate needs its private key",
    );
    assert_refused(
        Given::default(),
        |given| given.key = file(),
        "a private key needs its certificate",
    );
    assert_refused(
        Given::default(),
        |given| given.mechanism = Some("PLAIN".into()),
        "a SASL mechanism needs a user",
    );
    assert_refused(
        Given::default(),
        |given| given.password_file = file(),
        "a password needs a user",
    );
    assert_refused(
        me(),
        |given| given.password = None,
        "no password supplied for user \"me\"",
    );
}

#[test]
fn options_that_cannot_be_used_are_refused() {
    assert_refused(
        me(),
        |given| given.mechanism = Some("PLAIN".into()),
        "TLS is required",
    );
    assert_refused(
        me(),
        |given| given.mechanism = Some("GSSAPI".into()),
        "unknown SASL mechanism \"GSSAPI\"",
    );
    assert_refused(
        me(),
        |given| given.password_file = Some("/no/such/file".into()),
        "could not read password file \"/no/such/file\"",
    );
    assert_refused(
        me(),
        |given| given.user = Some(String::new()),
        "invalid user name",
    );
}

#[test]
fn no_text_shows_a_password() {
    let access = Access::try_from(me()).unwrap();
    assert!(!format!("{:?} {access:?}", me()).contains("s3cret"));
}
