//! `backup`, `import` and `export` over TLS, with a certificate of the client.

use crate::harness::Server;
use crate::tls::certificates::{Authority, Valid, words};
use crate::tls::peer::tls_address;
use std::process::Command;

/// A server that asks for certificates, with its files.
struct Tools {
    authority: Authority,
    server: Server,
    address: String,
    https: String,
    csv: String,
    lines: String,
}

impl Tools {
    fn new() -> Self {
        let (authority, mut options) = Authority::with_server();
        authority.give("tool", Valid::Now);
        // `--wal off` stands first; a backup needs a log.
        options.drain(..2);
        options.extend(["--tls-ca-cert-file".to_owned(), authority.text("ca.crt")]);
        options.extend(["--https".to_owned(), "127.0.0.1:0".to_owned()]);
        let server = Server::with(&words(&options));
        let (csv, lines) = (authority.text("samples.csv"), authority.text("samples.lp"));
        std::fs::write(&csv, "room,1000,20.5\nroom,2000,21\n").unwrap();
        std::fs::write(&lines, "hall t=1 1000\n").unwrap();
        Self {
            address: tls_address(&server, "tls"),
            https: tls_address(&server, "https"),
            authority,
            server,
            csv,
            lines,
        }
    }

    /// Runs a tool; whether it ended well, and what it said.
    fn run(&self, words: &[&str], files: &[(&str, &str)]) -> (bool, String) {
        let mut tool = Command::new(env!("CARGO_BIN_EXE_latewood"));
        tool.args(words);
        for (option, name) in files {
            tool.arg(option).arg(self.authority.path(name));
        }
        let done = tool.output().unwrap();
        let said = [done.stdout, done.stderr].concat();
        (done.status.success(), String::from_utf8(said).unwrap())
    }

    fn fails(&self, words: &[&str], files: &[(&str, &str)], why: &str) {
        let (done, said) = self.run(words, files);
        assert!(!done && said.contains(why), "{words:?}: {said}");
    }

    fn works(&self, words: &[&str]) -> String {
        let files = [CA, ("--cert", "tool.crt"), ("--key", "tool.key")];
        let (done, said) = self.run(words, &files);
        assert!(done, "{words:?}: {said}");
        said
    }
}

const CA: (&str, &str) = ("--cacert", "ca.crt");

#[test]
fn tools_speak_tls() {
    let tools = Tools::new();
    tools.works(&["import", "csv", "--to", &tools.address, &tools.csv]);
    let influx = ["import", "influx", "--precision", "ms"];
    tools.works(&[&influx[..], &["--to", &tools.https, &tools.lines]].concat());
    let exported = tools.works(&["export", "csv", "--from", &tools.address]);
    for row in ["room,1000,20.5", "hall_t,1000,1"] {
        assert!(exported.contains(row), "{exported}");
    }
    let to = tools.authority.text("backup");
    tools.works(&["backup", "--server", &tools.address, "--to", &to]);
    let copy = Server::with(&["--wal", "off"]);
    let from = format!("tls://{}", tools.address);
    let to = format!("tcp://{}", copy.address());
    tools.works(&["import", "redis", "--from", &from, "--to", &to]);
    assert_eq!(copy.client().ask("DBSIZE"), ":2\r\n");
}

#[test]
fn tools_say_why_they_cannot_connect() {
    let tools = Tools::new();
    let import = ["import", "csv", "--to", &tools.address, &tools.csv];
    tools.fails(&import, &[], "the server speaks TLS: connect with --tls");
    tools.fails(
        &[&import[..], &["--tls"]].concat(),
        &[],
        "--cacert names a file",
    );
    tools.fails(&import, &[CA], "give --cert and --key");
    tools.fails(
        &import,
        &[("--cacert", "tool.key")],
        "no certificate in PEM",
    );
    let influx = ["import", "influx", "--to", &tools.https, &tools.lines];
    tools.fails(&influx, &[], "the server speaks TLS: connect with --tls");
    let plain = ["import", "csv", "--to", tools.server.address(), &tools.csv];
    tools.fails(&plain, &[CA], "leave out --tls");
    let to = tools.authority.text("backup");
    let backup = ["backup", "--server", &tools.address, "--to", &to];
    tools.fails(&backup, &[], "the server speaks TLS: connect with --tls");
    tools.fails(&backup, &[CA], "give --cert and --key");
}
