//! Limits, damage, threads, sinks.

use crate::evaluation::MIN;
use crate::evaluation::memory::Memory;
use crate::evaluation::table::{instant, range};
use latewood_promql::Times;
use latewood_promql::engine::{Error, EvalError, Query, Settings};
use latewood_promql::labels::Labels;
use latewood_promql::source::{Found, Hold, Matcher, Source, SourceError, Take};
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn damage_and_limits_fail_a_query() {
    let lines = "x{a=\"1\"} 0+1x100 \n x{a=\"2\"} 0+1x100";
    let run = |change: fn(&mut Memory, &mut Settings), query: &str| {
        let mut memory = Memory::load(MIN, lines);
        let mut settings = Settings::default();
        change(&mut memory, &mut settings);
        range(&memory, query, (0, 100 * MIN, MIN), &settings)
    };
    assert_eq!(
        run(|memory, _| memory.damaged = Some(1), "sum(rate(x[5m]))"),
        ["error: expanding series: block 7 is damaged"]
    );
    assert_eq!(
        run(|memory, _| memory.reads_max = 1, "sum(x)"),
        ["error: query was canceled in expression evaluation"]
    );
    assert_eq!(
        run(|_, settings| settings.memory_bytes_max = 1000, "sum(x)"),
        ["error: query needs more than 1000 bytes of memory; narrow the selectors or the range"]
    );
    let samples = "error: query processing would load too many samples into memory in query \
                   execution";
    assert_eq!(
        run(|_, settings| settings.samples_max = 100, "sum(x)"),
        [samples]
    );
    assert_eq!(
        run(|_, settings| settings.samples_max = 150, "x"),
        [samples]
    );
    assert_eq!(
        run(
            |_, settings| settings.samples_max = 150,
            "sum_over_time(x[100y:1s])"
        ),
        [samples]
    );
}

#[test]
fn results_do_not_depend_on_threads() {
    let lines: String = (0..300)
        .map(|at| format!("x{{a=\"{at}\",b=\"{}\"}} {at}.1+0.3x50\n", at % 7))
        .collect();
    let memory = Memory::load(MIN, &lines);
    let run = |threads: usize, query: &str| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        pool.install(|| range(&memory, query, (0, 60 * MIN, MIN), &Settings::default()))
    };
    for query in [
        "sum by (b) (x)",
        "avg(x)",
        "topk by (b) (2, x)",
        "quantile(0.3, x)",
        "x * 2",
    ] {
        let single = run(1, query);
        assert!(!single.is_empty() && single == run(4, query), "{query}");
    }
}

#[test]
fn what_a_sink_says_ends_the_query() {
    let memory = Memory::load(MIN, "x{a=\"1\"} 1 \n x{a=\"2\"} 1");
    let times = Times {
        start_ms: 0,
        end_ms: MIN,
        step_ms: MIN,
    };
    let mut handed = 0;
    let query = Query::new("x").unwrap();
    let result = query.range(times, &Settings::default(), &memory, &mut |_, _| {
        handed += 1;
        Err(EvalError::Query("enough".to_owned()))
    });
    assert!(matches!(result, Err(Error::Eval(EvalError::Query(text))) if text == "enough"));
    assert_eq!(handed, 1);
}

#[test]
fn the_deepest_expressions_fit_a_small_stack() {
    // Of each form the deepest that the parser takes, found by halving.
    let forms = [
        ("-(", "x", ")"),
        ("sum(", "x", ")"),
        ("abs(", "x", ")"),
        ("max_over_time((", "x", ")[2m:1m])"),
        ("(x + on() ", "x", ")"),
        ("", "x", " or on(a) x"),
    ];
    let evaluate = move || {
        let memory = Memory::load(MIN, "x 1");
        for (before, middle, after) in forms {
            let text = |deep: usize| before.repeat(deep) + middle + &after.repeat(deep);
            let (mut taken, mut refused) = (0, 5000);
            while refused - taken > 1 {
                let deep = (taken + refused) / 2;
                match Query::new(&text(deep)) {
                    Ok(_) => taken = deep,
                    Err(_) => refused = deep,
                }
            }
            // Subqueries within subqueries take a second step each; a few are enough.
            let deep = if before.starts_with("max") {
                taken.min(20)
            } else {
                taken
            };
            let lines = instant(&memory, &text(deep), 0, &Settings::default());
            assert_eq!(lines.len(), 1, "{deep} times {before}: {lines:?}");
            assert!(
                !lines[0].starts_with("error"),
                "{deep} times {before}: {lines:?}"
            );
        }
    };
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread.spawn(evaluate).unwrap().join().unwrap();
}

/// Series that are larger than they may be, in pieces of 1,000 samples or 1,000 bytes.
struct Flood {
    pieces_max: usize,
    pieces: AtomicUsize,
}

impl Flood {
    /// Gives pieces until it is told to stop.
    fn flow(&self, mut give: impl FnMut() -> std::ops::ControlFlow<()>) {
        for _ in 0..self.pieces_max {
            self.pieces.fetch_add(1, Ordering::Relaxed);
            if give().is_break() {
                return;
            }
        }
    }
}

impl Source for Flood {
    fn select(
        &self,
        matchers: &[Matcher],
        _: i64,
        _: i64,
        hold: &mut Hold<'_>,
    ) -> Result<Vec<Found>, SourceError> {
        if matchers.iter().any(|matcher| matcher.passes(b"wide")) {
            self.flow(|| hold(1000));
        }
        let found = |handle| Found {
            handle,
            labels: Labels::from_pairs([("a", ["1", "2"][handle])]),
        };
        Ok(vec![found(0), found(1)])
    }

    fn read(&self, _: usize, _: i64, _: i64, take: &mut Take<'_>) -> Result<(), SourceError> {
        let mut next = 0;
        self.flow(|| {
            let timestamps: Vec<i64> = (next..next + 1000).collect();
            next += 1000;
            take(&timestamps, &[1.0; 1000])
        });
        Ok(())
    }
}

#[test]
fn a_source_stops_where_the_memory_of_the_query_ends() {
    let run = |query: &str, memory_bytes_max: usize, samples_max: usize| {
        let flood = Flood {
            pieces_max: 10_000,
            pieces: AtomicUsize::new(0),
        };
        let settings = Settings {
            memory_bytes_max,
            samples_max,
            ..Settings::default()
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build();
        let result = pool.unwrap().install(|| {
            Query::new(query)
                .unwrap()
                .instant(1 << 40, &settings, &flood)
        });
        (
            result.unwrap_err().to_string(),
            flood.pieces.load(Ordering::Relaxed),
        )
    };
    let memory = "query needs more than 1000000 bytes of memory; narrow the selectors or the range";
    // 62 pieces of 16,000 bytes, also where two threads read.
    let (error, pieces) = run("sum(count_over_time(thin[1y]))", 1_000_000, usize::MAX);
    assert_eq!(error, memory);
    assert!(pieces <= 64, "{pieces}");
    let (error, pieces) = run("thin[1y]", 1_000_000, usize::MAX);
    assert_eq!(error, memory);
    assert!(pieces <= 63, "{pieces}");
    let (error, pieces) = run("wide", 1_000_000, usize::MAX);
    assert_eq!((&*error, pieces), (memory, 1001));
    let (error, pieces) = run("thin[1y]", 1 << 40, 10_000);
    let samples =
        "query processing would load too many samples into memory in query execution".to_owned();
    assert_eq!((error, pieces), (samples, 11));
}
