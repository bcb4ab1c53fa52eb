//! The place of a backup: a URL and the store behind it.
//!
//! Credentials and settings come from the environment variables that the tools of
//! each provider use: `AWS_*`, `AZURE_*`, `GOOGLE_*`.

use crate::error::{Error, Result};
use latewood_tls::install_provider;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreScheme, parse_url_opts};
use std::sync::Arc;
use url::Url;

/// Prefixes of the names of settings.
const SETTINGS: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];
/// The supported URLs.
const SCHEMES: &str = "s3://BUCKET/PATH, gs://BUCKET/PATH, az://CONTAINER/PATH, file:///PATH, \
                       and, to restore only, http:// and https://";

/// A folder in an object store.
#[derive(Clone, Debug)]
pub struct Place {
    pub(crate) store: Arc<dyn ObjectStore>,
    prefix: Path,
    pub(crate) url: String,
    pub(crate) is_web: bool,
}

/// Whether an argument is a URL, not a folder.
pub fn is_url(text: &str) -> bool {
    text.contains("://")
}

impl Place {
    /// The place that a URL names.
    ///
    /// # Errors
    /// `Url` if it is invalid, or settings are missing or wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let refused = |reason: String| Error::Url {
            url: text.to_owned(),
            reason,
        };
        let url = Url::parse(text)
            .map_err(|error| refused(format!("not a URL ({error}); use {SCHEMES}")))?;
        if url.query().is_some() || url.fragment().is_some() {
            let reason = "? and # are not supported in a URL; settings are environment variables";
            return Err(refused(reason.to_owned()));
        }
        let scheme = ObjectStoreScheme::parse(&url);
        let is_web = matches!(scheme, Ok((ObjectStoreScheme::Http, _)));
        let (store, prefix) = match scheme {
            // Files are synced to disk before the upload ends.
            Ok((ObjectStoreScheme::Local, prefix)) => {
                let store = LocalFileSystem::new().with_fsync(true);
                (Box::new(store) as Box<dyn ObjectStore>, prefix)
            }
            Ok((ObjectStoreScheme::Memory, _)) | Err(_) => {
                return Err(refused(format!("unsupported URL; use {SCHEMES}")));
            }
            Ok(_) => {
                install_provider();
                let settings = settings(&url);
                require_secure(&settings).map_err(refused)?;
                parse_url_opts(&url, settings).map_err(|error| refused(error.to_string()))?
            }
        };
        Ok(Self {
            is_web,
            ..Self::of(Arc::from(store), prefix, text)
        })
    }

    /// The folder `prefix` of a store, called `url` in messages.
    pub fn of(store: Arc<dyn ObjectStore>, prefix: Path, url: &str) -> Self {
        Self {
            store,
            prefix,
            url: url.trim_end_matches('/').to_owned(),
            is_web: false,
        }
    }

    /// The folder `name` of this place; it may contain `/`.
    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        Self {
            store: self.store.clone(),
            prefix: self.object(name),
            url: self.call(name),
            is_web: self.is_web,
        }
    }

    /// Refuses a place that can only be read.
    ///
    /// # Errors
    /// `Url`
    pub fn require_writable(&self) -> Result<()> {
        if self.is_web {
            return Err(Error::Url {
                url: self.url.clone(),
                reason: "http:// and https:// are supported for restore only".to_owned(),
            });
        }
        Ok(())
    }

    /// The URL as given.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The folder; `None` for the whole store.
    pub(crate) fn prefix(&self) -> Option<&Path> {
        (!self.prefix.as_ref().is_empty()).then_some(&self.prefix)
    }

    /// The object of the file `name`, which may contain `/`.
    pub(crate) fn object(&self, name: &str) -> Path {
        name.split('/')
            .fold(self.prefix.clone(), |path, part| path.join(part))
    }

    /// The name of an object in messages.
    pub fn call(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }
}

fn settings(url: &Url) -> Vec<(String, String)> {
    let given = std::env::vars_os().filter_map(|(name, value)| {
        let (name, value) = (name.into_string().ok()?, value.into_string().ok()?);
        let is_setting = SETTINGS.iter().any(|prefix| name.starts_with(prefix));
        is_setting.then_some((name, value))
    });
    let mut settings: Vec<_> = given.collect();
    if url.scheme() == "http" {
        // The URL says http explicitly.
        settings.push(("allow_http".to_owned(), "true".to_owned()));
    }
    settings
}

/// Refuses an endpoint without TLS that is not allowed: each request would fail, as if the store
/// were away.
fn require_secure(settings: &[(String, String)]) -> std::result::Result<(), String> {
    let is_plain = |(name, value): &&(String, String)| {
        name.starts_with("AWS_ENDPOINT") && value.starts_with("http://")
    };
    let is_allowed = |(name, value): &(String, String)| {
        let value = value.to_ascii_lowercase();
        name == "AWS_ALLOW_HTTP" && ["1", "true", "on", "yes", "y"].contains(&value.as_str())
    };
    match settings.iter().find(is_plain) {
        Some((name, _)) if !settings.iter().any(is_allowed) => Err(format!(
            "{name} is an address without TLS, which needs AWS_ALLOW_HTTP=true"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_without_tls_must_be_allowed() {
        let given = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let endpoint = given("AWS_ENDPOINT_URL", "http://127.0.0.1:9000");
        let refused = require_secure(std::slice::from_ref(&endpoint)).unwrap_err();
        assert!(refused.contains("AWS_ALLOW_HTTP=true"), "{refused}");
        assert!(require_secure(&[endpoint, given("AWS_ALLOW_HTTP", "true")]).is_ok());
        assert!(require_secure(&[given("AWS_ENDPOINT_URL", "https://host")]).is_ok());
    }

    #[test]
    fn urls_are_taken_or_refused_in_words() {
        for text in [
            "s3://bucket/a/b/",
            "gs://bucket/a",
            "file:///tmp/a b",
            "https://host/a",
        ] {
            assert!(is_url(text));
            let place = Place::parse(text).unwrap();
            assert_eq!(place.is_web, text.starts_with("http"));
        }
        for (text, wanted) in [
            ("s3://bucket/a?region=x", "? and #"),
            ("ftp://host/a", "unsupported"),
            ("memory:///a", "unsupported"),
            ("file://host/a", "unsupported"),
            ("s3:///a", "s3:///a"),
            ("/tmp/a", "not a URL"),
        ] {
            let refused = Place::parse(text).unwrap_err().to_string();
            assert!(refused.contains(wanted), "{refused}");
        }
        assert!(!is_url("/backup/monday"));
    }

    #[test]
    fn objects_lie_below_the_folder() {
        let place = Place::parse("file:///tmp/backup/").unwrap();
        assert_eq!(place.object("wal/x").as_ref(), "tmp/backup/wal/x");
        assert_eq!(place.call("wal/x"), "file:///tmp/backup/wal/x");
    }
}
