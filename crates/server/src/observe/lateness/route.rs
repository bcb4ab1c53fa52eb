//! Ways on which samples come, and who sends them.

use std::borrow::Cow;

/// A protocol as its senders speak it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Route {
    /// TS.ADD and TS.MADD.
    Resp,
    /// InfluxDB line protocol over HTTP.
    InfluxHttp,
    /// InfluxDB line protocol over TCP.
    InfluxTcp,
    /// InfluxDB line protocol in datagrams.
    InfluxUdp,
    /// Prometheus remote write.
    RemoteWrite,
    /// Text exposition, imported over HTTP.
    TextImport,
    /// OpenTSDB over telnet.
    OpenTsdbTcp,
    /// OpenTSDB over HTTP.
    OpenTsdbHttp,
    /// Akumuli.
    Akumuli,
    /// OpenTelemetry.
    Otlp,
}

impl Route {
    /// All of them, in the order of their numbers.
    pub(crate) const ALL: [Self; 10] = [
        Self::Resp,
        Self::InfluxHttp,
        Self::InfluxTcp,
        Self::InfluxUdp,
        Self::RemoteWrite,
        Self::TextImport,
        Self::OpenTsdbTcp,
        Self::OpenTsdbHttp,
        Self::Akumuli,
        Self::Otlp,
    ];

    /// The name by which it is counted.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Resp => "resp",
            Self::InfluxHttp => "influx_http",
            Self::InfluxTcp => "influx_tcp",
            Self::InfluxUdp => "influx_udp",
            Self::RemoteWrite => "prometheus_remote_write",
            Self::TextImport => "prometheus_text",
            Self::OpenTsdbTcp => "opentsdb_tcp",
            Self::OpenTsdbHttp => "opentsdb_http",
            Self::Akumuli => "akumuli",
            Self::Otlp => "otlp",
        }
    }
}

/// Where a batch comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    /// The protocol.
    pub(crate) route: Route,
    /// The address without its port, or the path of a unix socket.
    pub(crate) address: &'a str,
    /// The name of the user.
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
