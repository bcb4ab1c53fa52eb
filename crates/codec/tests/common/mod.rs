//! Frames to test with: every shape of timestamps times every shape of values.

/// A small generator, so that a seed replays a test (SplitMix64, Steele et al. 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Timestamps of every shape the codings know.
pub(crate) fn timestamp_shapes(count: usize, random: &mut Random) -> Vec<(&'static str, Vec<i64>)> {
    let start = 1_700_000_000_000i64;
    let grid: Vec<i64> = (0..count as i64).map(|i| start + i * 10_000).collect();
    let mut gaps = Vec::new();
    let mut at = start;
    for _ in 0..count {
        at += if random.below(50) == 0 {
            30_000
        } else {
            10_000
        };
        gaps.push(at);
    }
    let jitter = grid.iter().map(|t| t + random.below(5) as i64).collect();
    let mut poisson = Vec::new();
    for _ in 0..count {
        at += 1 + random.below(2_000) as i64;
        poisson.push(at);
    }
    let mut wild: Vec<i64> = (0..count).map(|_| random.next() as i64).collect();
    wild.extend([i64::MIN, i64::MAX]);
    wild.sort_unstable();
    wild.dedup();
    let skip = wild.len() - count.min(wild.len());
    wild.remove(wild.len() / 2);
    wild.drain(1..skip.max(1));
    wild.truncate(count);
    let mut dense = vec![start];
    while dense.len() < count {
        let place = dense[dense.len() - 1] + 1_000 * (1 + (random.below(8) / 5) as i64);
        dense.push(place);
    }
    vec![
        ("grid", grid),
        ("gaps", gaps),
        ("jitter", jitter),
        ("poisson", poisson),
        ("wild", wild),
        ("dense", dense),
    ]
}

/// Values of every shape the codings know.
pub(crate) fn value_shapes(count: usize, random: &mut Random) -> Vec<(&'static str, Vec<f64>)> {
    let mut of = |make: &mut dyn FnMut(&mut Random) -> f64| {
        (0..count).map(|_| make(random)).collect::<Vec<_>>()
    };
    let mut level = 2_000i64;
    let mut exact = 1.0f64;
    vec![
        ("constant", of(&mut |_| 21.5)),
        ("integers", of(&mut |r| r.below(100) as f64)),
        (
            "walk",
            of(&mut |r| {
                level += r.below(21) as i64 - 10;
                level as f64 / 100.0
            }),
        ),
        (
            "ulp noise",
            of(&mut |r| r.below(100_000) as f64 * 0.001 + 0.003),
        ),
        ("levels", of(&mut |r| (r.below(5) as f64).sqrt())),
        ("f32", of(&mut |r| f64::from(r.next() as u32 as f32))),
        (
            "full precision",
            of(&mut |r| {
                exact += (r.below(1_000_000) as f64 / 1e6 - 0.5).sin();
                exact
            }),
        ),
        (
            "decimals and NaN",
            of(&mut |r| match r.below(40) {
                0 => f64::from_bits(0x7ff0_0000_0000_0002),
                1 => -0.0,
                n => n as f64 / 10.0,
            }),
        ),
        ("bits", of(&mut |r| f64::from_bits(r.next()))),
        (
            "infinities",
            of(&mut |r| [f64::INFINITY, f64::NEG_INFINITY, 0.0][r.below(3) as usize]),
        ),
        (
            "all NaN",
            of(&mut |r| f64::from_bits(0x7ff8_0000_0000_0000 | r.below(1 << 40))),
        ),
        ("denormals", of(&mut |r| f64::from_bits(r.below(1 << 30)))),
    ]
}
