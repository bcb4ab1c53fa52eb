//! Options of the protocols beside Redis'.

use super::kind::{Kind, Written, word};
use super::range::FUTURE_LIMIT;
use super::row::{Row, computed, row};
use crate::state::Http;
use latewood_model::DuplicatePolicy;
use latewood_wire::influx::Precision;

/// The rows of this file.
pub(super) const ROWS: &[Row] = &[
    computed(
        "http ADDR:PORT|off",
        "127.0.0.1:8086, if it is free",
        Kind::Form {
            takes: "an address or off",
            written: Written::Text,
            put: |settings, text| {
                settings.senders.http = match text {
                    "off" | "" => Http::Off,
                    address => Http::At(address.to_owned()),
                };
                Ok(())
            },
            show: |settings| settings.senders.http.address().unwrap_or("off").to_owned(),
        },
        "Address and port to serve HTTP; off disables it",
    ),
    row(
        "http-hosts NAME,...",
        "",
        Kind::List(|settings| &mut settings.senders.http_hosts, Some(',')),
        "Names of this server in HTTP requests, and hosts of pages that may send them; needed \
         for registered names while there is no password",
    ),
    row(
        "console on|off",
        "on",
        Kind::OnOff(|settings| &mut settings.senders.console),
        "Serve the console to browsers, at the address of HTTP",
    ),
    row(
        "influx-db-label NAME",
        "",
        Kind::Optional(|settings| &mut settings.senders.influx_db_label),
        "Label that the database or bucket of an InfluxDB sender becomes; none ignores it",
    ),
    row(
        "sender-duplicate-policy POLICY",
        "last",
        word!(
            "duplicate policy",
            DuplicatePolicy::parse,
            senders.duplicate_policy,
            "block, first, last, min, max or sum"
        ),
        "Duplicate policy of series that protocols other than Redis create",
    ),
    row(
        "future-limit TIME",
        "1d",
        Kind::Time(FUTURE_LIMIT, |settings| {
            &mut settings.senders.future_limit_ms
        }),
        "How far ahead of the clock a timestamp of those protocols may be; 0 is unlimited",
    ),
    row(
        "opentsdb ADDR:PORT",
        "",
        Kind::Optional(|settings| &mut settings.senders.opentsdb),
        "Address and port for the OpenTSDB telnet protocol, such as 127.0.0.1:4242; it has \
         no password",
    ),
    row(
        "akumuli ADDR:PORT",
        "",
        Kind::Optional(|settings| &mut settings.senders.akumuli),
        "Address and port for the Akumuli protocol, such as 127.0.0.1:8282; it has no \
         password",
    ),
    row(
        "influx-tcp ADDR:PORT",
        "",
        Kind::Optional(|settings| &mut settings.senders.influx_tcp),
        "Address and port for InfluxDB line protocol over TCP, such as 127.0.0.1:8094; it \
         has no password",
    ),
    row(
        "influx-udp ADDR:PORT",
        "",
        Kind::Optional(|settings| &mut settings.senders.influx_udp),
        "Address and port for InfluxDB line protocol over UDP, such as 127.0.0.1:8089",
    ),
    row(
        "influx-precision UNIT",
        "ns",
        word!(
            "precision",
            parse_precision,
            senders.influx_precision,
            "ns, us, ms, s, m or h"
        ),
        "Unit of the timestamps of these two",
    ),
];

fn parse_precision(name: &[u8]) -> Option<Precision> {
    Precision::parse(std::str::from_utf8(name).ok()?)
}
