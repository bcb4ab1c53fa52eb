//! Where this server is reached, as it tells the other nodes of its log.
//!
//! What is given with `--advertise` and `--advertise-http` holds; else what it listens to, where
//! that names a host. An address of all interfaces, such as `0.0.0.0:6379`, tells nobody where to go.

use super::settings::{Http, Settings};
use latewood_cluster::node::Addresses;
use std::net::IpAddr;

/// How an address of TLS begins.
const TLS: &str = "https://";

impl Settings {
    /// The addresses that the other nodes are told.
    ///
    /// # Errors
    /// Which option is missing.
    pub(crate) fn advertised(&self) -> Result<Addresses, String> {
        let nodes = &self.cluster.nodes;
        let listen = nodes.redis.as_ref().or(self.listen.first());
        let listen = listen.ok_or("advertise: is needed without --listen")?;
        let redis = named(listen, None).ok_or_else(|| {
            format!(
                "advertise: is needed where --listen is {listen}, which other machines cannot reach"
            )
        })?;
        let host = redis.rsplit_once(':').map(|(host, _)| host);
        let reads = self.read_listen.first();
        let reads = reads
            .and_then(|reads| named(reads, host))
            .unwrap_or_default();
        let http = match (&nodes.http, &self.senders.http, &self.senders.https) {
            (Some(given), ..) => given.clone(),
            // The default is for this machine, and taken only if it is free.
            (None, Http::At(address), _) => named(address, host).unwrap_or_default(),
            (None, _, Some(address)) => {
                let address = named(address, host);
                address.map_or_else(String::new, |address| format!("{TLS}{address}"))
            }
            (None, ..) => String::new(),
        };
        let addresses = Addresses { redis, reads, http };
        if !addresses.are_valid() {
            return Err(format!(
                "advertise: other nodes take HOST:PORT, and for HTTP https://HOST:PORT, not {:?}, \
                 {:?} and {:?}",
                addresses.redis, addresses.reads, addresses.http
            ));
        }
        Ok(addresses)
    }
}

/// An address with a host: its own, or `host` where it is all of them. A port of 0 is none.
fn named(address: &str, host: Option<&str>) -> Option<String> {
    let (own, port) = address.rsplit_once(':')?;
    let ip: Option<IpAddr> = own.trim_matches(['[', ']']).parse().ok();
    let host = match ip {
        Some(ip) if ip.is_unspecified() => host?,
        _ => own,
    };
    (port != "0").then(|| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(change: impl FnOnce(&mut Settings)) -> Result<[String; 3], String> {
        let mut settings = Settings {
            listen: vec!["0.0.0.0:6379".to_owned()],
            ..Settings::default()
        };
        change(&mut settings);
        let Addresses { redis, reads, http } = settings.advertised()?;
        Ok([redis, reads, http])
    }

    #[test]
    fn an_address_that_others_cannot_reach_is_not_told() {
        let refused = told(|_| {}).unwrap_err();
        assert!(refused.starts_with("advertise: is needed where --listen is 0.0.0.0:6379"));
        let refused = told(|of| of.listen = vec!["[::]:1".to_owned()]).unwrap_err();
        assert!(refused.contains("[::]:1"));
        let refused = told(|of| of.listen = vec!["10.0.0.1:0".to_owned()]);
        assert!(refused.is_err(), "its port is not known");
    }

    #[test]
    fn an_address_that_others_pass_over_is_refused() {
        for wrong in ["db-1", "https://db-1:443/", "db 1:80"] {
            let refused = told(|of| {
                of.listen = vec!["10.0.0.1:6379".to_owned()];
                of.cluster.nodes.http = Some(wrong.to_owned());
            });
            assert!(refused.unwrap_err().contains(wrong));
        }
    }

    #[test]
    fn the_host_of_one_address_is_that_of_the_others() {
        let all = told(|of| {
            of.cluster.nodes.redis = Some("db-1:7000".to_owned());
            of.read_listen = vec!["[::]:7001".to_owned()];
            of.senders.http = Http::At("0.0.0.0:8086".to_owned());
        });
        assert_eq!(all.unwrap(), ["db-1:7000", "db-1:7001", "db-1:8086"]);
        let all = told(|of| {
            of.listen = vec!["10.0.0.1:6379".to_owned()];
            of.senders.http = Http::Off;
            of.senders.https = Some("0.0.0.0:8443".to_owned());
        });
        let https = "https://10.0.0.1:8443";
        assert_eq!(all.unwrap(), ["10.0.0.1:6379", "", https]);
        let all = told(|of| {
            of.listen = vec!["10.0.0.1:6379".to_owned()];
            of.cluster.nodes.http = Some("https://db-1:443".to_owned());
        });
        assert_eq!(all.unwrap(), ["10.0.0.1:6379", "", "https://db-1:443"]);
    }
}
