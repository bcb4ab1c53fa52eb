//! A RedisTimeSeries of the test's own.

use crate::harness::{Client, eventually};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// A running peer; killed when dropped.
pub(crate) struct Peer {
    child: Child,
    address: String,
    _dir: TempDir,
}

impl Peer {
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// With these options of redis-server.
    pub(crate) fn with(options: &[&str]) -> Self {
        install();
        let probe = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = probe.local_addr().unwrap().port();
        drop(probe);
        let dir = tempfile::tempdir().unwrap();
        let child = Command::new(script())
            .args(["run", &port.to_string()])
            .args(options)
            .env("PEER_DIR", dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let peer = Self {
            child,
            address: format!("127.0.0.1:{port}"),
            _dir: dir,
        };
        eventually("the peer", || TcpStream::connect(&peer.address).is_ok());
        peer
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(TcpStream::connect(&self.address).unwrap())
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Once per process: two installers would be in each other's way.
fn install() {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let status = Command::new(script()).arg("install").status().unwrap();
        assert!(status.success(), "RedisTimeSeries could not be installed");
    });
}

fn script() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../bench/peers/redistimeseries.sh"
    ))
}
