//! TS.MRANGE and TS.MREVRANGE without groups, and what they refuse.

use super::{expect, filled};
use crate::harness::Server;

#[test]
fn ranges_of_many_series() {
    let server = Server::start();
    filled(&server);
    let exchanges = [
        (
            "TS.MRANGE - + FILTER mu=1",
            "*4 *3 $4 mu:a *0 *3 *2 :10 +1 *2 :20 +2 *2 :30 +3 *3 $4 mu:b *0 *2 *2 :10 +5 \
             *2 :25 +6.5 *3 $4 mu:c *0 *1 *2 :10 +7 *3 $4 mu:e *0 *0",
        ),
        (
            "TS.MREVRANGE - + COUNT 1 FILTER mu=1",
            "*4 *3 $4 mu:a *0 *1 *2 :30 +3 *3 $4 mu:b *0 *1 *2 :25 +6.5 *3 $4 mu:c *0 *1 *2 \
             :10 +7 *3 $4 mu:e *0 *0",
        ),
        (
            "TS.MRANGE - + WITHLABELS AGGREGATION sum 20 FILTER mu=2",
            "*1 *3 $4 mu:d *4 *2 $2 mu $1 2 *2 $4 host $2 h1 *2 $6 region $2 us *2 $5 Mixed \
             $4 Case *1 *2 :0 +1E-1",
        ),
        (
            "TS.MRANGE - + SELECTED_LABELS host region FILTER mu=1 region=",
            "*1 *3 $4 mu:c *2 *2 $4 host $2 h3 *2 $6 region $-1 *1 *2 :10 +7",
        ),
        (
            "TS.MRANGE - + FILTER_BY_TS 10 20 FILTER_BY_VALUE 1 5 FILTER mu=1",
            "*4 *3 $4 mu:a *0 *2 *2 :10 +1 *2 :20 +2 *3 $4 mu:b *0 *1 *2 :10 +5 *3 $4 mu:c \
             *0 *0 *3 $4 mu:e *0 *0",
        ),
        (
            "TS.MRANGE 30 10 FILTER mu=1 region!=eu",
            "*1 *3 $4 mu:c *0 *0",
        ),
        ("TS.MRANGE - + FILTER mu=99", "*0"),
    ];
    expect(&mut server.client(), &exchanges);
}

#[test]
fn ranges_of_many_series_in_resp3() {
    let server = Server::start();
    filled(&server);
    let exchanges = [
        (
            "TS.MRANGE - + FILTER mu=1",
            "%4 $4 mu:a *3 %0 %1 $11 aggregators *0 *3 *2 :10 ,1 *2 :20 ,2 *2 :30 ,3 $4 \
             mu:b *3 %0 %1 $11 aggregators *0 *2 *2 :10 ,5 *2 :25 ,6.5 $4 mu:c *3 %0 %1 $11 \
             aggregators *0 *1 *2 :10 ,7 $4 mu:e *3 %0 %1 $11 aggregators *0 *0",
        ),
        (
            "TS.MREVRANGE - + COUNT 1 FILTER mu=1",
            "%4 $4 mu:a *3 %0 %1 $11 aggregators *0 *1 *2 :30 ,3 $4 mu:b *3 %0 %1 $11 \
             aggregators *0 *1 *2 :25 ,6.5 $4 mu:c *3 %0 %1 $11 aggregators *0 *1 *2 :10 ,7 \
             $4 mu:e *3 %0 %1 $11 aggregators *0 *0",
        ),
        (
            "TS.MRANGE - + WITHLABELS AGGREGATION sum 20 FILTER mu=2",
            "%1 $4 mu:d *3 %4 $2 mu $1 2 $4 host $2 h1 $6 region $2 us $5 Mixed $4 Case %1 \
             $11 aggregators *1 $3 sum *1 *2 :0 ,0.1",
        ),
        (
            "TS.MRANGE - + SELECTED_LABELS host region FILTER mu=1 region=",
            "%1 $4 mu:c *3 %2 $4 host $2 h3 $6 region _ %1 $11 aggregators *0 *1 *2 :10 ,7",
        ),
        (
            "TS.MRANGE - + FILTER_BY_TS 10 20 FILTER_BY_VALUE 1 5 FILTER mu=1",
            "%4 $4 mu:a *3 %0 %1 $11 aggregators *0 *2 *2 :10 ,1 *2 :20 ,2 $4 mu:b *3 %0 %1 \
             $11 aggregators *0 *1 *2 :10 ,5 $4 mu:c *3 %0 %1 $11 aggregators *0 *0 $4 mu:e \
             *3 %0 %1 $11 aggregators *0 *0",
        ),
        (
            "TS.MRANGE 30 10 FILTER mu=1 region!=eu",
            "%1 $4 mu:c *3 %0 %1 $11 aggregators *0 *0",
        ),
        ("TS.MRANGE - + FILTER mu=99", "%0"),
    ];
    expect(&mut server.client3(), &exchanges);
}

#[test]
fn mrange_errors_come_in_the_order_of_the_checks() {
    let server = Server::start();
    filled(&server);
    server.client().expect_errors(&[
        (
            "TS.MRANGE - +",
            "ERR wrong number of arguments for 'ts.mrange' command",
        ),
        ("TS.MRANGE x + FILTER", "ERR TSDB: wrong fromTimestamp"),
        ("TS.MRANGE - x FILTER a", "ERR TSDB: wrong toTimestamp"),
        ("TS.MRANGE - + FOO", "ERR TSDB: missing FILTER argument"),
        (
            "TS.MRANGE - + COUNT 0 WITHLABELS SELECTED_LABELS a FOO mu=1",
            "ERR TSDB: Invalid COUNT value",
        ),
        (
            "TS.MRANGE - + WITHLABELS SELECTED_LABELS a FOO mu=1",
            "ERR TSDB: missing FILTER argument",
        ),
        (
            "TS.MRANGE - + WITHLABELS SELECTED_LABELS a GROUPBY b REDUCE sum FILTER x",
            "ERR TSDB: cannot accept WITHLABELS and SELECT_LABELS together",
        ),
        (
            "TS.MRANGE - + GROUPBY a REDUCE nope FILTER",
            "ERR TSDB: GROUPBY should always come after filter",
        ),
        (
            "TS.MRANGE - + FILTER",
            "ERR TSDB: missing labels for filter argument",
        ),
        (
            "TS.MRANGE - + FILTER GROUPBY a REDUCE sum",
            "ERR TSDB: missing labels for filter argument",
        ),
    ]);
}

#[test]
fn mrange_errors_of_filters_and_groups() {
    let server = Server::start();
    filled(&server);
    server.client().expect_errors(&[
        (
            "TS.MRANGE - + FILTER foo GROUPBY a",
            "ERR TSDB: failed parsing labels",
        ),
        (
            "TS.MRANGE - + FILTER mu!=1 GROUPBY a",
            "ERR TSDB: please provide at least one matcher",
        ),
        (
            "TS.MRANGE - + FILTER mu=1 COUNT x",
            "ERR TSDB: Couldn't parse COUNT",
        ),
        (
            "TS.MRANGE - + FILTER mu=1 COUNT 1",
            "ERR TSDB: failed parsing labels",
        ),
        (
            "TS.MREVRANGE - + FILTER mu=1 GROUPBY a",
            "ERR wrong number of arguments for 'ts.mrevrange' command",
        ),
        (
            "TS.MRANGE - + FILTER mu=1 GROUPBY a REDUCE sum more",
            "ERR wrong number of arguments for 'ts.mrange' command",
        ),
        (
            "TS.MRANGE - + FILTER mu=1 GROUPBY a REDOOS nope",
            "ERR wrong number of arguments for 'ts.mrange' command",
        ),
        (
            "TS.MRANGE - + FILTER mu=1 GROUPBY a REDUCE first",
            "ERR TSDB: Invalid reducer type",
        ),
        (
            "TS.MRANGE - + FILTER mu=1 GROUPBY a REDUCE nope",
            "ERR TSDB: Invalid reducer type",
        ),
        (
            "TS.MRANGE - + FILTER mu=1 GROUPBY REDUCE a max",
            "ERR TSDB: Invalid reducer type",
        ),
        (
            "TS.MRANGE - + REDUCE FILTER mu=1 GROUPBY a REDUCE max",
            "ERR TSDB: Invalid reducer type",
        ),
        (
            "TS.MRANGE - + FILTER mu=1 GROUPBY COUNT REDUCE max",
            "ERR TSDB: Couldn't parse COUNT",
        ),
        (
            "TS.MRANGE - + COUNT FILTER mu=1",
            "ERR TSDB: Couldn't parse COUNT",
        ),
    ]);
}
