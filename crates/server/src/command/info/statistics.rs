//! The section `stats` of INFO: what connections and commands did.

use super::source::{Source, field};
use crate::acl::log::Refusals;
use crate::messaging::Kind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub(super) fn statistics(text: &mut String, source: &Source<'_>) {
    let shared = source.shared;
    let counters = &shared.counters;
    let observe = &shared.observe;
    let rates = observe.rates.at(Instant::now(), shared.counters.reading());
    let mut count = |name, counter: &AtomicU64| field(text, name, counter.load(Ordering::Relaxed));
    count("total_connections_received", &counters.connections);
    count("total_commands_processed", &counters.commands);
    count("total_net_input_bytes", &counters.bytes_in);
    count("total_net_output_bytes", &counters.bytes_out);
    count("timed_out_connections", &counters.timeouts);
    count("tls_handshakes_failed", &source.shared.tls.failed);
    let rejected = counters.connections_rejected.get().count;
    field(text, "rejected_connections", rejected);
    let commands = rates.commands.round();
    field(text, "instantaneous_ops_per_sec", commands);
    let (kib_in, kib_out) = (rates.kib_in, rates.kib_out);
    field(
        text,
        "instantaneous_input_kbps",
        format_args!("{kib_in:.2}"),
    );
    field(
        text,
        "instantaneous_output_kbps",
        format_args!("{kib_out:.2}"),
    );
    let channels = shared.channels();
    field(text, "pubsub_channels", channels.len(Kind::Channel));
    field(text, "pubsub_patterns", channels.len(Kind::Pattern));
    field(text, "pubsubshard_channels", channels.len(Kind::Shard));
    field(
        text,
        "client_output_buffer_limit_disconnections",
        channels.cut_off.load(Ordering::Relaxed),
    );
    let stats = source.stats();
    field(text, "keyspace_hits", stats.reads_found);
    field(text, "keyspace_misses", stats.reads_missed);
    field(text, "expired_keys", stats.series_expired);
    field(text, "evicted_keys", 0);
    field(text, "total_error_replies", observe.errors.total());
    let log = &shared.runtime.users.log;
    for (name, which) in [
        ("auth", Refusals::Auth),
        ("cmd", Refusals::Command),
        ("key", Refusals::Key),
        ("channel", Refusals::Channel),
    ] {
        field(text, &format!("acl_access_denied_{name}"), log.count(which));
    }
}
