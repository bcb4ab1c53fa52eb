//! Logging in with SASL: PLAIN, and SCRAM of RFC 5802 and 7677.
//!
//! Invariants: of a password only a proof is sent with SCRAM, and nothing more before the broker
//! appended to the nonce; a broker that does not prove that it knows the password is refused.
//! Names and passwords are not normalised, as Kafka does not do it.
//!
//! Tested below with the example of RFC 7677, and in `tests/broker/access.rs` with brokers.

use super::connection::Connection;
use crate::kafka::options::{Login, Mechanism};
use crate::kafka::{KafkaError, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use kafka_protocol::ResponseError;
use kafka_protocol::messages::{SaslAuthenticateRequest, SaslHandshakeRequest};
use kafka_protocol::protocol::StrBytes;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Rounds of hashing that a broker may ask for: fewer make guessing cheap, more cost time.
const ROUNDS: RangeInclusive<u32> = 4096..=1_000_000;
/// How much of the time that a login holds is used: a request must not meet its end.
const LIFETIME_PERCENT: u64 = 85;

/// Proves who the client is. The connection is for requests then.
///
/// # Errors
/// `Refused` if the broker refuses or proves nothing itself, else `Unavailable`.
pub(super) fn log_in(connection: &mut Connection, login: &Login, deadline: Instant) -> Result<()> {
    let name = StrBytes::from_static_str(login.mechanism.name());
    let request = SaslHandshakeRequest::default().with_mechanism(name);
    let answer = connection.prepare(&request, deadline)?;
    if let Some(code) = ResponseError::try_from_code(answer.error_code) {
        let mechanisms: Vec<&str> = answer.mechanisms.iter().map(|name| &**name).collect();
        let supported = mechanisms.join(", ");
        return Err(refused(
            connection,
            &format!("{code:?}, supported are {supported}"),
        ));
    }
    let (user, password) = (login.user.as_str(), login.password.reveal());
    let hash = match login.mechanism {
        Mechanism::Plain => {
            let text = format!("\0{user}\0{password}");
            return say(connection, text, deadline).map(drop);
        }
        Mechanism::ScramSha256 => SHA256,
        Mechanism::ScramSha512 => SHA512,
    };
    let nonce = nonce()?;
    let scram = Scram::new(hash, user, &nonce);
    let challenge = say(connection, format!("n,,{}", scram.first), deadline)?;
    let proof = scram.prove(password, &challenge);
    let proof = proof.map_err(|error| refused(connection, &error))?;
    let verdict = say(connection, proof.message.clone(), deadline)?;
    proof
        .verify(&verdict)
        .map_err(|error| refused(connection, &error))
}

fn refused(connection: &Connection, reason: &str) -> KafkaError {
    let broker = connection.broker();
    KafkaError::Refused(format!("{broker}: SASL authentication failed: {reason}"))
}

/// What the broker answers to one message of the exchange.
fn say(connection: &mut Connection, text: String, deadline: Instant) -> Result<Bytes> {
    let request = SaslAuthenticateRequest::default().with_auth_bytes(text.into());
    let asked = Instant::now();
    let answer = connection.prepare(&request, deadline)?;
    if let Some(code) = ResponseError::try_from_code(answer.error_code) {
        let message = answer.error_message.unwrap_or_default();
        return Err(refused(connection, &format!("{code:?}: {message}")));
    }
    let lifetime_ms = u64::try_from(answer.session_lifetime_ms).unwrap_or(0);
    connection.expires = (lifetime_ms > 0)
        .then(|| asked.checked_add(Duration::from_millis(lifetime_ms / 100 * LIFETIME_PERCENT)))
        .flatten();
    Ok(answer.auth_bytes)
}

fn nonce() -> Result<String> {
    let mut bytes = [0; 24];
    let filled = SystemRandom::new().fill(&mut bytes);
    let none = |_| KafkaError::Unavailable("the system has no random numbers".to_owned());
    filled.map_err(none).map(|()| BASE64.encode(bytes))
}

/// The functions of a mechanism.
#[derive(Clone, Copy)]
struct Hash {
    hmac: hmac::Algorithm,
    pbkdf2: pbkdf2::Algorithm,
}

const SHA256: Hash = Hash {
    hmac: hmac::HMAC_SHA256,
    pbkdf2: pbkdf2::PBKDF2_HMAC_SHA256,
};
const SHA512: Hash = Hash {
    hmac: hmac::HMAC_SHA512,
    pbkdf2: pbkdf2::PBKDF2_HMAC_SHA512,
};

/// An exchange, by the names of RFC 5802.
struct Scram<'a> {
    hash: Hash,
    nonce: &'a str,
    /// `client-first-message-bare`.
    first: String,
}

/// What proves that the client knows the password, and what will prove that the broker does.
struct Proof {
    /// `client-final-message`.
    message: String,
    auth_message: String,
    server_key: hmac::Key,
}

impl<'a> Scram<'a> {
    fn new(hash: Hash, user: &str, nonce: &'a str) -> Self {
        let user = user.replace('=', "=3D").replace(',', "=2C");
        Self {
            hash,
            nonce,
            first: format!("n={user},r={nonce}"),
        }
    }

    /// The proof that a `server-first-message` asks for.
    fn prove(&self, password: &str, challenge: &[u8]) -> std::result::Result<Proof, String> {
        let text = std::str::from_utf8(challenge).map_err(|_| "the challenge is no text")?;
        let field = |name: &str| {
            let mut fields = text.split(',');
            let value = fields.find_map(|field| field.strip_prefix(name));
            value.ok_or_else(|| format!("the challenge has no {name}"))
        };
        let (nonce, salt, rounds) = (field("r=")?, field("s=")?, field("i=")?);
        if nonce.len() <= self.nonce.len() || !nonce.starts_with(self.nonce) {
            return Err("the broker did not append to the nonce".to_owned());
        }
        let salt = BASE64.decode(salt);
        let salt = salt.map_err(|error| format!("invalid salt: {error}"))?;
        let rounds = rounds.parse::<NonZeroU32>().ok();
        let rounds = rounds.filter(|rounds| ROUNDS.contains(&rounds.get()));
        let (least, most) = (ROUNDS.start(), ROUNDS.end());
        let rounds = rounds.ok_or_else(|| format!("rounds are not from {least} to {most}"))?;

        let Hash { hmac, pbkdf2 } = self.hash;
        let digest = hmac.digest_algorithm();
        let mut salted = vec![0; digest.output_len()];
        pbkdf2::derive(pbkdf2, rounds, &salt, password.as_bytes(), &mut salted);
        let salted = hmac::Key::new(hmac, &salted);
        let client_key = hmac::sign(&salted, b"Client Key");
        let server_key = hmac::sign(&salted, b"Server Key");
        let stored_key = digest::digest(digest, client_key.as_ref());
        // `biws` is `n,,` in base64: no channel binding.
        let without_proof = format!("c=biws,r={nonce}");
        let auth_message = format!("{},{text},{without_proof}", self.first);
        let stored_key = hmac::Key::new(hmac, stored_key.as_ref());
        let signature = hmac::sign(&stored_key, auth_message.as_bytes());
        let pairs = client_key.as_ref().iter().zip(signature.as_ref());
        let proof: Vec<u8> = pairs.map(|(key, signature)| key ^ signature).collect();
        Ok(Proof {
            message: format!("{without_proof},p={}", BASE64.encode(proof)),
            auth_message,
            server_key: hmac::Key::new(hmac, server_key.as_ref()),
        })
    }
}

impl Proof {
    /// Whether a `server-final-message` is of someone who knows the password.
    fn verify(&self, verdict: &[u8]) -> std::result::Result<(), String> {
        if let Some(reason) = verdict.strip_prefix(b"e=") {
            return Err(String::from_utf8_lossy(reason).into_owned());
        }
        let mut fields = verdict.split(|byte| *byte == b',');
        let signature = fields.find_map(|field| field.strip_prefix(b"v="));
        let signature = BASE64.decode(signature.unwrap_or_default());
        let signature = signature.unwrap_or_default();
        let verified = hmac::verify(&self.server_key, self.auth_message.as_bytes(), &signature);
        verified.map_err(|_| "the broker does not know the password".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677.
    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const CHALLENGE: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const VERDICT: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn prove(hash: Hash, challenge: &str) -> std::result::Result<Proof, String> {
        Scram::new(hash, "user", NONCE).prove("pencil", challenge.as_bytes())
    }

    #[test]
    fn the_example_of_the_standard() {
        assert_eq!(
            Scram::new(SHA256, "user", NONCE).first,
            "n=user,r=rOprNGfwEbeRWgbNEkqO"
        );
        let proof = prove(SHA256, CHALLENGE).unwrap();
        assert_eq!(
            proof.message,
            "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
             p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        );
        proof.verify(VERDICT.as_bytes()).unwrap();
    }

    /// Computed with `hashlib` and `hmac` of Python, as no standard has an example.
    #[test]
    fn the_same_example_with_sha_512() {
        let proof = prove(SHA512, CHALLENGE).unwrap();
        assert!(proof.message.ends_with(",p=gMGXRcevScNtxZ6/8lQYpGtnsNAc3mGcmNomv+xnoOMw+3R2xNJdMNnzMlTN8PPC6wdp6dybEmDYXYTxwnYPJQ=="), "{}", proof.message);
        proof.verify(b"v=ZQnYEgWQMFmmsM8aQMF0nDDCy/AgCzkwk8CmMZYcMg0vSVlKDanekLtifDSeVGT4+5ZxXnJq199RVG2rR7N7Zw==").unwrap();
    }

    #[test]
    fn commas_in_names_are_escaped() {
        assert_eq!(Scram::new(SHA256, "a=b,c", "N").first, "n=a=3Db=2Cc,r=N");
    }

    #[test]
    fn a_challenge_that_proves_nothing_is_refused() {
        let own = format!("r={NONCE},s=AAAA,i=4096");
        for (challenge, reason) in [
            ("", "no r="),
            ("e=unknown-user", "no r="),
            (own.as_str(), "did not append"),
            ("r=xOprNGfwEbeRWgbNEkqO1,s=AAAA,i=4096", "did not append"),
            ("r=rOprNGfwEbeRWgbNEkqO1,s=A,i=4096", "invalid salt"),
            ("r=rOprNGfwEbeRWgbNEkqO1,s=AAAA,i=1", "rounds"),
            ("r=rOprNGfwEbeRWgbNEkqO1,s=AAAA,i=2000000000", "rounds"),
            ("r=rOprNGfwEbeRWgbNEkqO1,s=AAAA", "no i="),
        ] {
            let error = prove(SHA256, challenge).err().unwrap();
            assert!(error.contains(reason), "{challenge}: {error}");
        }
        let scram = Scram::new(SHA256, "user", NONCE);
        assert!(scram.prove("pencil", &[0xff]).is_err());
    }

    #[test]
    fn a_broker_that_does_not_know_the_password_is_refused() {
        let proof = prove(SHA256, CHALLENGE).unwrap();
        let wrong = VERDICT.replace("v=6", "v=7");
        for verdict in [wrong.as_str(), "", "v=", "v=?", "v=6rriTRBi"] {
            let error = proof.verify(verdict.as_bytes()).unwrap_err();
            assert!(error.contains("does not know the password"), "{verdict}");
        }
        assert_eq!(proof.verify(b"e=other-error").unwrap_err(), "other-error");
    }
}
