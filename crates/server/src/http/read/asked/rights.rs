//! What the user of a request may do.

use super::Asked;
use crate::acl::log::HTTP;
use crate::acl::{Denied, User};
use crate::http::answer::Answer;
use crate::http::context::Context;
use axum::http::StatusCode;

/// Refuses a user who may not run the command of this name.
///
/// # Errors
/// 403, which ACL LOG has too.
pub(super) fn demand(context: &Context, user: &User, command: &str) -> Result<(), Answer> {
    if user.may_run(command) {
        return Ok(());
    }
    let log = &context.shared.runtime.users.log;
    log.note_sender(HTTP, Some(Denied::Command), command.as_bytes(), &user.name);
    let command = command.to_ascii_uppercase().replace('|', " ");
    let text = format!("permission to run {command} is required");
    Err(Answer::new(StatusCode::FORBIDDEN, text))
}

impl Asked {
    /// The name of the user who asks.
    pub(in crate::http::read) fn user_name(&self) -> &[u8] {
        &self.user.name
    }

    /// Whether that user may read what is under `key`.
    pub(in crate::http::read) fn may_read(&self, key: &[u8]) -> bool {
        self.user.may_read(self.endpoint.command(), key)
    }

    /// The same with another command.
    pub(in crate::http::read) fn may_read_by(&self, command: &str, key: &[u8]) -> bool {
        self.user.may_read(command, key)
    }

    /// Refuses where that user may not run the command of this name.
    ///
    /// # Errors
    /// 403, which ACL LOG has too.
    pub(in crate::http::read) fn demand(&self, command: &str) -> Result<(), Answer> {
        demand(&self.context, &self.user, command)
    }

    /// Refuses where that user may not change what is under `key` by this command.
    ///
    /// # Errors
    /// 403, which ACL LOG has too.
    pub(in crate::http::read) fn demand_change(
        &self,
        command: &str,
        key: &[u8],
    ) -> Result<(), Answer> {
        if self.user.may_change(command, key) {
            return Ok(());
        }
        let log = &self.context.shared.runtime.users.log;
        log.note_sender(HTTP, Some(Denied::Key), key, &self.user.name);
        let text = "no permission to delete all matching series; nothing was deleted";
        Err(Answer::new(StatusCode::FORBIDDEN, text))
    }

    /// Whether that user may run the command of this name.
    pub(in crate::http::read) fn may_run(&self, command: &str) -> bool {
        self.user.may_run(command)
    }

    /// Whether some series may be there that the user may not read.
    pub(in crate::http::read) fn is_restricted(&self) -> bool {
        !self.user.is_unrestricted
    }

    /// Whether that user may read every key there may be.
    pub(in crate::http::read) fn may_read_all(&self) -> bool {
        self.may_read_all_by(self.endpoint.command())
    }

    /// The same with another command.
    pub(in crate::http::read) fn may_read_all_by(&self, command: &str) -> bool {
        self.user.may_run_on_all_keys(command)
    }
}
