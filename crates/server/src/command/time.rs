//! `TIME`: the server's clock, as seconds since the Unix epoch and the
//! microseconds of that second.

use super::call::{Call, Outcome};
use super::spec::Spec;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) const SPECS: &[Spec] = &[Spec::of_group("server", &["loading", "stale", "fast"])
    .named("time", apply)
    .about("Returns the time of the server: seconds and microseconds.")];

fn apply(call: &mut Call<'_>) -> Outcome {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut reply = call.reply();
    reply.array(2);
    reply.bulk(now.as_secs().to_string());
    reply.bulk(now.subsec_micros().to_string());
    Ok(())
}
