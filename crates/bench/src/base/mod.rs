//! Errors, threads, and how to speak to servers: what everything else stands on.

pub(crate) mod address;
pub(crate) mod control;
pub(crate) mod error;
pub(crate) mod files;
pub(crate) mod http;
pub(crate) mod reply;
pub(crate) mod threads;
