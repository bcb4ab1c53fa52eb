//! Long work asks whether the query must end, also where it reads nothing meanwhile.

use crate::evaluation::memory::Memory;
use crate::evaluation::table::range;
use latewood_promql::engine::Settings;
use latewood_promql::source::Samples;

/// Steps, a millisecond apart.
const STEPS: i64 = 11_000;
/// Samples that may be passed between two checks.
const SAMPLES: usize = 1 << 20;

/// The checks of a query on one thread that is cancelled at number `checks_max`, and what it gave.
fn checks(memory: &mut Memory, query: &str, checks_max: usize) -> (usize, String) {
    memory.checks_max = checks_max;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let lines = pool.unwrap().install(|| {
        let times = (0, STEPS - 1, 1);
        range(memory, query, times, &Settings::default())
    });
    (memory.take_checks(), lines.join("; "))
}

/// Checks that a query which passes `samples` asks often enough, and ends at the check that fails.
fn asks(memory: &mut Memory, query: &str, samples: usize) {
    let (asked, lines) = checks(memory, query, 0);
    assert!(!lines.is_empty() && !lines.starts_with("error"), "{query}");
    assert!(asked >= samples / SAMPLES, "{query}: {asked} checks");
    let (ended, lines) = checks(memory, query, asked / 2);
    let why = "error: query was canceled in expression evaluation";
    assert_eq!((ended, &*lines), (asked / 2, why), "{query}");
}

/// A counter with a sample each millisecond, half of them resets.
fn saw() -> Memory {
    let times = -3000..STEPS + 3000;
    let samples = Samples {
        values: times.clone().map(|at| (at & 1) as f64).collect(),
        timestamps: times.collect(),
    };
    let mut memory = Memory::default();
    memory.add(crate::evaluation::memory::labels("saw_total"), samples);
    memory
}

#[test]
fn windows_count_their_samples() {
    let steps = STEPS as usize;
    for query in [
        "quantile_over_time(0.5, vector(time())[500ms:1ms])",
        "mad_over_time(vector(time())[500ms:1ms])",
        "stdvar_over_time(vector(time())[500ms:1ms])",
        "stddev_over_time(vector(time())[500ms:1ms])",
        "integral(vector(time())[500ms:1ms])",
        "deriv(vector(time())[500ms:1ms])",
        "predict_linear(vector(time())[500ms:1ms], 1)",
        "double_exponential_smoothing(vector(time())[500ms:1ms], 0.5, 0.5)",
        "sum_over_time(vector(time() * 1e306)[500ms:1ms])",
        "avg_over_time(vector(time() * 1e306)[500ms:1ms])",
    ] {
        asks(&mut Memory::default(), query, steps * 500);
    }
    for query in [
        "rate(saw_total[1s])",
        "increase(saw_total[1s])",
        "rate(saw_total[500ms] anchored)",
        "increase(saw_total[500ms] smoothed)",
    ] {
        asks(&mut saw(), query, steps * 500);
    }
}

#[test]
fn columns_count_their_steps() {
    let chain = " + vector(1)".repeat(20) + &" + 1".repeat(20) + &" + time()".repeat(20);
    let query = format!("max_over_time((vector(time()){chain})[300s:1ms])");
    asks(&mut Memory::default(), &query, 18_000_000);
}

#[test]
fn groups_and_histograms_count_their_values() {
    let bound = |at: usize| match at {
        0 => "+Inf".to_owned(),
        _ => at.to_string(),
    };
    let lines = (0..400).map(|at| format!("x{{le=\"{}\"}} 0+1x1100\n", bound(at)));
    let lines: String = lines.collect();
    let mut memory = Memory::load(10, &lines);
    let values = 400 * STEPS as usize / SAMPLES;
    // A check for each series read; the values of all columns, and how often they are passed again.
    let (of_count, _) = checks(&mut memory, "count(x)", 0);
    for (query, base, passes) in [
        ("quantile(0.5, x)", of_count, 1),
        ("histogram_quantile(0.5, x)", 400, 3),
        ("histogram_fraction(0, 5, x)", 400, 2),
        ("histogram_quantiles(x, \"q\", 0.5, 0.9)", 400, 4),
    ] {
        let (asked, lines) = checks(&mut memory, query, 0);
        assert!(!lines.starts_with("error"), "{query}: {lines}");
        assert!(asked >= base + passes * values - 1, "{query}: {asked}");
    }
}
