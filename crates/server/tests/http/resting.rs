//! Series that rest answer as series in memory do, after restarts and kills too.

use crate::harness::{Client, Server, eventually};
use crate::http::client::Http;
use crate::http::promql::path;

const SERIES: u64 = 3000;
const OPTIONS: [&str; 8] = [
    "--http",
    "127.0.0.1:0",
    "--park-after",
    "1s",
    "--flush-age",
    "1",
    "--promql-max-memory",
    "1mb",
];

/// What clients ask that wakes no series, and what they are told.
fn answers(server: &Server) -> Vec<String> {
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    let at = ("time", "2000");
    let many = [
        ("query", vec![("query", "count by (job) (pods_v)"), at]),
        (
            "query",
            vec![("query", "sum(last_over_time(pods_v[1h]))"), at],
        ),
        ("query", vec![("query", "pods_v{pod=~\"p-1.\"}"), at]),
        (
            "query",
            vec![("query", "topk(3, pods_v{job=\"job-7\"})"), at],
        ),
        ("query", vec![("query", "count(pods_v @ 100000)"), at]),
        ("labels", vec![]),
        (
            "label/pod/values",
            vec![("match[]", "pods_v{job=\"job-3\"}")],
        ),
        (
            "label/__name__/values",
            vec![("start", "0"), ("end", "3000")],
        ),
        ("series", vec![("match[]", "{pod=\"p-2999\"}")]),
        ("export", vec![("match[]", "{pod=~\"p-299.\"}")]),
    ];
    let told = many.iter().map(|(endpoint, parameters)| {
        let answer = http.get(&path(endpoint, parameters));
        assert_eq!(
            answer.status,
            200,
            "{endpoint} {parameters:?}: {}",
            answer.text()
        );
        answer.text()
    });
    let mut told: Vec<String> = told.collect();
    for command in [
        "DBSIZE",
        "TS.QUERYINDEX job=job-1 pod=(p-1,p-21,p-41)",
        "TS.MGET WITHLABELS FILTER pod=p-77",
        "TS.MRANGE - + AGGREGATION sum 1000000 FILTER job=job-2 GROUPBY job REDUCE sum",
        "TS.MRANGE 1900000 1901500 WITHLABELS EXCLUDEEMPTY FILTER job=(job-2,job-17)",
        "TS.MREVRANGE 1901000 1902000 SELECTED_LABELS pod FILTER job=job-2",
        "TS.MRANGE - 1 EXCLUDEEMPTY FILTER job=job-2",
        "TS.RANGE plain - +",
    ] {
        told.push(redis.ask(command));
    }
    told
}

fn wait_until_all_rest(redis: &mut Client) {
    eventually("all series rest", || {
        redis.info("parked_series") == redis.info("series")
    });
}

/// What is there after the changes of the test.
fn check_changed(server: &Server) {
    let (mut http, mut redis) = (Http::to(server.http()), server.client());
    let mut ask = |query: &str| {
        let answer = http.get(&path("query", &[("query", query), ("time", "2000")]));
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        body["data"]["result"][0]["value"][1].to_string()
    };
    assert_eq!(ask("count(pods_v)"), "\"2998\"");
    assert_eq!(
        ask("sum(last_over_time(pods_v{pod=\"p-1\"}[1h] @ 1100))"),
        "\"500\""
    );
    assert_eq!(ask("sum(pods_v{pod=~\"p-1|p-21\"})"), "\"601\"");
    assert_eq!(ask("count({job=\"job-99\"})"), "\"1\"");
    assert_eq!(ask("count({job=\"job-3\"})"), "\"149\"");
    redis.expect(&[
        ("TS.QUERYINDEX kind=odd", "*1\r\n$5\r\nfancy\r\n"),
        ("DBSIZE", ":3000\r\n"),
    ]);
}

#[test]
fn series_that_rest_answer_as_before() {
    let server = Server::with(&OPTIONS);
    let lines: String = (0..SERIES)
        .map(|at| {
            format!(
                "pods,job=job-{},pod=p-{at} v={at} {}\n",
                at % 20,
                1_900_000 + at
            )
        })
        .collect();
    let written = Http::to(server.http()).post("/write?precision=ms", lines.as_bytes());
    assert_eq!(written.status, 204, "{}", written.text());
    let mut redis = server.client();
    assert_eq!(
        redis.ask("TS.ADD plain 1000 7 LABELS kind odd"),
        ":1000\r\n"
    );
    let awake = answers(&server);
    wait_until_all_rest(&mut redis);
    let resting = answers(&server);
    for (one, other) in awake.iter().zip(&resting) {
        assert_eq!(one, other);
    }
    // The key that was named woke; it rests again.
    wait_until_all_rest(&mut redis);
    let (ended_well, dir) = server.terminate();
    assert!(ended_well);
    let server = Server::over(dir, &OPTIONS);
    assert_eq!(server.client().info("parked_series"), SERIES + 1);
    assert_eq!(answers(&server), awake);
    let server = Server::over(server.kill(), &OPTIONS);
    assert_eq!(answers(&server), awake);
    // Late and newer samples, a new name, another label, and an end.
    let late = "pods,job=job-1,pod=p-1 v=500 1000000\npods,job=job-1,pod=p-21 v=600 1950000\n";
    let written = Http::to(server.http()).post("/write?precision=ms", late.as_bytes());
    assert_eq!(written.status, 204, "{}", written.text());
    let mut redis = server.client();
    redis.expect(&[
        ("RENAME plain fancy", "+OK\r\n"),
        (
            "TS.ALTER pods_v{job=\"job-2\",pod=\"p-2\"} LABELS job job-99",
            "+OK\r\n",
        ),
        ("DEL pods_v{job=\"job-3\",pod=\"p-3\"} nothing", ":1\r\n"),
        ("EXISTS plain fancy", ":1\r\n"),
    ]);
    // So few stay in memory beside the others.
    check_changed(&server);
    check_changed(&Server::over(server.kill(), &OPTIONS));
}
