//! Client-side caching, which is refused: `CLIENT TRACKING ON|OFF`,
//! `CLIENT CACHING YES|NO`, `CLIENT TRACKINGINFO`, `CLIENT GETREDIR`.
//!
//! A cache that is invalidated by every sample gains nothing, so tracking is not
//! supported.

use crate::command::call::{Call, Outcome};
use crate::command::fault::{Fault, SYNTAX};

pub(super) fn tracking(call: &mut Call<'_>) -> Outcome {
    if call.args.is(2, "ON") {
        return Fault::refuse(
            "ERR Latewood has no client-side caching: CLIENT TRACKING cannot be turned on (docs/compatibility.md)",
        );
    }
    if !call.args.is(2, "OFF") || call.args.len() > 3 {
        return Err(SYNTAX);
    }
    call.ok()
}

pub(super) fn caching(_: &mut Call<'_>) -> Outcome {
    Fault::refuse(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or \
         OPTOUT mode enabled",
    )
}

pub(super) fn info(call: &mut Call<'_>) -> Outcome {
    let mut reply = call.reply();
    reply.map(3);
    reply.key("flags").set(1);
    reply.key("off").bulk("redirect");
    reply.integer(-1);
    reply.key("prefixes").array(0);
    Ok(())
}
