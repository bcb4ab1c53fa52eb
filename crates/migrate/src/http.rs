//! The HTTP side of a server that samples are sent to or read from.
//!
//! Tested by the imports and exports that use it.

use crate::args::TargetLogin;
use crate::error::{Doing, Error, Result};
use crate::other_port;
use latewood_tls::{ClientOptions, runtime, with_hint};
use reqwest::header::CONTENT_TYPE;
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use std::io::Write;
use std::time::Duration;
use tokio::runtime::Runtime;

/// The port of a server named without one.
const PORT_DEFAULT: u16 = 8086;
/// Timeout of a request; longer than a server needs for one piece.
const PATIENCE: Duration = Duration::from_secs(600);
/// Timeout of a whole file that is read.
const FILE_PATIENCE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Attempts on a busy server, one second apart.
pub(crate) const TRIES: u32 = 60;
/// Longest response that is read.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A path of a server.
pub(crate) struct Http {
    server: String,
    address: String,
    is_tls: bool,
    runtime: &'static Runtime,
    client: Client,
    url: Url,
    token: Option<String>,
}

impl Http {
    /// Of the server `to`; nothing is sent yet.
    ///
    /// # Errors
    /// For an address or TLS options that are none.
    pub(crate) fn new(
        to: &str,
        path: &str,
        login: &TargetLogin,
        tls: &ClientOptions,
    ) -> Result<Self> {
        let failed = |reason: String| {
            let server = to.to_owned();
            Error::Connect { server, reason }
        };
        let (host, is_tls) = tls.split(to).map_err(failed)?;
        // Without TLS no authority is needed, and a small system may have none.
        let config = if is_tls {
            tls.config().map_err(failed)?
        } else {
            latewood_tls::nothing_trusted()
        };
        let client = Client::builder()
            .tls_backend_preconfigured(config)
            .timeout(PATIENCE)
            .read_timeout(PATIENCE)
            .redirect(Policy::none());
        let client = client.build().map_err(|error| failed(reason(&error)))?;
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| !port.ends_with(']'));
        let port = if has_port {
            String::new()
        } else {
            format!(":{PORT_DEFAULT}")
        };
        let address = format!("{host}{port}");
        let scheme = if is_tls { "https" } else { "http" };
        let url = Url::parse(&format!("{scheme}://{address}{path}"));
        Ok(Self {
            server: to.to_owned(),
            is_tls,
            runtime: runtime().map_err(|error| failed(error.to_string()))?,
            client,
            url: url.map_err(|error| failed(error.to_string()))?,
            address,
            token: token(login),
        })
    }

    /// The URL, for its parameters.
    pub(crate) fn url(&mut self) -> &mut Url {
        &mut self.url
    }

    /// Sends a body: status and start of the body of the response; `None` for one that everything
    /// is stored.
    ///
    /// # Errors
    /// Where there is no response.
    pub(crate) fn post(
        &self,
        body: Vec<u8>,
        head: &[(&'static str, &'static str)],
    ) -> Result<Option<(StatusCode, String)>> {
        let mut request = self.client.post(self.url.clone()).body(body);
        for (name, value) in head {
            request = request.header(*name, *value);
        }
        let answered = self.runtime.block_on(answer(self.with_login(request)));
        answered.map_err(|error| self.unreached(&error))
    }

    /// Asks for a file of this type and writes it to `out`, piece by piece; `progress` hears their
    /// sizes. `name` is that of the file, for errors.
    ///
    /// # Errors
    /// Where there is no response, it is an error or something else, or ends early; where `out` fails.
    pub(crate) fn get(
        &self,
        content_type: &str,
        out: &mut dyn Write,
        name: &str,
        progress: &mut dyn FnMut(usize),
    ) -> Result<()> {
        let request = self.client.get(self.url.clone()).timeout(FILE_PATIENCE);
        let request = self.with_login(request);
        let mut response = self
            .runtime
            .block_on(async { request.send().await })
            .map_err(|error| self.unreached(&error))?;
        if response.status() != StatusCode::OK {
            let status = response.status();
            let body = self.runtime.block_on(text(&mut response));
            let body = body.map_err(|error| self.unreached(&error))?;
            return Err(self.refused(status, &body));
        }
        let given = response.headers().get(CONTENT_TYPE);
        if given.is_none_or(|given| given != content_type) {
            return Err(Error::Reply {
                server: self.server.clone(),
                command: self.url.path().to_owned(),
            });
        }
        let mut next = || self.runtime.block_on(response.chunk());
        while let Some(piece) = next().map_err(|error| self.cut(&error))? {
            out.write_all(&piece).doing(format!("write {name}"))?;
            progress(piece.len());
        }
        out.flush().doing(format!("write {name}"))
    }

    fn with_login(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.token {
            Some(token) => request.header("Authorization", token),
            None => request,
        }
    }

    fn unreached(&self, error: &reqwest::Error) -> Error {
        let (server, reason) = (self.server.clone(), reason(error));
        Error::Connect { server, reason }
    }

    fn cut(&self, error: &reqwest::Error) -> Error {
        let (server, reason) = (self.server.clone(), reason(error));
        Error::Cut { server, reason }
    }

    /// An error of the first request, which may have gone to another port than that of HTTP.
    pub(crate) fn explained(&self, error: Error) -> Error {
        match error {
            Error::Connect { server, reason } if !self.is_tls => Error::Connect {
                server,
                reason: other_port::as_other_than_http(&self.address[..]).unwrap_or(reason),
            },
            other => other,
        }
    }

    /// The server said no.
    pub(crate) fn refused(&self, status: StatusCode, body: &str) -> Error {
        let said: String = body.chars().take(500).collect();
        Error::Refused {
            server: self.server.clone(),
            command: self.url.path().to_owned(),
            text: format!("{status}: {}", said.trim()),
        }
    }
}

/// The login, as a header has it.
fn token(login: &TargetLogin) -> Option<String> {
    let (user, password) = (&login.to_user, &login.to_password);
    if user.is_none() && password.is_none() {
        return None;
    }
    let user = user.as_deref().unwrap_or("default");
    let password = password.as_deref().unwrap_or_default();
    Some(format!("Token {user}:{password}"))
}

async fn answer(request: RequestBuilder) -> reqwest::Result<Option<(StatusCode, String)>> {
    let mut response = request.send().await?;
    let status = response.status();
    if status == StatusCode::NO_CONTENT {
        return Ok(None);
    }
    Ok(Some((status, text(&mut response).await?)))
}

/// The start of a body.
async fn text(response: &mut Response) -> reqwest::Result<String> {
    let mut body = Vec::new();
    while body.len() < ANSWER_BYTES_MAX
        && let Some(piece) = response.chunk().await?
    {
        body.extend_from_slice(&piece);
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Why a request failed: the error at the bottom, as those above only name the request.
fn reason(error: &reqwest::Error) -> String {
    let mut bottom: &(dyn std::error::Error + 'static) = error;
    while let Some(source) = bottom.source() {
        bottom = source;
    }
    with_hint(bottom)
}
