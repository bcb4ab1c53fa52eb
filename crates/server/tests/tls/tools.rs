//! `backup`, `import` and `export` over TLS, with a certificate of the client.

use crate::certificates::{Authority, Valid, words};
use crate::harness::Server;
use crate::peer::tls_address;
use std::process::{Command, Output};

fn run(words: &[&str]) -> Output {
    let mut tool = Command::new(env!("CARGO_BIN_EXE_latewood"));
    tool.args(words).output().unwrap()
}

#[test]
fn tools_speak_tls_and_say_what_fails() {
    let (authority, mut options) = Authority::with_server();
    authority.give("tool", Valid::Now);
    options.drain(..2);
    options.extend(["--tls-ca-cert-file".to_owned(), authority.text("ca.crt")]);
    options.extend(["--https".to_owned(), "127.0.0.1:0".to_owned()]);
    let server = Server::with(&words(&options));
    let address = tls_address(&server, "tls");
    let https = tls_address(&server, "https");
    let file = authority.text("samples.csv");
    std::fs::write(&file, "room,1000,20.5\nroom,2000,21\n").unwrap();
    let lines = authority.text("samples.lp");
    std::fs::write(&lines, "hall t=1 1000\n").unwrap();
    let (ca, cert, key) = (
        authority.text("ca.crt"),
        authority.text("tool.crt"),
        authority.text("tool.key"),
    );
    let tls = ["--tls", "--cacert", &ca, "--cert", &cert, "--key", &key];
    let with = |words: &[&str], tls: &[&str]| {
        let done = run(&[words, tls].concat());
        let said = [done.stdout, done.stderr].concat();
        (done.status.success(), String::from_utf8(said).unwrap())
    };
    let fails = |words: &[&str], tls: &[&str], why: &str| {
        let (done, said) = with(words, tls);
        assert!(!done && said.contains(why), "{words:?}: {said}");
    };
    let works = |words: &[&str]| {
        let (done, said) = with(words, &tls);
        assert!(done, "{words:?}: {said}");
        said
    };
    let import = ["import", "csv", "--to", &address, &file];
    fails(&import, &[], "the server speaks TLS: connect with --tls");
    fails(&import, &["--tls"], "certificate");
    fails(&import, &["--tls", "--cacert", &ca], "ertificate");
    works(&import);
    works(&[
        "import",
        "influx",
        "--precision",
        "ms",
        "--to",
        &https,
        &lines,
    ]);
    let exported = works(&["export", "csv", "--from", &address]);
    for row in ["room,1000,20.5", "hall_t,1000,1"] {
        assert!(exported.contains(row), "{exported}");
    }
    let to = authority.text("backup");
    let backup = ["backup", "--server", &address, "--to", &to];
    fails(&backup, &[], "the server speaks TLS: connect with --tls");
    works(&backup);
    let copy = Server::with(&["--wal", "off"]);
    let both = [
        "import",
        "redis",
        "--from",
        &format!("tls://{address}"),
        "--to",
        copy.address(),
    ];
    let (done, said) = with(&both, &tls[1..]);
    assert!(done, "{said}");
    assert_eq!(copy.client().ask("DBSIZE"), ":2\r\n");
}
