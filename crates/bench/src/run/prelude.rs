//! What every measurement imports.

pub(super) use serde_json::{Value, json};

pub(super) use super::options::mode;
pub(super) use super::report::{Report, merge};
pub(super) use crate::base::control::Control;
pub(super) use crate::base::error::{Doing, Error, Result};
