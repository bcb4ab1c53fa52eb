//! Why a command is denied, in the words of Redis.

use latewood_model::named;

named! {
    /// The first thing that is not allowed, by its name in ACL LOG. A later one is nearer to being
    /// allowed: of several selectors the nearest is reported.
    #[derive(PartialOrd, Ord)]
    pub(crate) enum Denied {
        Command => "command",
        Key => "key",
        Channel => "channel",
    }
}

/// Why a command may not run, and what of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What is not allowed.
    pub(crate) what: Denied,
    /// The command's full name, the key or the channel.
    pub(crate) object: Vec<u8>,
}

impl Refusal {
    /// The error reply.
    pub(crate) fn text(&self, user: &[u8]) -> String {
        match self.what {
            Denied::Command => format!(
                "NOPERM User {} has no permissions to run the '{}' command",
                String::from_utf8_lossy(user),
                String::from_utf8_lossy(&self.object)
            ),
            Denied::Key => "NOPERM No permissions to access a key".to_owned(),
            Denied::Channel => "NOPERM No permissions to access a channel".to_owned(),
        }
    }

    /// The error in the reply of EXEC, for a command that was queued when it
    /// was allowed.
    pub(crate) fn exec_text(&self) -> String {
        let reason = match self.what {
            Denied::Command => "no permission to execute the command or subcommand",
            Denied::Key => "no permission to touch the specified keys",
            Denied::Channel => "no permission to access one of the channels used as arguments",
        };
        format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and \
             the EXEC call. This command is no longer allowed for the following reason: {reason}"
        )
    }

    /// The answer of ACL DRYRUN, which is not an error.
    pub(crate) fn dry_run_text(&self, user: &[u8]) -> String {
        let user = String::from_utf8_lossy(user);
        let object = String::from_utf8_lossy(&self.object);
        match self.what {
            Denied::Command => {
                format!("User {user} has no permissions to run the '{object}' command")
            }
            Denied::Key | Denied::Channel => format!(
                "User {user} has no permissions to access the '{object}' {}",
                self.what.name()
            ),
        }
    }
}
