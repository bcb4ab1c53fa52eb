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
    let mut add = |rng: &mut StdRng, labels: &[(&str, &str)], shape: Shape| {
        if rng.random_range(0..10) > 0 {
            let samples = samples(rng, shape);
            all.push(Series {
                labels: sorted(labels),
                samples,
            });
        }
    };
    for a in ["1", "2", "3"] {
        for b in ["x", "y"] {
            let job = ["j1", "j2"][rng.random_range(0..2)];
            add(rng, &[("__name__", "m"), ("a", a), ("b", b)], Shape::Gauge);
            add(rng, &[("__name__", "n"), ("a", a), ("b", b)], Shape::Small);
            let counter = [
                ("__name__", "c_total"),
                ("a", a),
                ("b", b),
                ("job", job),
                ("instance", "i1"),
            ];
            add(rng, &counter, Shape::Counter);
        }
        add(rng, &[("__name__", "sparse"), ("a", a)], Shape::Wild);
        add(
            rng,
            &[("__name__", "n"), ("a", a), ("__type__", "gauge")],
            Shape::Small,
        );
        add(
            rng,
            &[("__name__", "odd.name"), ("a", a), ("my.label", "v1")],
            Shape::Gauge,
        );
    }
    add(rng, &[("__name__", "m"), ("b", "x2")], Shape::Gauge);
    add(
        rng,
        &[("__name__", "odd"), ("a", "10"), ("__unit__", "seconds")],
        Shape::Wild,
    );
    add(rng, &[("__name__", "odd"), ("a", "9é")], Shape::Counter);
    add(
        rng,
        &[("__name__", "constant"), ("a", "1")],
        Shape::Constant,
    );
    for (instance, job) in [("i1", "j1"), ("i2", "j1"), ("i1", "j2")] {
        let target = [("instance", instance), ("job", job)];
        add(
            rng,
            &[&[("__name__", "up")][..], &target].concat(),
            Shape::Small,
        );
        for version in ["1", "2"] {
            let info = [
                ("__name__", "target_info"),
                ("version", version),
                ("env", "e"),
            ];
            add(rng, &[&info[..], &target].concat(), Shape::Constant);
        }
        let info = [("__name__", "build_info"), ("version", "1"), ("rev", "r")];
        add(rng, &[&info[..], &target].concat(), Shape::Constant);
    }
    for job in ["j1", "j2"] {
        let bounds = ["0.1", "0.5", "1", "1.0", "5", "+Inf", "x", "-1"];
        for le in bounds {
            // Bounds that are no numbers or there twice are rarer than others.
            if !matches!(le, "1.0" | "x" | "-1") || rng.random_range(0..4) == 0 {
                let bucket = [("__name__", "h_bucket"), ("job", job), ("le", le)];
                add(rng, &bucket, Shape::Counter);
            }
        }
    }
    info_in_turn(rng, &mut all);
    all.sort_by(|a, b| a.labels.cmp(&b.labels));
    all
}

fn sorted(labels: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut labels: Vec<_> = labels.iter().map(owned).collect();
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
