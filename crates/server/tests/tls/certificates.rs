//! An authority, and the certificates it gives out.

use latewood_tls::ClientOptions;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// An authority with a folder of files.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    dir: TempDir,
}

/// When a certificate is valid.
#[derive(Clone, Copy)]
pub(crate) enum Valid {
    Now,
    UntilLongAgo,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "authority");
        let key = KeyPair::generate().unwrap();
        let own = params.self_signed(&key).unwrap();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("ca.crt"), own.pem()).unwrap();
        let issuer = Issuer::new(params, key);
        Self { issuer, dir }
    }

    /// A file of the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The same as text, for options.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Writes a certificate of `name` for this machine, and its key, as NAME.crt and NAME.key.
    pub(crate) fn give(&self, name: &str, valid: Valid) {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        if let Valid::UntilLongAgo = valid {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 2, 3);
        }
        let key = KeyPair::generate().unwrap();
        let signed = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{name}.crt")), signed.pem()).unwrap();
        std::fs::write(self.path(&format!("{name}.key")), key.serialize_pem()).unwrap();
    }

    /// An authority that has given a certificate to `server`, and the options of the server.
    pub(crate) fn with_server() -> (Self, Vec<String>) {
        let authority = Self::new();
        authority.give("server", Valid::Now);
        let mut options: Vec<_> = ["--wal", "off", "--tls-listen", "127.0.0.1:0"]
            .map(str::to_owned)
            .into();
        options.extend(["--tls-cert-file".to_owned(), authority.text("server.crt")]);
        options.extend(["--tls-key-file".to_owned(), authority.text("server.key")]);
        (authority, options)
    }

    /// What a client trusts and shows: the certificate called `name`, if one is.
    pub(crate) fn client(&self, name: Option<&str>) -> ClientOptions {
        let file = |end: &str| name.map(|name| self.path(&format!("{name}.{end}")));
        ClientOptions {
            tls: true,
            cacert: Some(self.path("ca.crt")),
            cert: file("crt"),
            key: file("key"),
        }
    }

    /// Puts one file in the place of another.
    pub(crate) fn replace(&self, with: &str, what: &str) {
        std::fs::copy(self.path(with), self.path(what)).unwrap();
    }
}

/// Options as the harness takes them.
pub(crate) fn words(options: &[String]) -> Vec<&str> {
    options.iter().map(String::as_str).collect()
}

/// Whether it is there, for tests that name a file in an error.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}
