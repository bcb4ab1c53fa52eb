//! Options of the protocols beside Redis'.

use super::kind::{Kind, Written, word};
use super::range::{RETENTION, SELF_METRICS, TIME_LIMIT};
use super::row::{Row, computed, row};
use crate::base::address;
use crate::state::Http;
use latewood_model::DuplicatePolicy;
use latewood_wire::otlp::Translation;

pub(super) const ROWS: &[Row] = &[
    computed("http ADDR:PORT|off", "127.0.0.1:8086, if it is free")
        .is(Kind::Form {
            takes: "an address or off",
            written: Written::Text,
            put: |settings, text| {
                settings.senders.http = match text {
                    "off" | "" => Http::Off,
                    text => {
                        address::check(text)?;
                        Http::At(text.to_owned())
                    }
                };
                Ok(())
            },
            show: |settings| settings.senders.http.address().unwrap_or("off").to_owned(),
        })
        .help("Address and port to serve HTTP; off disables it"),
    row("http-hosts NAME,...", "")
        .is(Kind::Hosts(|of| &mut of.senders.http_hosts))
        .help(
            "Names of this server in HTTP requests, and hosts of pages that may send them; \
             needed for registered names while there is no password",
        ),
    row("console on|off", "on")
        .is(Kind::OnOff(|of| &mut of.senders.console))
        .help("Serve the console to browsers, at the address of HTTP"),
    row("self-metrics TIME", "0")
        .is(Kind::Time(SELF_METRICS, |of| {
            &mut of.senders.self_metrics_ms
        }))
        .help(
            "How often the server writes its own figures, those of /metrics, to series with the \
             label __self__; 0 is never",
        ),
    row("self-retention TIME", "30d")
        .is(Kind::Time(RETENTION, |of| {
            &mut of.senders.self_retention_ms
        }))
        .help("Retention of the series that --self-metrics writes (0 = no retention of their own)"),
    row("lateness-label NAME", "")
        .is(Kind::Form {
            takes: "a label name other than __name__",
            written: Written::Text,
            put: |settings, text| {
                if text == "__name__" {
                    return Err("late samples are counted by metric anyway".to_owned());
                }
                settings.senders.lateness_label = text.to_owned();
                Ok(())
            },
            show: |settings| settings.senders.lateness_label.clone(),
        })
        .help("Label by whose values late samples are counted, beside metrics and senders; none is none")
        .live(|shared, settings| {
            let lateness = &shared.observe.lateness;
            lateness.choose_label(&settings.senders.lateness_label);
            Ok(())
        }),
    row("influx-db-label NAME", "")
        .is(Kind::Form {
            takes: "a label name other than __name__",
            written: Written::Text,
            put: |settings, text| {
                if text == "__name__" {
                    return Err("__name__ is the metric of every series".to_owned());
                }
                let name = Some(text.to_owned()).filter(|text| !text.is_empty());
                settings.senders.influx_db_label = name;
                Ok(())
            },
            show: |settings| settings.senders.influx_db_label.clone().unwrap_or_default(),
        })
        .help("Label that the database or bucket of an InfluxDB sender becomes; none ignores it"),
    row("sender-duplicate-policy POLICY", "last")
        .is(word!(
            "duplicate policy",
            DuplicatePolicy::of_name,
            senders.duplicate_policy,
            "block, first, last, min, max or sum"
        ))
        .help("Duplicate policy of series that protocols other than Redis create"),
    row("future-limit TIME", "1d")
        .is(Kind::Time(TIME_LIMIT, |of| {
            &mut of.senders.time_limits.future_ms
        }))
        .help("How far ahead of the clock a timestamp of those protocols may be; 0 is unlimited"),
    row("past-limit TIME", "0")
        .is(Kind::Time(TIME_LIMIT, |of| {
            &mut of.senders.time_limits.past_ms
        }))
        .help("How far behind the clock a timestamp of those protocols may be; 0 is unlimited"),
    row("redis-future-limit TIME", "0")
        .is(Kind::Time(TIME_LIMIT, |of| &mut of.time_limits.future_ms))
        .help("The same as --future-limit for TS.ADD, TS.MADD, TS.INCRBY and TS.DECRBY"),
    row("redis-past-limit TIME", "0")
        .is(Kind::Time(TIME_LIMIT, |of| &mut of.time_limits.past_ms))
        .help("The same as --past-limit for those commands"),
    row("otlp-promote ATTRIBUTE,...", "")
        .is(Kind::List(|of| &mut of.senders.otlp.promoted, Some(',')))
        .help(
            "Resource attributes of OTLP that become labels of all series, such as host.name; * \
             for all; may be given several times",
        ),
    row("otlp-translation STRATEGY", "NoTranslation")
        .is(word!(
            "translation strategy",
            parse_translation,
            senders.otlp.translation,
            "NoTranslation, UnderscoreEscapingWithSuffixes, UnderscoreEscapingWithoutSuffixes or \
             NoUTF8EscapingWithSuffixes"
        ))
        .help("How names of OTLP are translated; the strategies are those of Prometheus"),
    row("otlp-scope-labels on|off", "off")
        .is(Kind::OnOff(|of| &mut of.senders.otlp.scope_labels))
        .help(
            "Make labels of name, version, schema and attributes of OTLP's instrumentation \
             scopes",
        ),
    row("listen-lines PROTOCOL=ADDR:PORT,...", "")
        .is(Kind::LinePorts(|of| &mut of.senders.lines))
        .help(
            "Address and port for a line protocol: opentsdb, akumuli, influx-tcp or influx-udp; \
             may be given several times. After a comma: tls; precision=UNIT, the unit of the \
             timestamps of influx-tcp and influx-udp (ns, us, ms, s, m or h; default ns); \
             user=NAME, the ACL user with whose rights lines are written (default: default). \
             These protocols have no password",
        ),
];

fn parse_translation(name: &[u8]) -> Option<Translation> {
    Translation::parse(std::str::from_utf8(name).ok()?)
}
