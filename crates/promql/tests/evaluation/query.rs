//! Limits, damage, threads, sinks.

use crate::MIN;
use crate::memory::Memory;
use crate::table::range;
use latewood_promql::Times;
use latewood_promql::engine::{Error, EvalError, Query, Settings};

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
