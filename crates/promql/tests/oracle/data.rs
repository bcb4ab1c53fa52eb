//! Random series: gaps, resets, stale marks, values that are not finite, broken histograms.

use latewood_promql::source::STALE_BITS;
use rand::RngExt;
use rand::rngs::StdRng;

/// A series.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// Sorted by name.
    pub(crate) labels: Vec<(String, String)>,
    /// Milliseconds and values.
    pub(crate) samples: Vec<(i64, f64)>,
}

/// What the values of a series look like.
#[derive(Clone, Copy)]
enum Shape {
    Gauge,
    Counter,
    Small,
    Constant,
    Wild,
}

/// Last timestamp, milliseconds.
const END_MS: i64 = 3_000_000;

/// Series of all kinds, in the order of their labels.
pub(crate) fn series(rng: &mut StdRng) -> Vec<Series> {
    let mut all = Vec::new();
    let mut add = |rng: &mut StdRng, text: String, shape: Shape| {
        if rng.random_range(0..10) > 0 {
            let (labels, samples) = (labels(&text), samples(rng, shape));
            all.push(Series { labels, samples });
        }
    };
    for a in [1, 2, 3] {
        for b in ["x", "y"] {
            let job = rng.random_range(1..3);
            add(rng, format!("m a={a} b={b}"), Shape::Gauge);
            add(rng, format!("n a={a} b={b}"), Shape::Small);
            let counter = format!("c_total a={a} b={b} job=j{job} instance=i1");
            add(rng, counter, Shape::Counter);
        }
        add(rng, format!("sparse a={a}"), Shape::Wild);
        add(rng, format!("n a={a} __type__=gauge"), Shape::Small);
        add(rng, format!("odd.name a={a} my.label=v1"), Shape::Gauge);
    }
    add(rng, "m b=x2".to_owned(), Shape::Gauge);
    add(rng, "odd a=10 __unit__=seconds".to_owned(), Shape::Wild);
    add(rng, "odd a=9\u{e9}".to_owned(), Shape::Counter);
    add(rng, "constant a=1".to_owned(), Shape::Constant);
    for target in [
        "instance=i1 job=j1",
        "instance=i2 job=j1",
        "instance=i1 job=j2",
    ] {
        add(rng, format!("up {target}"), Shape::Small);
        for version in [1, 2] {
            let info = format!("target_info {target} env=e version={version}");
            add(rng, info, Shape::Constant);
        }
        let info = format!("build_info {target} rev=r version=1");
        add(rng, info, Shape::Constant);
    }
    for job in [1, 2] {
        for le in ["0.1", "0.5", "1", "1.0", "5", "+Inf", "x", "-1"] {
            // Bounds that are no numbers or there twice are rarer than others.
            if !matches!(le, "1.0" | "x" | "-1") || rng.random_range(0..4) == 0 {
                add(rng, format!("h_bucket job=j{job} le={le}"), Shape::Counter);
            }
        }
    }
    info_in_turn(rng, &mut all);
    all.sort_by(|a, b| a.labels.cmp(&b.labels));
    all
}

/// The labels of `name label=value ...`, sorted.
fn labels(text: &str) -> Vec<(String, String)> {
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    let pairs = rest.split(' ').filter_map(|pair| pair.split_once('='));
    let pairs = pairs.chain([("__name__", name)]);
    let mut labels: Vec<_> = pairs
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    labels.sort();
    labels
}

/// Versions of information metrics follow one another more often than they overlap.
fn info_in_turn(rng: &mut StdRng, all: &mut [Series]) {
    let border = rng.random_range(0..END_MS);
    for series in all {
        let has =
            |name: &str, value: &str| series.labels.contains(&(name.to_owned(), value.to_owned()));
        if has("__name__", "target_info") && rng.random_range(0..8) > 0 {
            let is_first = has("version", "1");
            series
                .samples
                .retain(|(time_ms, _)| (*time_ms < border) == is_first);
        }
    }
}

fn samples(rng: &mut StdRng, shape: Shape) -> Vec<(i64, f64)> {
    let interval_ms = [10_000, 15_000, 30_000, 60_000][rng.random_range(0..4)];
    let jitter_ms = [0, 0, 1_000][rng.random_range(0..3)];
    let mut time_ms = rng.random_range(0..interval_ms);
    let mut value = rng.random_range(-50..100) as f64;
    if matches!(shape, Shape::Counter) {
        value = value.abs();
    }
    let mut samples: Vec<(i64, f64)> = Vec::new();
    while time_ms < END_MS {
        value = next(rng, shape, value);
        let shown = match rng.random_range(0..400) {
            0 => f64::from_bits(STALE_BITS),
            1 => f64::NAN,
            2 => f64::INFINITY,
            3 if !matches!(shape, Shape::Counter) => f64::NEG_INFINITY,
            _ => value,
        };
        samples.push((time_ms, shown));
        let gap = match rng.random_range(0..60) {
            0 => 40,
            1 | 2 => 4,
            _ => 1,
        };
        let jitter = if jitter_ms > 0 {
            rng.random_range(0..jitter_ms)
        } else {
            0
        };
        time_ms += interval_ms * gap + jitter;
    }
    samples
}

fn next(rng: &mut StdRng, shape: Shape, value: f64) -> f64 {
    match shape {
        Shape::Gauge => value + rng.random_range(-10.0..10.0),
        Shape::Counter if rng.random_range(0..30) == 0 => rng.random_range(0..5) as f64,
        Shape::Counter => value + rng.random_range(0..20) as f64,
        Shape::Small => rng.random_range(-2..4) as f64,
        Shape::Constant => 1.0,
        Shape::Wild => match rng.random_range(0..12) {
            0 => 1e15,
            1 => -1e-9,
            2 => f64::NAN,
            3 => 0.0,
            4 => f64::from_bits(STALE_BITS),
            _ => rng.random_range(-1e4..1e4),
        },
    }
}
