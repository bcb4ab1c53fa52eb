//! Ways on which samples come, and who sends them.

use latewood_model::named;
use std::borrow::Cow;

named! {
    /// A protocol as its senders speak it.
    pub(crate) enum Route {
        /// TS.ADD and TS.MADD.
        Resp => "resp",
        /// InfluxDB line protocol over HTTP.
        InfluxHttp => "influx_http",
        /// InfluxDB line protocol over TCP.
        InfluxTcp => "influx_tcp",
        /// InfluxDB line protocol in datagrams.
        InfluxUdp => "influx_udp",
        RemoteWrite => "prometheus_remote_write",
        /// Text exposition, imported over HTTP.
        TextImport => "prometheus_text",
        /// Lines of JSON, imported over HTTP.
        JsonImport => "json_lines",
        /// Lines of CSV, imported over HTTP.
        CsvImport => "csv_lines",
        /// OpenTSDB over telnet.
        OpenTsdbTcp => "opentsdb_tcp",
        /// OpenTSDB over HTTP.
        OpenTsdbHttp => "opentsdb_http",
        Akumuli => "akumuli",
        /// OpenTelemetry.
        Otlp => "otlp",
        /// Rows of rules.
        Rules => "rules",
    }
}

/// Where a batch comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    pub(crate) route: Route,
    /// The address without its port, or the path of a unix socket.
    pub(crate) address: &'a str,
    pub(crate) user: &'a [u8],
}

impl Origin<'_> {
    /// Address and user as one name.
    pub(super) fn sender(&self) -> Vec<u8> {
        [self.user, b" ", self.address.as_bytes()].concat()
    }

    /// The address and the user of such a name. No user has a space in its name.
    pub(crate) fn parts(sender: &[u8]) -> (Cow<'_, str>, Cow<'_, str>) {
        let end = sender.iter().position(|&byte| byte == b' ');
        let (user, address) = sender.split_at(end.unwrap_or(sender.len()));
        let address = address.get(1..).unwrap_or_default();
        (
            String::from_utf8_lossy(address),
            String::from_utf8_lossy(user),
        )
    }
}
