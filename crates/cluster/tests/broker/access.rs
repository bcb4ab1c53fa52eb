//! TLS and passwords.

use crate::{Cluster, make, read_all};
use latewood_cluster::kafka::client::Client;
use latewood_cluster::kafka::options::{Access, Given, Password};
use latewood_cluster::kafka::{Kafka, KafkaError};
use std::path::PathBuf;

/// The password of the user `latewood`.
const PASSWORD: &str = "log-secret";

impl Cluster {
    /// A file that `kafka.sh` made.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let folder = root.join("target/kafka").join(self.first_port.to_string());
        Some(folder.join(name))
    }

    /// The options that every broker accepts.
    fn given(&self, mechanism: &str) -> Given {
        Given {
            cacert: self.file("ca.pem"),
            mechanism: Some(mechanism.into()),
            user: Some("latewood".into()),
            password: Some(Password::new(PASSWORD)),
            ..Given::default()
        }
    }

    fn secure_client(&self, given: Given) -> Client {
        Client::new(&self.address(true), &Access::try_from(given).unwrap()).unwrap()
    }

    /// What comes of a call with these options.
    fn refusal(&self, given: Given) -> String {
        match self.secure_client(given).describe("t") {
            Err(KafkaError::Refused(text)) => text,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn each_mechanism_lets_in() {
    let cluster = Cluster::take();
    for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
        let client = cluster.secure_client(cluster.given(mechanism));
        let log = make(&client, "secure", 3, &[]);
        assert_eq!(client.append(&log, b"a"), Ok(0), "{mechanism}");
        assert_eq!(read_all(&client, &log), [b"a"]);
    }
}

#[test]
fn a_wrong_password_is_refused_and_not_shown() {
    let cluster = Cluster::take();
    for mechanism in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
        let password = Some(Password::new("wr0ng-one"));
        let text = cluster.refusal(Given {
            password,
            ..cluster.given(mechanism)
        });
        assert!(text.contains("uthentication"), "{text}");
        assert!(!text.contains("wr0ng-one"), "{text}");
        let user = Some("nobody".into());
        let text = cluster.refusal(Given {
            user,
            ..cluster.given(mechanism)
        });
        assert!(!text.contains(PASSWORD), "{text}");
    }
}

#[test]
fn a_broker_of_another_authority_is_not_trusted() {
    let cluster = Cluster::take();
    let cacert = cluster.file("stranger.pem");
    let text = cluster.refusal(Given {
        cacert,
        ..cluster.given("PLAIN")
    });
    assert!(text.contains("certificate"), "{text}");
    let of_system = Given {
        tls: true,
        cacert: None,
        ..cluster.given("PLAIN")
    };
    let text = cluster.refusal(of_system);
    assert!(text.contains("UnknownIssuer"), "{text}");
}

#[test]
fn the_certificate_is_shown_to_the_broker() {
    let cluster = Cluster::take();
    let (cert, key) = (cluster.file("client.pem"), cluster.file("client.key"));
    let given = Given {
        cert,
        key,
        ..cluster.given("PLAIN")
    };
    make(&cluster.secure_client(given), "shown", 3, &[]);
    // The brokers ask for none, but refuse one of an authority that they do not know.
    let (cert, key) = (cluster.file("stranger.pem"), cluster.file("stranger.key"));
    let given = Given {
        cert,
        key,
        ..cluster.given("PLAIN")
    };
    assert!(
        cluster
            .secure_client(given)
            .describe("t")
            .is_err_and(|error| { !matches!(error, KafkaError::NoSuchTopic(_)) })
    );
}

#[test]
fn a_file_that_is_missing_is_named_at_once() {
    let cluster = Cluster::take();
    let cacert = cluster.file("no-such.pem");
    let access = Access::try_from(Given {
        cacert,
        ..cluster.given("PLAIN")
    })
    .unwrap();
    let error = Client::new(&cluster.address(true), &access).unwrap_err();
    assert!(error.to_string().contains("no-such.pem"), "{error}");
}
