//! Random writes under rules: nearly a third late, corrections of values, deletions, other labels,
//! removals, steps that nobody evaluates, passes that end in their midst, restarts. In the end each
//! row and each stale mark is what an instant query gives at its step over the final data.

use super::bench::Bench;
use crate::rules::corrections::faults;
use latewood_engine::io::sim::SimRandom;

const RULES: &str = "
groups:
- name: random
  interval: 1m
  rules:
  - record: job:t:sum
    expr: sum by (job) (sum_over_time(t[3m]))
    labels: {team: db}
  - {record: 't:avg', expr: 'avg(t)'}
  - {record: 't:rows', expr: 'count(job:t:sum)'}
  - {record: 't:ratio', expr: 'job:t:sum / on () group_left () t:rows'}
  - {record: 't:joined', expr: 't * on (job) u'}
  - {record: 't:nested', expr: 'sum(max by (job) (t offset 1m))'}
  - {record: 't:held', expr: 'max_over_time(sum_over_time(t[4m])[3m:1m])'}
";

/// Steps that are evaluated.
const STEPS: i64 = 24;

struct Random {
    bench: Bench,
    random: SimRandom,
    /// The step that is next.
    next: i64,
    /// Series so far: each has labels of its own.
    series: u64,
}

impl Random {
    fn below(&self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn pick(&self) -> Option<String> {
        let keys: Vec<&String> = self.bench.sent.keys().collect();
        let at = self.below(keys.len().max(1) as u64) as usize;
        keys.get(at).map(|key| (*key).clone())
    }

    fn labels(&self, number: u64) -> String {
        let metric = if self.below(4) == 0 { "u" } else { "t" };
        let job = ["a", "b", "c"][self.below(3) as usize];
        format!("__name__={metric},job={job},host={number}")
    }

    /// A time on a step, or just before or behind one, or anywhere between; after step 0,
    /// milliseconds.
    fn time_ms(&self) -> i64 {
        let step = if self.below(10) < 3 {
            self.below(self.next.max(1).unsigned_abs()) as i64
        } else {
            self.next - 1
        };
        let beside = [0, 1, 59_999, self.below(60_000) as i64];
        step * 60_000 + beside[self.below(4) as usize]
    }

    fn sample(&mut self) {
        let known = self.pick().filter(|_| self.below(6) > 0);
        let (key, labels) = match known {
            Some(key) => (key, String::new()),
            None => {
                self.series += 1;
                (format!("s{}", self.series), self.labels(self.series))
            }
        };
        let value = [0.1, 0.2, 0.7, 3.0, f64::NAN][self.below(5) as usize];
        self.bench.sample_ms(&key, &labels, self.time_ms(), value);
    }

    fn change(&mut self) {
        let Some(key) = self.pick() else {
            return;
        };
        match self.below(4) {
            0..=1 => {
                let from_s = self.below(self.next.max(1).unsigned_abs() * 60) as i64;
                let length_s = self.below(400) as i64;
                self.bench.delete(&key, from_s, from_s + length_s);
            }
            2 => {
                self.series += 1;
                let labels = self.labels(self.series);
                self.bench.relabel(&key, &labels);
            }
            _ => self.bench.remove(&key),
        }
    }

    fn restart(&mut self) {
        if self.below(2) == 0 {
            self.bench.shared.db.flush().unwrap();
        }
        let seed = self.below(u64::MAX);
        self.bench.restart(|disk| match seed % 2 {
            0 => disk.kill(),
            _ => disk.crash(seed),
        });
    }

    /// A pass that ends in its midst, as the process does.
    fn stop_amid(&mut self) {
        faults::STOPS_IN.set(Some(self.below(6) as u32));
        self.bench.correct(self.next - 1);
        faults::STOPS_IN.set(None);
        self.restart();
    }

    fn run(&mut self) -> Option<String> {
        while self.next < STEPS {
            for _ in 0..self.below(7) {
                self.sample();
            }
            // The first step is that of all rules, and the last one ends them.
            if self.next == 0 || self.next == STEPS - 1 || self.below(6) > 0 {
                self.bench.turn(self.next);
            }
            self.next += 1;
            match self.below(12) {
                0..=2 => self.change(),
                3..=6 => drop(self.bench.correct(self.next - 1)),
                7 => self.restart(),
                8 => self.stop_amid(),
                _ => {}
            }
        }
        self.bench.correct(STEPS - 1);
        let listed = self.bench.verify(0, STEPS - 1);
        let wrong = self.bench.wrong(0, STEPS - 1);
        wrong.or((listed > 0).then(|| format!("verify lists {listed} rows")))
    }
}

fn run(seed: u64) -> Option<String> {
    let mut run = Random {
        bench: Bench::new(RULES),
        random: SimRandom::new(seed),
        next: 0,
        series: 0,
    };
    run.run()
}

#[test]
fn rows_are_what_an_instant_query_gives_over_the_final_data() {
    for seed in 0..20 {
        println!("seed {seed}");
        if let Some(wrong) = run(seed) {
            panic!("seed {seed}: {wrong}");
        }
    }
}

#[test]
fn planted_faults_are_found() {
    type Plant = fn(bool);
    let plants: [(&str, Plant); 4] = [
        ("done before its rows", |on| faults::DONE_FIRST.set(on)),
        ("the first dirty step", |on| {
            faults::MOVED_MS.set((i64::from(on), 0));
        }),
        ("the last dirty step", |on| {
            faults::MOVED_MS.set((0, -i64::from(on)));
        }),
        ("another group", |on| faults::IS_UNSAFE.set(on)),
    ];
    for (what, plant) in plants {
        plant(true);
        let is_found = (0..20).any(|seed| run(seed).is_some());
        plant(false);
        assert!(is_found, "{what} is not noticed");
    }
}
