//! Manages users and their permissions.
//!
//! A [`User`] has passwords and selectors; a [`Selector`](selector::Selector)
//! compiles rules into a set of command numbers, patterns of keys and patterns
//! of channels. [`Users`] holds them by name. A session carries a [`Permit`]:
//! an `Arc` of its user and the epoch it saw it in, so that a command of a user
//! that may do everything costs one load and one comparison.
//!
//! The floor of commands hands in the catalogue of commands. Tested by
//! `command/acl/tests.rs` (against a naive evaluator) and `tests/resp/acl.rs`.

pub(crate) mod catalogue;
pub(crate) mod category;
mod denied;
pub(crate) mod file;
pub(crate) mod log;
pub(crate) mod password;
mod permit;
mod selector;
mod user;
mod users;

pub(crate) use denied::{Denied, Refusal};
pub(crate) use permit::{Permit, Refreshed};
pub(crate) use selector::Request;
#[cfg(test)]
pub(crate) use user::split;
pub(crate) use user::{BadRule, User, join_selectors};
pub(crate) use users::{DEFAULT, Users};
