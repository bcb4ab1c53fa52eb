//! The routes without sockets, for the fuzz target: a request in, an answer out.

use super::context::Context;
use super::routes;
use super::work::Work;
use crate::acl::Users;
use crate::command::{CATALOGUE, all_commands};
use crate::messaging::Mailboxes;
use crate::observe::Observe;
use crate::options::testing::{open_on, shared_for};
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use latewood_engine::io::sim::SimDisk;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

/// What requests run on.
pub struct Http(Runtime);

impl Default for Http {
    fn default() -> Self {
        let runtime = Builder::new_current_thread().enable_all().build();
        Self(runtime.expect("the system has descriptors left"))
    }
}

impl Http {
    /// Sends requests, one after the other, to a server over an empty simulated disk; the status
    /// and body of each answer. A request is its method, its path, its headers and its body; one
    /// that is not HTTP is left out.
    pub fn send<'a>(
        &self,
        requests: impl Iterator<Item = (&'a [u8], &'a [u8], Vec<(&'a [u8], &'a [u8])>, Vec<u8>)>,
    ) -> Vec<(u16, Vec<u8>)> {
        let context = Context {
            shared: shared_for(
                Users::new(&CATALOGUE),
                Observe::new(all_commands()),
                open_on(&SimDisk::new(), false),
                Mailboxes::default(),
            ),
            rules: crate::rules::none(),
            work: Arc::new(Work::new(&crate::state::Promql::default())),
            certified: None,
            peer: Context::NOBODY,
            alive: tokio::sync::mpsc::channel(1).0,
        };
        let service = TowerToHyperService::new(routes(context));
        let mut answers = Vec::new();
        for (method, path, headers, body) in requests {
            let request = Request::builder().method(method).uri(path);
            let add =
                |request: axum::http::request::Builder, (name, value)| request.header(name, value);
            let request = headers
                .into_iter()
                .fold(request, add)
                .body(Body::from(body));
            let Ok(request) = request else { continue };
            answers.push(self.0.block_on(async {
                let Ok(answer) = service.call(request).await;
                let status = answer.status().as_u16();
                // An answer in parts may end early, where a reader would see that.
                let body = answer.into_body().collect().await;
                (
                    status,
                    body.map_or_else(|_| Vec::new(), |body| body.to_bytes().to_vec()),
                )
            }));
        }
        answers
    }
}
