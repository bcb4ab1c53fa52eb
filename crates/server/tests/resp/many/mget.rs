//! TS.MGET and TS.QUERYINDEX.

use super::{expect, filled};
use crate::harness::Server;

#[test]
fn newest_samples_of_many_series() {
    let server = Server::start();
    filled(&server);
    let exchanges = [
        (
            "TS.MGET FILTER mu=1",
            "*4 *3 $4 mu:a *0 *2 :30 +3 *3 $4 mu:b *0 *2 :25 +6.5 *3 $4 mu:c *0 *2 :10 +7 \
             *3 $4 mu:e *0 *0",
        ),
        (
            "TS.MGET LATEST WITHLABELS FILTER mu=1 region!=",
            "*3 *3 $4 mu:a *3 *2 $2 mu $1 1 *2 $4 host $2 h1 *2 $6 region $2 eu *2 :30 +3 \
             *3 $4 mu:b *3 *2 $2 mu $1 1 *2 $4 host $2 h2 *2 $6 region $2 eu *2 :25 +6.5 *3 \
             $4 mu:e *3 *2 $2 mu $1 1 *2 $6 region $2 eu *2 $4 host $2 h9 *0",
        ),
        (
            "TS.MGET SELECTED_LABELS REGION nope FILTER mu=(1,2) host=h1",
            "*2 *3 $4 mu:a *2 *2 $6 region $2 eu *2 $4 nope $-1 *2 :30 +3 *3 $4 mu:d *2 *2 \
             $6 region $2 us *2 $4 nope $-1 *2 :10 +1E-1",
        ),
        ("TS.MGET FILTER mu=99", "*0"),
    ];
    expect(&mut server.client(), &exchanges);
}

#[test]
fn newest_samples_of_many_series_in_resp3() {
    let server = Server::start();
    filled(&server);
    let exchanges = [
        (
            "TS.MGET FILTER mu=1",
            "%4 $4 mu:a *2 %0 *2 :30 ,3 $4 mu:b *2 %0 *2 :25 ,6.5 $4 mu:c *2 %0 *2 :10 ,7 \
             $4 mu:e *2 %0 *0",
        ),
        (
            "TS.MGET LATEST WITHLABELS FILTER mu=1 region!=",
            "%3 $4 mu:a *2 %3 $2 mu $1 1 $4 host $2 h1 $6 region $2 eu *2 :30 ,3 $4 mu:b *2 \
             %3 $2 mu $1 1 $4 host $2 h2 $6 region $2 eu *2 :25 ,6.5 $4 mu:e *2 %3 $2 mu $1 \
             1 $6 region $2 eu $4 host $2 h9 *0",
        ),
        (
            "TS.MGET SELECTED_LABELS REGION nope FILTER mu=(1,2) host=h1",
            "%2 $4 mu:a *2 %2 $6 region $2 eu $4 nope _ *2 :30 ,3 $4 mu:d *2 %2 $6 region \
             $2 us $4 nope _ *2 :10 ,0.1",
        ),
        ("TS.MGET FILTER mu=99", "%0"),
    ];
    expect(&mut server.client3(), &exchanges);
}

#[test]
fn selected_labels_end_at_options() {
    let server = Server::start();
    filled(&server);
    let exchanges = [
        (
            "TS.MRANGE - + SELECTED_LABELS a SELECTED_LABELS b FILTER mu=2",
            "*1 *3 $4 mu:d *3 *2 $1 a $-1 *2 $15 SELECTED_LABELS $-1 *2 $1 b $-1 *1 *2 :10 \
             +1E-1",
        ),
        (
            "TS.MRANGE - + SELECTED_LABELS host LATEST EMPTY FILTER mu=2",
            "*1 *3 $4 mu:d *3 *2 $4 host $2 h1 *2 $6 LATEST $-1 *2 $5 EMPTY $-1 *1 *2 :10 \
             +1E-1",
        ),
        (
            "TS.MRANGE - + SELECTED_LABELS host COUNT 1 FILTER mu=2",
            "*1 *3 $4 mu:d *1 *2 $4 host $2 h1 *1 *2 :10 +1E-1",
        ),
        (
            "TS.MGET SELECTED_LABELS host REDUCE x FILTER mu=2",
            "*1 *3 $4 mu:d *1 *2 $4 host $2 h1 *2 :10 +1E-1",
        ),
        (
            "TS.MGET SELECTED_LABELS host host FILTER mu=2",
            "*1 *3 $4 mu:d *2 *2 $4 host $2 h1 *2 $4 host $2 h1 *2 :10 +1E-1",
        ),
    ];
    expect(&mut server.client(), &exchanges);
}

#[test]
fn keys_by_label() {
    let server = Server::start();
    filled(&server);
    let exchanges = [
        ("TS.QUERYINDEX mu=1", "*4 $4 mu:a $4 mu:b $4 mu:c $4 mu:e"),
        ("TS.QUERYINDEX mu=(1,2) host=h1", "*2 $4 mu:a $4 mu:d"),
        ("TS.QUERYINDEX mu=1 region!=(eu,us)", "*1 $4 mu:c"),
        ("TS.QUERYINDEX mu=99", "*0"),
    ];
    expect(&mut server.client(), &exchanges);
}

#[test]
fn keys_by_label_in_resp3() {
    let server = Server::start();
    filled(&server);
    let exchanges = [
        ("TS.QUERYINDEX mu=1", "~4 $4 mu:a $4 mu:b $4 mu:c $4 mu:e"),
        ("TS.QUERYINDEX mu=(1,2) host=h1", "~2 $4 mu:a $4 mu:d"),
        ("TS.QUERYINDEX mu=1 region!=(eu,us)", "~1 $4 mu:c"),
        ("TS.QUERYINDEX mu=99", "~0"),
    ];
    expect(&mut server.client3(), &exchanges);
}

#[test]
fn mget_and_queryindex_errors() {
    let server = Server::start();
    filled(&server);
    server.client().expect_errors(&[
        (
            "TS.MGET FILTER",
            "ERR wrong number of arguments for 'ts.mget' command",
        ),
        (
            "TS.MGET a b c d",
            "ERR wrong number of arguments for 'ts.mget' command",
        ),
        (
            "TS.MGET WITHLABELS FILTER",
            "ERR TSDB: please provide at least one matcher",
        ),
        (
            "TS.MGET FILTER mu!=1",
            "ERR TSDB: please provide at least one matcher",
        ),
        ("TS.MGET FILTER foo", "ERR TSDB: failed parsing labels"),
        (
            "TS.MGET WITHLABELS SELECTED_LABELS a FILTER foo",
            "ERR TSDB: cannot accept WITHLABELS and SELECT_LABELS together",
        ),
        (
            "TS.MGET SELECTED_LABELS FILTER mu=1",
            "ERR TSDB: SELECT_LABELS should have at least 1 parameter",
        ),
        (
            "TS.MGET SELECTED_LABELS COUNT a FILTER mu=1",
            "ERR TSDB: SELECT_LABELS should have at least 1 parameter",
        ),
        (
            "TS.MGET SELECTED_LABELS a b",
            "ERR wrong number of arguments for 'ts.mget' command",
        ),
        (
            "TS.MGET FILTER mu=1 WITHLABELS",
            "ERR TSDB: failed parsing labels",
        ),
        (
            "TS.QUERYINDEX",
            "ERR wrong number of arguments for 'ts.queryindex' command",
        ),
        (
            "TS.QUERYINDEX mu!=1",
            "ERR TSDB: please provide at least one matcher",
        ),
        ("TS.QUERYINDEX mu=1 foo", "ERR TSDB: failed parsing labels"),
        (
            "TS.QUERYINDEX FILTER mu=1",
            "ERR TSDB: failed parsing labels",
        ),
    ]);
}

#[test]
fn series_that_the_user_may_not_read() {
    let server = Server::start();
    filled(&server);
    let mut client = server.client();
    client.expect(&[
        ("ACL SETUSER bob on nopass +@all %R~mu:a %W~mu:b", "+OK\r\n"),
        ("AUTH bob x", "+OK\r\n"),
    ]);
    let refused = "NOPERM TSDB: current user doesn't have read permission to one or more keys \
                   that match the specified filter";
    client.expect_errors(&[
        ("TS.MGET FILTER mu=1", refused),
        ("TS.MRANGE - + FILTER mu=1 host=h2", refused),
        ("TS.MRANGE - + FILTER mu=1 GROUPBY host REDUCE sum", refused),
        ("TS.QUERYINDEX mu=1", refused),
    ]);
    expect(
        &mut client,
        &[
            ("TS.QUERYINDEX mu=1 host=h1", "*1 $4 mu:a"),
            ("TS.QUERYLABELS VALUES host", "*1 $2 h1"),
        ],
    );
}
