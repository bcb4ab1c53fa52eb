//! Options of several nodes that share a log.

use super::cluster::NEEDS_LOG;
use super::kind::{Kind, Written};
use super::range::STALENESS;
use super::row::{Need, Row, row};
use crate::base::address;

/// Only several servers use it.
pub(super) const NEEDS_CLUSTER: Need = |settings| {
    let is_on = settings.cluster.nodes.is_on;
    (!is_on).then_some("cluster on, which lets other servers follow and read the log")
};

pub(super) const ROWS: &[Row] = &[
    row("cluster on|off", "off")
        .is(Kind::OnOff(|of| &mut of.cluster.nodes.is_on))
        .help(
            "With --log: several servers share the log. Each start follows it first, answers reads, \
             and owns the log when no other server does",
        )
        .needs(NEEDS_LOG),
    row("max-staleness TIME", "5s")
        .is(Kind::Time(STALENESS, |of| &mut of.cluster.nodes.staleness_max_ms))
        .help("With --cluster: how old an answer of a server that follows the log may be")
        .needs(NEEDS_CLUSTER),
    row("advertise HOST:PORT", "")
        .is(Kind::Address(|of| &mut of.cluster.nodes.redis))
        .help(
            "With --cluster: where clients reach this server (default: the first address of \
             --listen). Its host is also that of --read-listen and --http where these say none",
        )
        .needs(NEEDS_CLUSTER),
    row("advertise-http [https://]HOST:PORT", "")
        .is(Kind::Form {
            takes: "an address, after https:// where it speaks TLS",
            written: Written::Text,
            put: |settings, text| {
                let given = Some(text).filter(|text| !text.is_empty());
                if let Some(text) = given {
                    address::check(text.strip_prefix("https://").unwrap_or(text))?;
                }
                settings.cluster.nodes.http = given.map(str::to_owned);
                Ok(())
            },
            show: |settings| settings.cluster.nodes.http.clone().unwrap_or_default(),
        })
        .help("With --cluster: where other servers send the writes that come to them by HTTP (default: the address of --http)")
        .needs(NEEDS_CLUSTER),
];
