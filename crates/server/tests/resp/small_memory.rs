//! Servers whose memory budget is small for what is asked of them.

use crate::harness::{Client, Server};
use crate::resp::memory::{anonymous_bytes, insist, pipeline};

const BUDGET: u64 = 32 << 20;
/// What the process may hold at most. Where others take the cores, the
/// allocator gives memory back late.
const MOST: u64 = BUDGET + BUDGET / 3;

struct World {
    _server: Server,
    client: Client,
    process: u64,
    most: u64,
}

impl World {
    fn start() -> Self {
        let server = Server::with(&["--memory", "32mb"]);
        let mut client = server.client();
        let process = client.info("process_id");
        Self {
            _server: server,
            client,
            process,
            most: 0,
        }
    }

    fn look(&mut self) {
        self.most = self.most.max(anonymous_bytes(self.process));
        assert!(self.most < MOST, "{} bytes", self.most);
    }

    fn ask_all(&mut self, lines: &[String]) -> Vec<String> {
        let replies = pipeline(&mut self.client, lines);
        self.look();
        replies
    }

    /// One sample for each of the series `k:0` to `k:{series - 1}`.
    fn add_to_all(&mut self, series: usize, timestamp: usize) {
        for start in (0..series).step_by(2000) {
            let mut line = "TS.MADD".to_owned();
            for n in start..series.min(start + 2000) {
                line.push_str(&format!(" k:{n} {timestamp} {}.5", n % 97));
            }
            insist(&mut self.client, &line);
            self.look();
        }
    }
}

fn create(n: usize) -> String {
    format!("TS.CREATE k:{n} LABELS host host-{n} room {}", n % 50)
}

/// However many series there are, there is room to take their samples in and
/// to flush them; and a new series again once others went.
#[test]
fn a_server_that_is_full_of_series_goes_on_taking_samples() {
    const ROUNDS: usize = 12;
    let mut world = World::start();
    let mut series = 0;
    loop {
        let lines: Vec<String> = (series..series + 500).map(create).collect();
        let replies = world.ask_all(&lines);
        let made = replies.iter().take_while(|reply| *reply == "+OK\r\n");
        series += made.count();
        if let Some(refused) = replies.iter().find(|reply| *reply != "+OK\r\n") {
            assert!(refused.starts_with("-OOM "), "{refused}");
            break;
        }
        assert!(series < 1_000_000, "the budget was never spent");
    }
    assert!(series > 25_000, "only {series} series fit");
    for round in 1..=ROUNDS {
        world.add_to_all(series, round);
    }
    assert!(world.client.info("flushes") > 1);
    for n in [0, series / 2, series - 1] {
        let read = world
            .client
            .ask(&format!("TS.RANGE k:{n} - + AGGREGATION count 1000"));
        assert_eq!(read, format!("*1\r\n*2\r\n:0\r\n+{ROUNDS}\r\n"), "k:{n}");
    }
    let gone: Vec<String> = (0..series / 2).map(|n| format!("DEL k:{n}")).collect();
    for some in gone.chunks(500) {
        world.ask_all(some);
    }
    insist(&mut world.client, "TS.ADD another 1 1 LABELS a b");
    let read = world.client.ask("TS.GET another");
    assert_eq!(read, "*2\r\n:1\r\n+1\r\n");
}

/// Three hundred thousand series pass through memory for some thirty thousand.
/// How often a writer is asked to come back hangs on the speed of the machine.
#[test]
fn short_lived_series_leave_nothing_behind() {
    const WAVE: usize = 3000;
    const WAVES: usize = 100;
    const ALIVE: usize = 5;
    let mut world = World::start();
    for wave in 0..WAVES {
        for start in (0..WAVE).step_by(500) {
            let add = |n| format!("TS.ADD pod:{wave}:{n} 1 1.5 LABELS pod {wave}-{n} job build");
            let lines: Vec<String> = (start..start + 500).map(add).collect();
            let replies = world.ask_all(&lines);
            for (line, reply) in lines.iter().zip(replies) {
                match reply.as_str() {
                    ":1\r\n" => {}
                    refused if refused.starts_with("-OOM ") => insist(&mut world.client, line),
                    other => panic!("{other}"),
                }
            }
        }
        if let Some(old) = (wave + 1).checked_sub(ALIVE) {
            let gone: Vec<String> = (0..WAVE).map(|n| format!("DEL pod:{old}:{n}")).collect();
            world.ask_all(&gone);
        }
    }
    let left = WAVE * (ALIVE - 1);
    assert_eq!(world.client.ask("DBSIZE"), format!(":{left}\r\n"));
    let found = world.client.ask("TS.QUERYINDEX job=build");
    assert!(found.starts_with(&format!("*{left}\r\n")));
}
