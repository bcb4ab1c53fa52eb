//! `LATEWOOD subcommand`: what no other server has.
//!
//! SETTLE merges every late sample into its chunk and waits for it; HELP lists
//! the subcommands.

use super::registry::{Action, Keys, Spec};
use super::{Call, Outcome};

const SETTLE: Spec = Spec {
    name: "settle",
    arity: 2,
    flags: &["admin"],
    keys: Keys::NONE,
    group: "latewood",
    syntax: "",
    summary: "Merges every late sample into its chunk and waits for it.",
    action: Action::Apply(settle),
};

pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "latewood",
    arity: -2,
    flags: &["admin"],
    keys: Keys::NONE,
    group: "latewood",
    syntax: "SETTLE|HELP",
    summary: "What only Latewood has.",
    action: Action::Container(&[
        SETTLE,
        Spec {
            name: "help",
            summary: "Lists these subcommands.",
            action: Action::Apply(help),
            ..SETTLE
        },
    ]),
}];

fn settle(call: &mut Call<'_>) -> Outcome {
    call.shared.db.settle()?;
    call.reply().ok();
    Ok(())
}

fn help(call: &mut Call<'_>) -> Outcome {
    super::docs::reply_help(call, "latewood");
    Ok(())
}
