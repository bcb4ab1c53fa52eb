//! Where a line protocol is served, as `--listen-lines` spells it:
//! `PROTOCOL=ADDR:PORT[,tls][,precision=UNIT][,user=NAME]`.
//!
//! Tested below, and on sockets by `tests/lines/` and `tests/tls/`.

use crate::base::address;
use crate::observe::{Protocol, Route};
use latewood_model::named;
use latewood_wire::influx::Precision;
use std::fmt;
use std::str::FromStr;

named! {
    /// A protocol of lines on a socket of its own.
    pub(crate) enum LineProtocol {
        /// OpenTSDB's telnet protocol.
        OpenTsdb => "opentsdb",
        /// Akumuli's native protocol.
        Akumuli => "akumuli",
        /// InfluxDB line protocol on connections.
        InfluxTcp => "influx-tcp",
        /// InfluxDB line protocol in datagrams.
        InfluxUdp => "influx-udp",
    }
}

impl LineProtocol {
    /// As what its samples and connections are counted.
    pub(crate) const fn counted_as(self) -> Protocol {
        match self {
            Self::OpenTsdb => Protocol::OpenTsdb,
            Self::Akumuli => Protocol::Akumuli,
            Self::InfluxTcp | Self::InfluxUdp => Protocol::Influx,
        }
    }

    /// The way on which its samples come.
    pub(crate) const fn route(self) -> Route {
        match self {
            Self::OpenTsdb => Route::OpenTsdbTcp,
            Self::Akumuli => Route::Akumuli,
            Self::InfluxTcp => Route::InfluxTcp,
            Self::InfluxUdp => Route::InfluxUdp,
        }
    }
}

/// An address where a line protocol is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LinePort {
    /// What is spoken there.
    pub(crate) protocol: LineProtocol,
    /// `ADDR:PORT`.
    pub(crate) address: String,
    /// Whether connections are encrypted.
    pub(crate) is_tls: bool,
    /// The unit of the timestamps of InfluxDB lines.
    pub(crate) precision: Precision,
    /// The user with whose rights is written, unless certificates name users; else `default`.
    pub(crate) user: Option<String>,
}

impl LinePort {
    /// The protocol, and whether it is encrypted, as one word.
    pub(crate) fn label(&self) -> String {
        let tls = if self.is_tls { "-tls" } else { "" };
        format!("{}{tls}", self.protocol.name())
    }

    fn set(&mut self, attribute: &str) -> Result<(), String> {
        let protocol = self.protocol.name();
        match attribute.split_once('=') {
            None if attribute == "tls" && self.protocol == LineProtocol::InfluxUdp => {
                return Err(format!("{protocol} has no TLS"));
            }
            None if attribute == "tls" => self.is_tls = true,
            Some(("precision", _)) if self.protocol.counted_as() != Protocol::Influx => {
                return Err(format!("the timestamps of {protocol} tell their unit"));
            }
            Some(("precision", unit)) => {
                let precision = Precision::parse(unit).filter(|_| !unit.is_empty());
                let wrong =
                    || format!("invalid precision {unit:?}: expected ns, us, ms, s, m or h");
                self.precision = precision.ok_or_else(wrong)?;
            }
            Some(("user", name)) if !name.is_empty() => self.user = Some(name.to_owned()),
            _ => {
                return Err(format!(
                    "unknown attribute {attribute:?}: expected tls, precision=UNIT or user=NAME"
                ));
            }
        }
        Ok(())
    }
}

impl FromStr for LinePort {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text
            .split_once('=')
            .ok_or_else(|| format!("{text:?} is not of the form PROTOCOL=ADDR:PORT"))?;
        let protocol = LineProtocol::ALL.into_iter().find(|one| one.name() == name);
        let names = LineProtocol::ALL.map(LineProtocol::name).join(", ");
        let protocol = protocol
            .ok_or_else(|| format!("unknown protocol {name:?}: expected one of {names}"))?;
        let mut parts = rest.split(',');
        let address = parts.next().unwrap_or_default();
        address::check(address)?;
        let mut port = Self {
            protocol,
            address: address.to_owned(),
            is_tls: false,
            precision: Precision::default(),
            user: None,
        };
        for attribute in parts {
            let set = port.set(attribute);
            set.map_err(|reason| format!("{text:?}: {reason}"))?;
        }
        Ok(port)
    }
}

impl fmt::Display for LinePort {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}={}", self.protocol.name(), self.address)?;
        if self.is_tls {
            write!(out, ",tls")?;
        }
        if self.precision != Precision::default() {
            write!(out, ",precision={}", self.precision.name())?;
        }
        match &self.user {
            Some(user) => write!(out, ",user={user}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_read_back_as_they_are_shown() {
        for text in [
            "opentsdb=127.0.0.1:4242",
            "akumuli=[::1]:8282,tls",
            "influx-tcp=db.example.org:8094,tls,precision=ms,user=collector",
            "influx-udp=0.0.0.0:8089,precision=s",
        ] {
            assert_eq!(text.parse::<LinePort>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_wrong_with_a_port_is_told() {
        for (text, told) in [
            ("127.0.0.1:4242", "not of the form PROTOCOL=ADDR:PORT"),
            (
                "influx=127.0.0.1:1",
                "unknown protocol \"influx\": expected one of opentsdb, akumuli, influx-tcp",
            ),
            ("opentsdb=127.0.0.1", "the port is missing"),
            ("opentsdb=", "the port is missing"),
            (
                "opentsdb=127.0.0.1:1,ssl",
                "unknown attribute \"ssl\": expected tls",
            ),
            (
                "opentsdb=127.0.0.1:1,tls=on",
                "unknown attribute \"tls=on\"",
            ),
            ("opentsdb=127.0.0.1:1,", "unknown attribute \"\""),
            ("opentsdb=127.0.0.1:1,user=", "unknown attribute \"user=\""),
            (
                "opentsdb=127.0.0.1:1,precision=s",
                "opentsdb tell their unit",
            ),
            ("influx-udp=127.0.0.1:1,tls", "influx-udp has no TLS"),
            (
                "influx-tcp=127.0.0.1:1,precision=day",
                "invalid precision \"day\"",
            ),
        ] {
            let error = text.parse::<LinePort>().unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
