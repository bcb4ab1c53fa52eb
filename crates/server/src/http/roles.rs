//! Tests of HTTP at a node that does not own the log: what is answered, and what the owner gets.

use super::context::Context;
use super::routes;
use super::work::Work;
use crate::acl::Users;
use crate::command::{CATALOGUE, all_commands};
use crate::messaging::Mailboxes;
use crate::observe::Observe;
use crate::options::testing::{self, STALENESS_MS, TestLog};
use crate::state::Reads;
use axum::body::Body;
use axum::http::Request;
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use latewood_cluster::node::{Member, Node, NodeId, Role};
use latewood_cluster::remote::Lease;
use latewood_engine::Db;
use latewood_engine::io::sim::{SimClock, SimDisk};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// The HTTP routes of a node whose role the test sets.
struct Noded {
    runtime: Runtime,
    context: Context,
    node: Arc<Node>,
    clock: Arc<SimClock>,
}

/// A status, with its words.
type Answered = (u16, String);

impl Noded {
    /// A follower of `db-2` that has all of the log.
    fn start() -> Self {
        Self::over(testing::open_on(&SimDisk::new(), false))
    }

    /// The same over a database.
    fn over(db: Db) -> Self {
        let (users, observe) = (Users::new(&CATALOGUE), Observe::new(all_commands()));
        let mut shared = testing::shared_for(users, observe, db, Mailboxes::default());
        testing::promise_sync(&mut shared);
        let (node, clock) = testing::follow(&shared);
        let runtime = Builder::new_current_thread().enable_all().build();
        let context = Context {
            rules: crate::rules::none(),
            work: Arc::new(Work::new(&shared.settings.promql)),
            shared,
            certified: None,
            peer: Context::NOBODY,
            alive: mpsc::channel(1).0,
        };
        Self {
            runtime: runtime.unwrap(),
            context,
            node,
            clock,
        }
    }

    fn become_role(&self, role: Role, owner: Option<u8>) {
        self.node.change(|standing| {
            standing.role = role;
            standing.owner = owner.map(|id| NodeId([id; 20]));
        });
    }

    /// Has the owner serve HTTP at `address`.
    fn owner_is_at(&self, address: &str) {
        self.node.change(|standing| {
            standing.members[1].addresses.http = address.to_owned();
        });
    }

    fn get_stale(&self) {
        self.clock.advance_ms(STALENESS_MS + 1);
    }

    fn ask(&self, request: Request<Body>) -> Answered {
        let service = TowerToHyperService::new(routes(self.context.clone()));
        self.runtime.block_on(async {
            let Ok(answer) = service.call(request).await;
            let status = answer.status().as_u16();
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8(body.to_vec()).unwrap())
        })
    }

    fn get(&self, path: &str) -> Answered {
        self.ask(Request::get(path).body(Body::empty()).unwrap())
    }

    fn write(&self, path: &str) -> Answered {
        self.ask(Request::post(path).body(Body::from("m v=1 5")).unwrap())
    }

    /// An owner that answers one request with `answer`, or closes; what it was sent.
    fn owner(&self, answer: &'static str) -> JoinHandle<String> {
        let listener = self.runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.unwrap();
        self.owner_is_at(&listener.local_addr().unwrap().to_string());
        self.runtime.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let (mut got, mut buffer) = (String::new(), [0; 4096]);
            while !got.ends_with("m v=1 5") {
                let read = stream.read(&mut buffer).await.unwrap();
                got += std::str::from_utf8(&buffer[..read]).unwrap();
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
            got
        })
    }
}

#[test]
fn a_write_goes_on_to_the_owner_once_with_what_it_must_know() {
    let noded = Noded::start();
    let told = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\
                Content-Length: 2\r\n\r\n{}";
    let owner = noded.owner(told);
    let request = Request::post("/write?precision=ms&u=a&p=b")
        .header("Authorization", "Bearer default:x")
        .header("Content-Type", "text/plain")
        .header("Cookie", "of this node")
        .body(Body::from("m v=1 5"));
    assert_eq!(noded.ask(request.unwrap()), (400, "{}".to_owned()));
    let sent = noded.runtime.block_on(owner).unwrap();
    assert!(
        sent.starts_with("POST /write?precision=ms&u=a&p=b HTTP/1.1\r\n"),
        "{sent}"
    );
    for line in [
        "authorization: Bearer default:x",
        "content-type: text/plain",
        "latewood-forwarded: 5",
        "content-length: 7",
    ] {
        assert!(
            sent.contains(&format!("\r\n{line}\r\n")),
            "{line} in {sent}"
        );
    }
    assert!(!sent.contains("cookie"), "{sent}");
    assert!(noded.context.shared.db.is_empty());
}

#[test]
fn every_way_to_write_goes_on() {
    let noded = Noded::start();
    for path in [
        "/write",
        "/api/v2/write",
        "/api/v3/write_lp",
        "/api/put",
        "/api/v1/write",
        "/api/v1/import/prometheus",
        "/api/v1/import",
        "/api/v1/import/csv",
        "/api/v1/admin/tsdb/delete_series",
        "/api/v2/delete",
        "/v1/metrics",
        "/api/v1/otlp/v1/metrics",
    ] {
        let owner = noded.owner("HTTP/1.1 204 No Content\r\n\r\n");
        assert_eq!(noded.write(path), (204, String::new()), "{path}");
        let sent = noded.runtime.block_on(owner).unwrap();
        assert!(sent.starts_with(&format!("POST {path} ")), "{sent}");
    }
}

/// What is said of a write that is not done: 503, and this.
fn refused(answered: Answered, words: &str) {
    assert_eq!(answered.0, 503, "{}", answered.1);
    assert!(answered.1.contains(words), "{words} in {}", answered.1);
}

#[test]
fn nothing_is_sent_twice_and_the_sender_hears_what_is_known() {
    let noded = Noded::start();
    refused(
        noded.write("/write"),
        "this node takes no writes; db-2:6379 owns the log",
    );
    noded.owner_is_at("127.0.0.1:1");
    refused(
        noded.write("/write"),
        "which owns the log: Connection refused",
    );
    refused(noded.write("/write"), "nothing was written");
    let owner = noded.owner("");
    refused(noded.write("/write"), "unknown: 127.0.0.1:");
    noded.runtime.block_on(owner).unwrap();
    let owner = noded.owner("HTTP/1.1 2");
    refused(noded.write("/write"), "unknown: 127.0.0.1:");
    noded.runtime.block_on(owner).unwrap();
    let passed_on = Request::post("/write").header("Latewood-Forwarded", "5");
    let passed_on = noded.ask(passed_on.body(Body::from("m v=1 5")).unwrap());
    refused(
        passed_on,
        "another node passed this write on to one that takes none",
    );
    noded.become_role(Role::Follower, None);
    refused(noded.write("/write"), "no node owns the log at the moment");
    noded.become_role(Role::Owner, Some(1));
    let passed_on = Request::post("/write").header("Latewood-Forwarded", "6");
    let passed_on = noded.ask(passed_on.body(Body::from("m v=1 5")).unwrap());
    refused(passed_on, "this node has lost the log");
    let passed_on = Request::post("/write").header("Latewood-Forwarded", "5");
    let passed_on = noded.ask(passed_on.body(Body::from("m v=1 5")).unwrap());
    assert_eq!(passed_on.0, 204, "{}", passed_on.1);
}

#[test]
fn a_write_at_an_owner_that_loses_the_log_says_what_is_known() {
    let log = Arc::new(TestLog::default());
    let noded = Noded::over(testing::open_on_log(Arc::clone(&log)));
    noded.become_role(Role::Owner, Some(1));
    thread::scope(|threads| {
        threads.spawn(|| {
            while log.newest() == 0 {
                thread::yield_now();
            }
            noded.become_role(Role::Loading, Some(2));
            log.lose();
        });
        let answered = noded.write("/write?precision=ms");
        assert!(answered.1.contains("(1 samples)"), "{}", answered.1);
        refused(
            answered,
            "unknown: nobody knows whether samples are kept: node 7 owns the log",
        );
    });
    let log = Arc::new(TestLog::default());
    let noded = Noded::over(testing::open_on_log(Arc::clone(&log)));
    noded.become_role(Role::Owner, Some(1));
    log.lose_after(0, || ());
    let answered = noded.write("/write?precision=ms");
    refused(answered, "node 7 owns the log (0 samples kept, 1 not)");
}

#[test]
fn a_user_of_a_certificate_is_not_taken_for_another_at_the_owner() {
    let mut noded = Noded::start();
    noded.owner_is_at("127.0.0.1:1");
    noded.context.certified = Some(Arc::from("ann"));
    refused(
        noded.write("/write"),
        "a user whom a certificate names cannot be passed on",
    );
    refused(
        noded.write("/write?u=default&p=x"),
        "cannot reach 127.0.0.1:1",
    );
}

const READS: &[&str] = &[
    "/api/v1/query?query=m_v&time=1",
    "/api/v1/query_range?query=m_v&start=0&end=9&step=1",
    "/api/v1/series?match[]=m_v",
    "/api/v1/labels",
    "/api/v1/label/__name__/values",
    "/api/v1/export?match[]=m_v",
    "/api/v1/metadata",
    "/api/v1/status/tsdb",
];
const OF_THE_PROCESS: &[&str] = &[
    "/api/v1/status/buildinfo",
    "/api/v1/status/flags",
    "/api/v1/status/server",
    "/api/v1/status/active_queries",
    "/metrics",
    "/-/healthy",
    "/ping?verbose=true",
];

#[test]
fn a_fresh_follower_answers_reads_and_every_node_tells_of_itself() {
    let noded = Noded::start();
    noded.become_role(Role::Owner, Some(1));
    assert_eq!(noded.write("/write?precision=ms").0, 204);
    let at_owner: Vec<_> = READS.iter().map(|path| noded.get(path)).collect();
    let ask_all = |expected: u16| {
        for (path, at_owner) in READS.iter().zip(&at_owner) {
            let answered = noded.get(path);
            assert_eq!(answered.0, expected, "{path}: {}", answered.1);
            if expected == 200 && !path.contains("query") {
                assert_eq!(answered, *at_owner, "{path}");
            } else if expected == 503 {
                let behind = "this node has not read all of the log that an answer needs; ";
                assert!(answered.1.contains(behind), "{path}: {}", answered.1);
            }
        }
        for path in OF_THE_PROCESS {
            assert_eq!(noded.get(path).0, 200, "{path}");
        }
        assert_eq!(noded.get("/-/ready").0, expected);
        assert_eq!(noded.get("/health").0, expected);
    };
    ask_all(200);
    noded.become_role(Role::Follower, Some(2));
    ask_all(200);
    noded.get_stale();
    ask_all(503);
    noded.become_role(Role::Loading, None);
    ask_all(503);
    let metrics = noded.get("/metrics").1;
    for line in [
        "owner 0",
        "owner_known 0",
        "members 2",
        "epoch 5",
        "takes_reads 0",
        "max_staleness_seconds 5",
        "unapplied_groups 0",
    ] {
        let line = format!("\nlatewood_cluster_{line}\n");
        assert!(metrics.contains(&line), "{line}");
    }
}

#[test]
fn an_owner_without_a_lease_is_not_ready() {
    let noded = Noded::start();
    noded.become_role(Role::Owner, Some(1));
    let day = Duration::from_secs(24 * 3600);
    let lease = Lease::after(Duration::ZERO, day, Arc::clone(&noded.clock) as _);
    let lease = Arc::new(lease);
    assert!(noded.context.shared.lease.set(Arc::clone(&lease)).is_ok());
    let expect = |status: u16| {
        for path in ["/-/ready", "/health"] {
            let answered = noded.get(path);
            assert_eq!(answered.0, status, "{path}: {}", answered.1);
            let why = "Kafka did not confirm lately that this node owns the log";
            assert_eq!(answered.1.contains(why), status == 503, "{}", answered.1);
        }
    };
    // No record was proven yet.
    expect(503);
    lease.renew(lease.send());
    expect(200);
    noded
        .clock
        .advance_ms(latewood_cluster::remote::LEASE.as_millis() as u32);
    expect(503);
    lease.renew(lease.send());
    expect(200);
    lease.end();
    expect(503);
    // A follower needs none.
    noded.become_role(Role::Follower, Some(2));
    noded
        .node
        .set_fresh(latewood_engine::io::Clock::boottime_ns(&*noded.clock));
    expect(200);
}

/// What `/api/v1/status/server` says of the cluster.
fn cluster(noded: &Noded) -> Value {
    let (status, text) = noded.get("/api/v1/status/server");
    assert_eq!(status, 200, "{text}");
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    answer["data"]["cluster"].take()
}

#[test]
fn the_status_says_who_owns_who_follows_and_how_far_behind_each_is() {
    let noded = Noded::start();
    noded.node.change(|standing| {
        standing.newest = 9;
        standing.members[1].digests = [1, 0];
        let third = Member {
            id: NodeId([3; 20]),
            caught_up_ns: None,
            ..standing.members[1].clone()
        };
        standing.members.push(third);
    });
    noded.get_stale();
    let seen = cluster(&noded);
    let behind_ms = STALENESS_MS + 1;
    for (name, value) in [
        ("role", json!("follower")),
        ("epoch", json!(5)),
        ("owner", json!("db-2:6379")),
        ("behind_ms", json!(behind_ms)),
        ("newest_group", json!(9)),
        ("unapplied_groups", json!(2)),
        ("max_staleness_ms", json!(STALENESS_MS)),
        ("takes_reads", json!(false)),
        ("takes_writes", json!(false)),
        ("users_differ", json!(2)),
        ("settings_differ", json!(0)),
    ] {
        assert_eq!(seen[name], value, "{name}");
    }
    let members = seen["members"].as_array().unwrap();
    let shown = |member: &Value| {
        ["role", "behind_ms", "is_this", "users_differ"].map(|name| member[name].clone())
    };
    let members_shown: Vec<_> = members.iter().map(shown).collect();
    let expected = [
        json!(["follower", behind_ms, true, false]),
        json!(["owner", 0, false, true]),
        json!(["follower", null, false, true]),
    ];
    assert_eq!(json!(members_shown), json!(expected));
    assert_eq!(members[1]["address"], "db-2:6379");
    // The manual has each of them.
    let manual = include_str!("../../../../docs/api-status.md");
    let of = |seen: &Value, above: &str| {
        let names = seen.as_object().unwrap().keys();
        let names: Vec<String> = names.map(|name| format!("`{above}.{name}`")).collect();
        names
    };
    let all = [of(&seen, "cluster"), of(&members[0], "cluster.members[]")].concat();
    for name in all.iter().filter(|name| *name != "`cluster.members`") {
        assert!(manual.contains(name), "{name}");
    }
    noded.become_role(Role::Owner, Some(1));
    let seen = cluster(&noded);
    assert_eq!(
        (&seen["role"], &seen["behind_ms"]),
        (&json!("owner"), &json!(0))
    );
    noded.become_role(Role::Follower, None);
    assert_eq!(cluster(&noded)["owner"], Value::Null);
}

#[test]
fn a_long_answer_of_a_follower_that_gets_stale_is_broken_off() {
    let noded = Noded::start();
    noded.become_role(Role::Owner, Some(1));
    let padding = "x".repeat(1000);
    let lines: String = (0..4000)
        .map(|at| format!("m,pad={padding} v=1 {at}\n"))
        .collect();
    let request = Request::post("/write?precision=ms").body(Body::from(lines));
    assert_eq!(noded.ask(request.unwrap()).0, 204);
    noded.become_role(Role::Follower, Some(2));
    let service = TowerToHyperService::new(routes(noded.context.clone()));
    let path = "/api/v1/export?format=csv&match[]=m_v";
    let request = Request::get(path).body(Body::empty()).unwrap();
    noded.runtime.block_on(async {
        let Ok(answer) = service.call(request).await;
        assert_eq!(answer.status().as_u16(), 200);
        let mut body = answer.into_body();
        assert!(body.frame().await.unwrap().is_ok());
        noded.get_stale();
        // One piece may wait that was made before.
        let mut pieces = 0;
        let broken = loop {
            match body.frame().await {
                Some(Ok(_)) => pieces += 1,
                other => break other,
            }
        };
        assert!(matches!(broken, Some(Err(_))), "all of it was sent");
        assert!(pieces <= 2, "{pieces} pieces");
    });
}

#[test]
fn a_strict_answer_of_the_owner_waits_for_a_record_that_is_sent_after_the_question() {
    let noded = Noded::start();
    noded.become_role(Role::Owner, Some(1));
    let (shared, day) = (&noded.context.shared, Duration::from_secs(24 * 3600));
    let lease = Lease::after(Duration::ZERO, day, Arc::clone(&noded.clock) as _);
    let lease = Arc::new(lease);
    assert!(shared.lease.set(Arc::clone(&lease)).is_ok());
    lease.prove(u64::MAX);
    lease.renew(lease.send());
    let labels = || noded.get("/api/v1/labels").0;
    assert_eq!(labels(), 200, "all that it shows is in the log");
    shared.runtime.set_reads(Reads::Strict);
    let is_proven = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !lease.is_asked() {
                std::thread::yield_now();
            }
            is_proven.store(true, Ordering::SeqCst);
            lease.renew(lease.send());
        });
        let status = labels();
        assert!(status == 200 && is_proven.load(Ordering::SeqCst));
    });
    lease.end();
    assert_eq!(labels(), 503);
}
