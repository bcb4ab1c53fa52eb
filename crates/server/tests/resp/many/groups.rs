//! GROUPBY label REDUCE reducer.

use super::{expect, filled};
use crate::harness::Server;

#[test]
fn groups_are_reduced() {
    let server = Server::start();
    filled(&server);
    let exchanges = [
        (
            "TS.MRANGE - + FILTER mu=1 GROUPBY region REDUCE sum",
            "*1 *3 $9 region=eu *0 *4 *2 :10 +6 *2 :20 +2 *2 :25 +6.5 *2 :30 +3",
        ),
        (
            "TS.MRANGE - + WITHLABELS FILTER mu=(1,2) GROUPBY host REDUCE max",
            "*4 *3 $7 host=h1 *3 *2 $4 host $2 h1 *2 $11 __reducer__ $3 max *2 $10 \
             __source__ $9 mu:a,mu:d *3 *2 :10 +1 *2 :20 +2 *2 :30 +3 *3 $7 host=h2 *3 *2 \
             $4 host $2 h2 *2 $11 __reducer__ $3 max *2 $10 __source__ $4 mu:b *2 *2 :10 +5 \
             *2 :25 +6.5 *3 $7 host=h3 *3 *2 $4 host $2 h3 *2 $11 __reducer__ $3 max *2 $10 \
             __source__ $4 mu:c *1 *2 :10 +7 *3 $7 host=h9 *3 *2 $4 host $2 h9 *2 $11 \
             __reducer__ $3 max *2 $10 __source__ $4 mu:e *0",
        ),
        (
            "TS.MRANGE - + SELECTED_LABELS region host __SOURCE__ FILTER mu=1 groupby \
             region reduce AVG",
            "*1 *3 $9 region=eu *3 *2 $6 region $2 eu *2 $4 host $-1 *2 $10 __source__ $14 \
             mu:a,mu:b,mu:e *4 *2 :10 +3 *2 :20 +2 *2 :25 +6.5 *2 :30 +3",
        ),
        (
            "TS.MREVRANGE - + COUNT 2 FILTER mu=1 GROUPBY region REDUCE count",
            "*1 *3 $9 region=eu *0 *2 *2 :30 +1 *2 :25 +1",
        ),
        (
            "TS.MRANGE - + AGGREGATION avg 5 EMPTY FILTER mu=1 GROUPBY region REDUCE std.s",
            "*1 *3 $9 region=eu *0 *5 *2 :10 +2.8284271247461903 *2 :15 +NaN *2 :20 +0 *2 \
             :25 +0 *2 :30 +0",
        ),
        ("TS.MRANGE - + FILTER mu=1 GROUPBY nope REDUCE sum", "*0"),
    ];
    expect(&mut server.client(), &exchanges);
}

#[test]
fn groups_are_reduced_in_resp3() {
    let server = Server::start();
    filled(&server);
    let exchanges = [
        (
            "TS.MRANGE - + FILTER mu=1 GROUPBY region REDUCE sum",
            "%1 $9 region=eu *4 %0 %1 $8 reducers *1 $3 sum %1 $7 sources *3 $4 mu:a $4 \
             mu:b $4 mu:e *4 *2 :10 ,6 *2 :20 ,2 *2 :25 ,6.5 *2 :30 ,3",
        ),
        (
            "TS.MRANGE - + WITHLABELS FILTER mu=(1,2) GROUPBY host REDUCE max",
            "%4 $7 host=h1 *4 %1 $4 host $2 h1 %1 $8 reducers *1 $3 max %1 $7 sources *2 $4 \
             mu:a $4 mu:d *3 *2 :10 ,1 *2 :20 ,2 *2 :30 ,3 $7 host=h2 *4 %1 $4 host $2 h2 \
             %1 $8 reducers *1 $3 max %1 $7 sources *1 $4 mu:b *2 *2 :10 ,5 *2 :25 ,6.5 $7 \
             host=h3 *4 %1 $4 host $2 h3 %1 $8 reducers *1 $3 max %1 $7 sources *1 $4 mu:c \
             *1 *2 :10 ,7 $7 host=h9 *4 %1 $4 host $2 h9 %1 $8 reducers *1 $3 max %1 $7 \
             sources *1 $4 mu:e *0",
        ),
        (
            "TS.MRANGE - + SELECTED_LABELS region host __SOURCE__ FILTER mu=1 groupby \
             region reduce AVG",
            "%1 $9 region=eu *4 %3 $6 region $2 eu $4 host _ $10 __source__ $14 \
             mu:a,mu:b,mu:e %1 $8 reducers *1 $3 avg %1 $7 sources *3 $4 mu:a $4 mu:b $4 \
             mu:e *4 *2 :10 ,3 *2 :20 ,2 *2 :25 ,6.5 *2 :30 ,3",
        ),
        (
            "TS.MREVRANGE - + COUNT 2 FILTER mu=1 GROUPBY region REDUCE count",
            "%1 $9 region=eu *4 %0 %1 $8 reducers *1 $5 count %1 $7 sources *3 $4 mu:a $4 \
             mu:b $4 mu:e *2 *2 :30 ,1 *2 :25 ,1",
        ),
        (
            "TS.MRANGE - + AGGREGATION avg 5 EMPTY FILTER mu=1 GROUPBY region REDUCE std.s",
            "%1 $9 region=eu *4 %0 %1 $8 reducers *1 $5 std.s %1 $7 sources *3 $4 mu:a $4 \
             mu:b $4 mu:e *5 *2 :10 ,2.8284271247461903 *2 :15 ,nan *2 :20 ,0 *2 :25 ,0 *2 \
             :30 ,0",
        ),
        ("TS.MRANGE - + FILTER mu=1 GROUPBY nope REDUCE sum", "%0"),
    ];
    expect(&mut server.client3(), &exchanges);
}

#[test]
fn first_and_last_of_a_group_go_by_time_in_both_directions() {
    let server = Server::start();
    let mut client = server.client();
    client.expect(&[
        ("TS.CREATE a LABELS g x", "+OK\r\n"),
        (
            "TS.MADD a 1 1 a 5 5 a 12 12 a 17 17",
            "*4\r\n:1\r\n:5\r\n:12\r\n:17\r\n",
        ),
    ]);
    let exchanges = [
        (
            "TS.MREVRANGE - + AGGREGATION first 10 FILTER g=x GROUPBY g REDUCE min",
            "*1 *3 $3 g=x *0 *2 *2 :10 +12 *2 :0 +1",
        ),
        (
            "TS.MREVRANGE - + COUNT 1 AGGREGATION last 10 FILTER g=x GROUPBY g REDUCE min",
            "*1 *3 $3 g=x *0 *1 *2 :10 +17",
        ),
    ];
    expect(&mut client, &exchanges);
}
