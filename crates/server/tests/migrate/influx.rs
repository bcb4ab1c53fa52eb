//! Files of line protocol: whole ones, compressed ones, and those with lines that are wrong.

use crate::harness::Server;
use crate::migrate::{contents, gzip, latewood, outcome};
use std::io::Write;
use std::process::Stdio;

fn serving(options: &[&str]) -> Server {
    Server::with(&[&["--wal", "off", "--http", "127.0.0.1:0"], options].concat())
}

/// Imports standard input; exit status and standard error.
fn import(server: &Server, options: &[&str], lines: &[u8]) -> (Option<i32>, String) {
    let mut child = latewood(&["import", "influx", "--to", server.http()])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The import may end before it has read everything.
    let _ = child.stdin.take().unwrap().write_all(lines);
    let (status, _, errors) = outcome(&child.wait_with_output().unwrap());
    (status, errors)
}

/// The samples of the server as lines of CSV, without those that describe.
fn samples(server: &Server) -> Vec<String> {
    let all = contents(server.address());
    let lines = all.lines().filter(|line| !line.contains(",,,"));
    lines.skip(1).map(str::to_owned).collect()
}

#[test]
fn files_and_standard_input_become_the_series_of_a_sender() {
    let server = serving(&["--influx-db-label", "db"]);
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed) = (folder.path().join("a.lp"), folder.path().join("b.lp.gz"));
    std::fs::write(&plain, "cpu,host=a user=1.5,note=\"x\ny\" 2\n").unwrap();
    // Two members, as after `cat a.gz b.gz`.
    let members = [
        gzip(b"cpu,host=a user=2.5 1\n"),
        gzip(b"cpu,host=a sys=3i 1"),
    ];
    std::fs::write(&packed, members.concat()).unwrap();
    let output = latewood(&["import", "influx", "--to", server.http()])
        .args(["--precision", "s", "--db", "metrics"])
        .args([&plain, &packed])
        .output()
        .unwrap();
    let (status, _, errors) = outcome(&output);
    assert_eq!(status, Some(0), "{errors}");
    assert!(errors.contains("3 samples written"), "{errors}");
    assert!(errors.contains("1 text values were not stored"), "{errors}");
    let (status, errors) = import(&server, &["--precision", "h"], b"cpu,host=a user=4 1\n");
    assert_eq!(status, Some(0), "{errors}");
    let user = "\"cpu_user{db=\"\"metrics\"\",host=\"\"a\"\"}\"";
    let expected = [
        "\"cpu_sys{db=\"\"metrics\"\",host=\"\"a\"\"}\",1000,3".to_owned(),
        format!("{user},1000,2.5"),
        format!("{user},2000,1.5"),
        "\"cpu_user{host=\"\"a\"\"}\",3600000,4".to_owned(),
    ];
    assert_eq!(samples(&server), expected);
}

#[test]
fn the_first_bad_line_ends_it_and_nothing_behind_it_is_written() {
    let server = serving(&[]);
    let text = b"# begin\nm v=1,t=\"a\nb\" 1000000\nm v=2 2000000\nm v=x 3\nm v=4 4000000\n";
    let (status, errors) = import(&server, &[], text);
    assert_eq!(status, Some(1), "{errors}");
    // The third line of the file belongs to the text in the second.
    assert!(
        errors.contains("- line 5: unable to parse 'm v=x 3': invalid field value"),
        "{errors}"
    );
    assert!(errors.contains("(2 samples were written)"), "{errors}");
    assert_eq!(samples(&server), ["m_v,1,1", "m_v,2,2"]);
}

#[test]
fn bad_lines_are_left_out_named_and_counted_whoever_finds_them() {
    let server = serving(&[]);
    let mut text = String::from("m v=1 1000\nm v= 1\nm v=2 99999999999999\nm v=3 3000\n");
    for at in 0..50_000 {
        let bad = if at % 1000 == 7 { "," } else { "" };
        text.push_str(&format!("n{bad} v={at} {at}\n"));
    }
    let (status, errors) = import(
        &server,
        &["--skip-bad", "--precision", "ms"],
        text.as_bytes(),
    );
    assert_eq!(status, Some(3), "{errors}");
    assert!(
        errors.contains("- line 2: unable to parse 'm v= 1'"),
        "{errors}"
    );
    // What only the server knows: the time is too far ahead.
    assert!(
        errors.contains("- line 3: m_v at 99999999999999: "),
        "{errors}"
    );
    assert!(
        errors.contains("- line 12: unable to parse 'n, v=7 7'"),
        "{errors}"
    );
    assert!(errors.contains("49952 samples written"), "{errors}");
    assert!(
        errors.contains("52 lines or samples were skipped"),
        "{errors}"
    );
    assert_eq!(errors.matches("- line ").count(), 20, "{errors}");
    assert_eq!(samples(&server).len(), 49_952);
}

#[test]
fn a_refusal_of_the_server_ends_it_with_the_line_of_the_file() {
    let server = serving(&[]);
    let text = b"m v=1 1000\n\nm v=2 99999999999999\n";
    let (status, errors) = import(&server, &["--precision", "ms"], text);
    assert_eq!(status, Some(1), "{errors}");
    assert!(
        errors.contains("- line 3: m_v at 99999999999999: "),
        "{errors}"
    );
    assert!(errors.contains("(1 samples were written)"), "{errors}");
}

#[test]
fn what_is_not_there_and_who_may_not_is_said_before_anything_is_read() {
    let server = serving(&["--requirepass", "secret"]);
    let (status, errors) = import(&server, &["--to-password", "wrong"], b"m v=1 1000000\n");
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("wrong user name or password"), "{errors}");
    let (status, errors) = import(&server, &["--to-password", "secret"], b"m v=1 1000000\n");
    assert_eq!(status, Some(0), "{errors}");
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let output = latewood(&["import", "influx", "--to", &address])
        .output()
        .unwrap();
    let (status, _, errors) = outcome(&output);
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains(&address), "{errors}");
}

#[test]
fn a_compressed_file_that_is_cut_short_is_an_error_behind_what_was_whole() {
    let server = serving(&[]);
    let text: Vec<_> = (1..=200_000).map(|at| format!("m v={at} {at}\n")).collect();
    let packed = gzip(text.concat().as_bytes());
    let cut = &packed[..packed.len() - 20];
    let (status, errors) = import(&server, &["--precision", "ms"], cut);
    assert_eq!(status, Some(1), "{errors}");
    assert!(errors.contains("read -"), "{errors}");
    let written = samples(&server);
    assert!(
        !written.is_empty() && written.len() < 200_000,
        "{}",
        written.len()
    );
    assert!(
        errors.contains(&format!("({} samples were written)", written.len())),
        "{errors}"
    );
}

/// As `influx_inspect export -compress` of InfluxDB 1.8 writes it.
const EXPORT_V1: &str = "\
# INFLUXDB EXPORT: 1677-09-21T00:12:43Z - 2262-04-11T23:47:16Z
# DDL
CREATE DATABASE \"my db\" WITH NAME autogen
# DML
# CONTEXT-DATABASE:my db
# CONTEXT-RETENTION-POLICY:autogen
# writing tsm data
cpu,host=a\\ b,region=eu usage=1e+06 1700000000000000000
cpu,host=a\\ b,region=eu usage=0.1 1700000001000000000
cpu,host=a\\ b,region=eu idle=-5i 1700000000000000000
cpu,host=a\\ b,region=eu total=18446744073709551615u 1700000000000000000
cpu,host=a\\ b,region=eu up=true 1700000000000000000
cpu,host=a\\ b,region=eu note=\"it said \\\"x=1 2\\\"
CREATE DATABASE y\" 1700000000000000000
# writing wal data
cpu,host=a\\ b,region=eu free\\ bytes=7i 1700000002000000000
";

#[test]
fn an_export_of_influxdb_1_is_read_with_its_headings() {
    let server = serving(&[]);
    let (head, tail) = EXPORT_V1.split_at(EXPORT_V1.find("cpu,").unwrap());
    let members = [gzip(head.as_bytes()), gzip(tail.as_bytes())].concat();
    let (status, errors) = import(&server, &[], &members);
    assert_eq!(status, Some(0), "{errors}");
    assert!(errors.contains("6 samples written"), "{errors}");
    assert!(errors.contains("1 text values were not stored"), "{errors}");
    assert!(!errors.contains("skipped"), "{errors}");
    let labels = "{host=\"\"a b\"\",region=\"\"eu\"\"}\"";
    let expected = [
        format!("\"cpu_idle{labels},1700000000000,-5"),
        format!("\"cpu_total{labels},1700000000000,18446744073709552000"),
        format!("\"cpu_up{labels},1700000000000,1"),
        format!("\"cpu_usage{labels},1700000000000,1e6"),
        format!("\"cpu_usage{labels},1700000001000,0.1"),
        "\"{\"\"cpu_free bytes\"\",host=\"\"a b\"\",region=\"\"eu\"\"}\",1700000002000,7"
            .to_owned(),
    ];
    let mut read = samples(&server);
    read.sort();
    assert_eq!(read, expected);
    // The numbers of bad lines are those of the file.
    let bad = format!("{EXPORT_V1}skipped missing file: /var/x.tsm\n");
    let (status, errors) = import(&server, &["--skip-bad"], bad.as_bytes());
    assert_eq!(status, Some(3), "{errors}");
    assert!(errors.contains("- line 17: unable to parse"), "{errors}");
    assert!(
        errors.contains("1 lines or samples were skipped"),
        "{errors}"
    );
}

#[test]
fn json_lines_of_influxdb_3_become_the_series_of_a_sender() {
    let server = serving(&["--influx-db-label", "db"]);
    // As `influxdb3 query --format jsonl 'SELECT * FROM cpu'` prints it.
    let rows = "\
{\"host\":\"s1\",\"note\":\"x\",\"region\":\"us-east\",\"time\":\"2023-11-14T22:13:20.000000001\",\"up\":true,\"usage\":0.9}
{\"host\":\"s1\",\"region\":\"us-east\",\"time\":\"2023-11-14T22:13:21\",\"usage\":0.8500000000000001}
{\"host\":\"s2\",\"time\":\"2023-11-14T22:13:20.500\",\"total\":18446744073709551615,\"usage\":-2}
";
    let options = ["--measurement", "cpu", "--db", "d", "--tags", "host,region"];
    let (status, errors) = import(&server, &options, rows.as_bytes());
    assert_eq!(status, Some(0), "{errors}");
    assert!(errors.contains("5 samples written"), "{errors}");
    assert!(errors.contains("1 text values were not stored"), "{errors}");
    let (one, two) = (
        "{db=\"\"d\"\",host=\"\"s1\"\",region=\"\"us-east\"\"}\"",
        "{db=\"\"d\"\",host=\"\"s2\"\"}\"",
    );
    let expected = [
        format!("\"cpu_total{two},1700000000500,18446744073709552000"),
        format!("\"cpu_up{one},1700000000000,1"),
        format!("\"cpu_usage{one},1700000000000,0.9"),
        format!("\"cpu_usage{one},1700000001000,0.8500000000000001"),
        format!("\"cpu_usage{two},1700000000500,-2"),
    ];
    let mut read = samples(&server);
    read.sort();
    assert_eq!(read, expected);

    let bad = format!("{rows}cpu usage=1 1\n{rows}");
    let (status, errors) = import(&server, &options, bad.as_bytes());
    assert_eq!(status, Some(1), "{errors}");
    assert!(
        errors.contains("- line 4: not an object in JSON: "),
        "{errors}"
    );
    assert!(errors.contains("(5 samples were written)"), "{errors}");
    let (status, errors) = import(
        &server,
        &["--measurement", "cpu", "--tags", "host,regoin"],
        rows.as_bytes(),
    );
    assert_eq!(status, Some(1), "{errors}");
    assert!(
        errors.contains("no line has the tag \"regoin\""),
        "{errors}"
    );
    let (status, _) = import(&server, &["--measurement", "cpu"], rows.as_bytes());
    assert_eq!(status, Some(2), "the tags must be told");
}
