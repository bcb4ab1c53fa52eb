//! CSV files: there and back, by standard input, and files that are wrong.

use crate::harness::Server;
use crate::migrate::{assert_same, contents, gzip, latewood, outcome, run};
use std::io::Write;
use std::process::Stdio;

fn filled() -> Server {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        (
            "TS.CREATE empty RETENTION 5000 CHUNK_SIZE 128 ENCODING UNCOMPRESSED",
            "+OK\r\n",
        ),
        (
            "TS.CREATE a DUPLICATE_POLICY BLOCK IGNORE 10 5 LABELS site north a=b c",
            "+OK\r\n",
        ),
        ("TS.ADD a 1700000000000 0.1", ":1700000000000\r\n"),
        ("TS.ADD a 1 -0.0", ":1\r\n"),
        ("TS.ADD a 2 nan", ":2\r\n"),
        ("TS.ADD a 3 1e300", ":3\r\n"),
        (
            "TS.ADD a 9223372036854775807 5e-324",
            ":9223372036854775807\r\n",
        ),
    ]);
    let odd = [&b"TS.ADD"[..], b"key,\"with\"\r\n \xff bytes", b"7", b"7"];
    assert_eq!(client.ask_words(&odd), ":7\r\n");
    let nameless = [&b"TS.ADD"[..], b"", b"1", b"1", b"LABELS", b"room", b"1"];
    assert_eq!(client.ask_words(&nameless), ":1\r\n");
    server
}

#[test]
fn a_file_brings_everything_back() {
    let (server, other) = (filled(), Server::start());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("all.csv");
    let file = file.to_str().unwrap();
    let (status, _, errors) = run(&["export", "csv", "--from", server.address(), file]);
    assert_eq!(status, Some(0), "{errors}");
    let (status, _, errors) = run(&["import", "csv", "--to", other.address(), file]);
    assert_eq!(status, Some(0), "{errors}");
    assert!(
        errors.contains("7 samples written, 4 described series created"),
        "{errors}"
    );
    let all = contents(server.address());
    assert_same(&all, &contents(other.address()));
    assert_same(&all, &std::fs::read_to_string(file).unwrap_or(all.clone()));

    // A second export does not overwrite the first.
    let (status, _, errors) = run(&["export", "csv", "--from", server.address(), file]);
    assert_eq!(status, Some(1));
    assert!(errors.contains("already exists"), "{errors}");
}

fn import(server: &Server, options: &[&str], lines: &[u8]) -> (Option<i32>, String, String) {
    let mut child = latewood(&["import", "csv", "--to", server.address()])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines).unwrap();
    outcome(&child.wait_with_output().unwrap())
}

#[test]
fn standard_input_with_labels_on_the_samples() {
    let server = Server::start();
    let lines =
        b"key,timestamp,value\nk,2,2.5,site=north,@policy=last\nk,1,1.5,site=north\nplain,5,5\n";
    let (status, _, errors) = import(&server, &[], lines);
    assert_eq!(status, Some(0), "{errors}");
    let all = contents(server.address());
    assert!(all.contains("k,,,site=north,@retention=0"), "{all}");
    assert!(all.contains("@policy=last"), "{all}");
    assert!(all.contains("\nk,1,1.5\nk,2,2.5\n"), "{all}");
    assert!(all.ends_with("plain,5,5\n"), "{all}");
    // The series are there now: samples are added, options are kept and that is said.
    let (status, _, errors) = import(&server, &["--on-duplicate", "sum"], b"k,2,1,site=south\n");
    assert_eq!(status, Some(0), "{errors}");
    assert!(errors.contains("1 series existed and kept"), "{errors}");
    server
        .client()
        .expect(&[("TS.GET k", "*2\r\n:2\r\n+3.5\r\n")]);
}

#[test]
fn files_and_standard_input_may_be_compressed_with_gzip() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.csv");
    // Two members, as after `cat a.gz b.gz`.
    let members = [gzip(b"key,timestamp,value\nk,1,1.5\nk,"), gzip(b"2,2.5\n")];
    std::fs::write(&file, members.concat()).unwrap();
    let file = file.to_str().unwrap();
    let (status, _, errors) = run(&["import", "csv", "--to", server.address(), file]);
    assert_eq!(status, Some(0), "{errors}");
    let (status, _, errors) = import(&server, &[], &gzip(b"k,3,3.5\n"));
    assert_eq!(status, Some(0), "{errors}");
    let all = contents(server.address());
    assert!(all.ends_with("k,1,1.5\nk,2,2.5\nk,3,3.5\n"), "{all}");
}

const BAD: &[u8] = b"k,1,1\nk,two,2\nk,3,3\nk,1,9\nother,4\nk,5,5\n";

#[test]
fn the_first_bad_line_stops_an_import() {
    let server = Server::start();
    let (status, _, errors) = import(&server, &[], BAD);
    assert_eq!(status, Some(1));
    assert!(
        errors.contains("- line 2, key k: two is not a timestamp"),
        "{errors}"
    );
    server
        .client()
        .expect(&[("TS.RANGE k - +", "*1\r\n*2\r\n:1\r\n+1\r\n")]);
}

#[test]
fn bad_lines_are_left_out_named_and_counted() {
    let server = Server::start();
    let (status, _, errors) = import(&server, &["--skip-bad"], BAD);
    assert_eq!(status, Some(3));
    for words in [
        "- line 2, key k: two is not a timestamp",
        "- line 4, key k: ERR TSDB: Error at upsert",
        "- line 5, key other: missing value",
        "3 samples written",
        "3 lines were skipped",
    ] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
}

#[test]
fn a_refusal_of_the_server_names_its_line() {
    let server = Server::start();
    let (status, _, errors) = import(&server, &[], b"k,1,1\nk,2,2\nk,1,9\nk,3,3\n");
    assert_eq!(status, Some(1));
    assert!(
        errors.contains("- line 3, key k: ERR TSDB: Error at upsert"),
        "{errors}"
    );
    assert!(errors.contains("(3 samples were written)"), "{errors}");
    let (status, _, errors) = run(&["import", "csv", "--to", server.address(), "/nowhere.csv"]);
    assert_eq!(status, Some(1));
    assert!(errors.contains("open /nowhere.csv"), "{errors}");
}

#[test]
fn samples_dropped_by_ignore_are_counted() {
    let server = Server::start();
    server
        .client()
        .expect(&[("TS.CREATE k DUPLICATE_POLICY LAST IGNORE 10 10", "+OK\r\n")]);
    let (status, _, errors) = import(&server, &[], b"k,1,1\nk,2,1\nk,50,1\n");
    assert_eq!(status, Some(0), "{errors}");
    assert!(
        errors.contains("1 samples were dropped by the IGNORE rule"),
        "{errors}"
    );
}

#[test]
fn labels_of_later_lines_that_differ_are_told() {
    let server = Server::start();
    let lines = b"w3,1,1\nw3,2,1,a=b,@retention=5000\nw4,1,1,a=b\nw4,2,1,a=b\n";
    let (status, _, errors) = import(&server, &[], lines);
    assert_eq!(status, Some(0), "{errors}");
    let told = "1 series kept the labels and options of their first line; those of later lines were \
                not used, such as - line 2, key w3";
    assert!(errors.contains(told), "{errors}");
    // Of series that existed, all lines are told of as one.
    let (_, _, errors) = import(&server, &[], b"w4,3,1,a=c\nw4,4,1,a=d\n");
    assert!(errors.contains("1 series existed and kept"), "{errors}");
    assert!(!errors.contains("later lines"), "{errors}");
}

#[test]
fn a_quote_that_is_not_closed_is_named_with_the_lines_it_swallows() {
    let server = Server::start();
    let lines = b"uq,1,1\n\"uq,2,1\nuq,3,1\nuq,4,1\n";
    let (status, _, errors) = import(&server, &["--skip-bad"], lines);
    assert_eq!(status, Some(3), "{errors}");
    for words in [
        "the quote opened in line 2 is not closed",
        "1 samples written",
        "3 lines were skipped",
    ] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
}

#[test]
fn a_sample_is_written_without_its_bad_labels_and_a_line_counts_once() {
    let server = Server::start();
    let lines = b"a,1,1,=x\nb,2,1,@foo=1\nc,3,1,y=\nd,-1,1,@foo=1\ne,1,1\ne,1,2,y=\nf,1,1\n";
    let (status, _, errors) = import(&server, &["--skip-bad"], lines);
    assert_eq!(status, Some(3), "{errors}");
    // Line 6 adds a sample that the series has, and too late a label.
    for words in [
        "5 samples written",
        "5 lines were skipped",
        "line 6, key e: ERR",
    ] {
        assert!(errors.contains(words), "{words}: {errors}");
    }
    let all = contents(server.address());
    for sample in ["a,1,1\n", "b,2,1\n", "c,3,1\n", "f,1,1\n"] {
        assert!(all.contains(sample), "{all}");
    }
}

#[test]
fn a_damaged_file_says_how_much_of_it_was_written() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.gz");
    let lines: String = (1..=20_000).map(|at| format!("k,{at},{at}\n")).collect();
    let whole = gzip(lines.as_bytes());
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let file = file.to_str().unwrap();
    let (status, _, errors) = run(&["import", "csv", "--to", server.address(), file]);
    assert_eq!(status, Some(1), "{errors}");
    let written = errors.split('(').next_back().unwrap_or_default();
    let written = written.strip_suffix(" samples were written)\n").unwrap();
    assert_ne!(written, "0", "{errors}");
    let count = server
        .client()
        .ask("TS.RANGE k - + AGGREGATION count 1000000");
    assert!(
        count.ends_with(&format!("+{written}\r\n")),
        "{errors} {count}"
    );
}
