//! What RedisTimeSeries has since 8.6: TS.NRANGE, TS.QUERYLABELS,
//! EXCLUDEEMPTY, several aggregators, countnan and countall.

use super::{expect, filled};
use crate::harness::Server;

#[test]
fn series_side_by_side() {
    let server = Server::start();
    filled(&server);
    let mut client = server.client();
    expect(
        &mut client,
        &[
            (
                "TS.NRANGE 2 mu:a mu:b - +",
                "*4 *2 :10 *2 +1 +5 *2 :20 *2 +2 +NaN *2 :25 *2 +NaN +6.5 *2 :30 *2 +3 +NaN",
            ),
            (
                "TS.NREVRANGE 3 mu:b mu:e mu:a 20 + COUNT 2",
                "*2 *2 :30 *3 +NaN +NaN +3 *2 :25 *3 +6.5 +NaN +NaN",
            ),
            (
                "TS.NRANGE 2 mu:a mu:b - + AGGREGATION min,max COUNT 20",
                "*2 *2 :0 *3 +1 +1 +1 *2 :20 *3 +2 +3 +1",
            ),
            (
                "TS.NRANGE 2 mu:a mu:b - + COUNT 1 AGGREGATION count sum 20 BUCKETTIMESTAMP mid EMPTY",
                "*1 *2 :10 *2 +1 +5",
            ),
            (
                "TS.NRANGE 1 mu:a - + AGGREGATION min,max 20",
                "*2 *2 :0 *2 +1 +1 *2 :20 *2 +2 +3",
            ),
            ("TS.NRANGE 1 mu:a 21 29", "*0"),
        ],
    );
    expect(
        &mut server.client3(),
        &[(
            "TS.NRANGE 2 mu:a mu:c - 20",
            "*2 *2 :10 *2 ,1 ,7 *2 :20 *2 ,2 ,nan",
        )],
    );
    let arity = "ERR wrong number of arguments for 'ts.nrange' command";
    let number = "ERR TSDB: numkeys must be a positive integer";
    let specs = "ERR TSDB: the number of AGGREGATION arguments must be equal to numkeys";
    client.expect_errors(&[
        ("TS.NRANGE 1 mu:a -", arity),
        ("TS.NRANGE 2 mu:a - +", arity),
        ("TS.NRANGE 9223372036854775807 mu:a - +", arity),
        ("TS.NRANGE 0 mu:a - +", number),
        ("TS.NRANGE -1 mu:a - +", number),
        ("TS.NRANGE x mu:a - +", number),
        ("TS.NRANGE 2 mu:a mu:b x +", "ERR TSDB: wrong fromTimestamp"),
        ("TS.NRANGE 2 mu:a mu:b - + AGGREGATION min 20", specs),
        (
            "TS.NRANGE 2 mu:a mu:b - + AGGREGATION min max sum 20",
            specs,
        ),
        (
            "TS.NRANGE 2 mu:a mu:b - + AGGREGATION min foo 20",
            "ERR TSDB: Unknown aggregation type",
        ),
        (
            "TS.NRANGE 2 mu:a mu:b - + AGGREGATION min max",
            "ERR TSDB: Couldn't parse AGGREGATION",
        ),
        (
            "TS.NRANGE 2 mu:a nope - +",
            "ERR TSDB: the key does not exist",
        ),
    ]);
}

#[test]
fn names_and_values_of_labels() {
    let server = Server::start();
    filled(&server);
    let mut client = server.client();
    expect(
        &mut client,
        &[
            (
                "TS.QUERYLABELS LABELS",
                "*4 $5 Mixed $4 host $2 mu $6 region",
            ),
            ("TS.QUERYLABELS VALUES host", "*4 $2 h1 $2 h2 $2 h3 $2 h9"),
            ("TS.QUERYLABELS values region FILTER mu=2", "*1 $2 us"),
            (
                "TS.QUERYLABELS labels filter mu=1 region=",
                "*2 $4 host $2 mu",
            ),
            ("TS.QUERYLABELS VALUES nope", "*0"),
        ],
    );
    expect(
        &mut server.client3(),
        &[("TS.QUERYLABELS VALUES region", "~2 $2 eu $2 us")],
    );
    client.expect_errors(&[
        (
            "TS.QUERYLABELS",
            "ERR wrong number of arguments for 'ts.querylabels' command",
        ),
        (
            "TS.QUERYLABELS VALUES",
            "ERR wrong number of arguments for 'ts.querylabels' command",
        ),
        (
            "TS.QUERYLABELS NAMES",
            "ERR TSDB: unknown subtype, must be one of LABELS|VALUES",
        ),
        (
            "TS.QUERYLABELS LABELS mu=1",
            "ERR TSDB: unknown argument, expected FILTER",
        ),
        (
            "TS.QUERYLABELS VALUES host FILTER",
            "ERR TSDB: FILTER given with no filter expressions",
        ),
        (
            "TS.QUERYLABELS LABELS FILTER mu!=1",
            "ERR TSDB: please provide at least one matcher",
        ),
    ]);
}

#[test]
fn empty_series_left_out_and_several_aggregators() {
    let server = Server::start();
    filled(&server);
    let mut client = server.client();
    expect(
        &mut client,
        &[
            (
                "TS.MRANGE - + FILTER_BY_VALUE 5 6 EXCLUDEEMPTY FILTER mu=1",
                "*1 *3 $4 mu:b *0 *1 *2 :10 +5",
            ),
            ("TS.MRANGE 1000 + EXCLUDEEMPTY FILTER mu=1", "*0"),
            (
                "TS.MRANGE - + SELECTED_LABELS host EXCLUDEEMPTY FILTER mu=1 region=",
                "*1 *3 $4 mu:c *1 *2 $4 host $2 h3 *1 *2 :10 +7",
            ),
            (
                "TS.MRANGE - + AGGREGATION min,countall 100 FILTER mu=1 host=h1",
                "*1 *3 $4 mu:a *0 *1 *3 :0 +1 +3",
            ),
        ],
    );
    expect(
        &mut server.client3(),
        &[(
            "TS.MRANGE - + AGGREGATION MIN,max 100 FILTER mu=1 host=h1",
            "%1 $4 mu:a *3 %0 %1 $11 aggregators *2 $3 min $3 max *1 *3 :0 ,1 ,3",
        )],
    );
    client.expect_errors(&[
        (
            "TS.MRANGE - + AGGREGATION min,max 100 FILTER mu=1 GROUPBY host REDUCE sum",
            "ERR TSDB: GROUPBY is not allowed when multiple aggregators are specified",
        ),
        (
            "TS.MRANGE - + EXCLUDEEMPTY FILTER mu=1 GROUPBY host REDUCE sum",
            "ERR TSDB: EXCLUDEEMPTY is not allowed with GROUPBY",
        ),
    ]);
}

#[test]
fn nan_samples_of_a_group() {
    let server = Server::start();
    filled(&server);
    let mut client = server.client();
    client.expect(&[(
        "TS.MADD mu:a 40 nan mu:b 40 4 mu:a 50 nan",
        "*3\r\n:40\r\n:40\r\n:50\r\n",
    )]);
    for (reducer, expected) in [
        ("sum", "*2 *2 :40 +4 *2 :50 +NaN"),
        ("count", "*2 *2 :40 +1 *2 :50 +0"),
        ("countnan", "*2 *2 :40 +1 *2 :50 +1"),
        ("countall", "*2 *2 :40 +2 *2 :50 +1"),
    ] {
        let line = format!("TS.MRANGE 40 + FILTER mu=1 GROUPBY region REDUCE {reducer}");
        expect(
            &mut client,
            &[(&line, &format!("*1 *3 $9 region=eu *0 {expected}"))],
        );
    }
}
