//! InfluxDB line protocol over TCP and UDP, which answers nothing.

use super::{Lines, Served, eventually, samples, serve, serve_with};
use std::net::UdpSocket;

/// A figure of INFO, which shows protocols only once they were used.
fn info(server: &Served, field: &str) -> u64 {
    let info = server.server.client().ask("INFO");
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.map_or(0, |figure| figure.trim().parse().unwrap())
}

/// Asks until the figure is `wanted`.
fn wait_for(server: &Served, field: &str, wanted: u64) {
    eventually(&format!("{wanted} of {field}"), || {
        info(server, field) == wanted
    });
}

fn figure(server: &Served, name: &str) -> u64 {
    info(server, &format!("intake_influx_{name}"))
}

#[test]
fn lines_are_stored_however_they_arrive() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("influx-tcp"));
    let text = "cpu,host=a user=1.5,note=\"two\nlines\" 1700000000000000000\n\
                cpu,host=a user=2.5 1600000000000000000\ncpu,host=a user=x 1\n\
                # a remark\n\ncpu,host=a user=3.5 1700000001000999999\n";
    for piece in text.as_bytes().chunks(7) {
        sender.send(std::str::from_utf8(piece).unwrap());
    }
    assert_eq!(sender.finish(), "");
    assert_eq!(
        samples(&server.server, "cpu_user{host=\"a\"}"),
        [
            "1600000000000 2.5",
            "1700000000000 1.5",
            "1700000001000 3.5"
        ]
    );
    let figures = ["samples", "refused", "strings"].map(|name| figure(&server, name));
    assert_eq!(figures, [3, 1, 1]);
    let told = server.server.wait_for_log("samples were refused");
    assert!(told.contains("cpu,host=a user=x 1"), "{told}");
}

#[test]
fn a_line_that_is_cut_off_is_not_taken_for_a_shorter_number() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("influx-tcp"));
    sender.send("m v=1 1000000\nm v=123 45000000");
    sender.finish();
    assert_eq!(samples(&server.server, "m_v"), ["1 1"]);
    assert_eq!(figure(&server, "refused"), 1);
    let told = server.server.wait_for_log("samples were refused");
    assert!(told.contains("ended inside a line"), "{told}");
}

#[test]
fn a_quote_that_nothing_closes_costs_its_line_alone() {
    let server = serve();
    let mut sender = Lines::connect(server.address_of("influx-tcp"));
    sender.send("m a=\"open 1000000\nm v=1 1000000\nm v=2 2000000\n");
    sender.finish();
    assert_eq!(samples(&server.server, "m_v"), ["1 1", "2 2"]);
    assert_eq!(figure(&server, "refused"), 1);
}

#[test]
fn a_line_without_end_costs_itself_alone_and_a_silent_sender_its_connection() {
    let server = serve_with(&["--timeout", "1"]);
    let mut sender = Lines::connect(server.address_of("influx-tcp"));
    let long = "x".repeat(300_000);
    sender.send(&format!("m,tag={long} v=1 1000000\nm v=2 2000000\nm v=3 3"));
    // The server closes what says nothing for a second.
    assert_eq!(sender.answer(), "");
    assert_eq!(samples(&server.server, "m_v"), ["2 2"]);
    // The long line, and the one that never ended.
    assert_eq!(figure(&server, "refused"), 2);
}

#[test]
fn datagrams_are_stored_and_a_bad_line_leaves_the_others() {
    let server = serve();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = server.address_of("influx-udp");
    // The last line of a datagram is whole without its ending.
    socket
        .send_to(b"m,h=a v=1 10\nm,h=a v=\nm,h=a v=2 5", to)
        .unwrap();
    socket.send_to(b"", to).unwrap();
    for second in 100..200 {
        let line = format!("m,h=a v=3 {second}");
        socket.send_to(line.as_bytes(), to).unwrap();
        // No faster than the kernel's buffer is read, or it may drop some.
        wait_for(&server, "intake_influx_samples", second - 97);
    }
    wait_for(&server, "intake_influx_refused", 1);
    let stored = samples(&server.server, "m_v{h=\"a\"}");
    assert_eq!(stored.len(), 102);
    assert_eq!(stored[..3], ["5000 2", "10000 1", "100000 3"]);
}

#[test]
fn the_log_names_who_sent_a_datagram_that_is_refused() {
    let server = serve_with(&[
        "--listen-lines",
        "influx-udp=127.0.0.1:0,user=collector",
        "--user",
        "collector on nopass ~* +@all",
    ]);
    let to = server.ready.split("influx-udp=").nth(2).unwrap();
    let to = to.split(['"', ' ']).next().unwrap();
    let [first, second] = ["127.0.0.1:0", "127.0.0.2:0"].map(|at| UdpSocket::bind(at).unwrap());
    first.send_to(b"m v=1 1000000000\n", to).unwrap();
    wait_for(&server, "intake_influx_samples", 1);
    server.server.client().ask("ACL SETUSER collector off");
    second.send_to(b"m v=2 2000000000\n", to).unwrap();
    let told = server.server.wait_for_log("samples were refused");
    assert!(told.contains("127.0.0.2"), "{told}");
}

#[test]
fn what_came_in_datagrams_survives_a_stop() {
    let server = serve();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = server.address_of("influx-udp");
    socket.send_to(b"m v=1 1\nm v=2 2\n", to).unwrap();
    wait_for(&server, "intake_influx_samples", 2);
    let (ended_well, dir) = server.server.terminate();
    assert!(ended_well);
    let server = super::Server::over(dir, &[]);
    assert_eq!(samples(&server, "m_v"), ["1000 1", "2000 2"]);
}

#[test]
fn lines_are_written_with_the_rights_of_the_user_of_the_port() {
    let server = serve_with(&[
        "--listen-lines",
        "influx-tcp=127.0.0.1:0,precision=ms,user=collector",
        "--user",
        "collector on nopass ~open* +@all",
    ]);
    let collector = server.ready.split("influx-tcp=").nth(2).unwrap();
    let mut sender = Lines::connect(collector.split(['"', ' ']).next().unwrap());
    sender.send("closed v=1 1\nopen v=1 1\n");
    sender.finish();
    let told = server.server.wait_for_log("samples were refused");
    assert!(
        told.contains("no permission to write to closed_v"),
        "{told}"
    );
    assert_eq!(samples(&server.server, "open_v"), ["1 1"]);
    // Who is off writes nothing more, also by open connections.
    let mut sender = Lines::connect(collector.split(['"', ' ']).next().unwrap());
    sender.send("open v=2 2\n");
    wait_for(&server, "intake_influx_samples", 2);
    server.server.client().ask("ACL SETUSER collector off");
    sender.send("open v=3 3\n");
    assert_eq!(sender.finish(), "");
    assert_eq!(samples(&server.server, "open_v"), ["1 1", "2 2"]);
}

#[test]
fn the_default_users_keys_bound_what_may_be_written() {
    let server = serve_with(&["--user", "default on nopass ~open* +@all"]);
    let mut sender = Lines::connect(server.address_of("influx-tcp"));
    sender.send("closed v=1 1000000\nopen v=1 1000000\n");
    sender.finish();
    let told = server.server.wait_for_log("samples were refused");
    assert!(
        told.contains("no permission to write to closed_v"),
        "{told}"
    );
    assert_eq!(samples(&server.server, "open_v"), ["1 1"]);
}

#[test]
fn open_connections_are_counted_by_protocol() {
    let server = serve();
    let (one, two) = ("influx-tcp", "akumuli");
    let senders = [one, one, two].map(|name| Lines::connect(server.address_of(name)));
    wait_for(&server, "influx_connections", 2);
    wait_for(&server, "akumuli_connections", 1);
    wait_for(&server, "opentsdb_connections", 0);
    drop(senders);
    wait_for(&server, "influx_connections", 0);
    wait_for(&server, "akumuli_connections", 0);
}

#[test]
fn one_connection_too_many_is_refused_and_counted() {
    let server = serve_with(&["--maxclients", "2"]);
    let address = server.address_of("influx-tcp");
    let senders = [(); 2].map(|()| Lines::connect(address));
    wait_for(&server, "influx_connections", 2);
    let mut third = Lines::connect(address);
    assert_eq!(third.answer(), "-ERR too many connections to this address");
    assert_eq!(third.answer(), "");
    drop(senders);
    wait_for(&server, "influx_connections", 0);
    let mut sender = Lines::connect(address);
    sender.send("m v=1 1000000\n");
    sender.finish();
    assert_eq!(samples(&server.server, "m_v"), ["1 1"]);
}
