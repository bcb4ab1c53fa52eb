//! The data sets: made up by rule from fixed seeds, and measured.

use std::error::Error;
use std::fs::File;
use std::path::Path;

/// Samples of a made-up series.
const COUNT: usize = 512 * 100;
const START_MS: i64 = 1_700_000_000_000;

/// One named series.
#[derive(Clone)]
pub(crate) struct Series {
    pub(crate) name: String,
    pub(crate) is_real: bool,
    pub(crate) timestamps: Vec<i64>,
    pub(crate) values: Vec<f64>,
}

impl Series {
    fn made_up(name: &str, timestamps: Vec<i64>, values: Vec<f64>) -> Self {
        Self {
            name: name.to_owned(),
            is_real: false,
            timestamps,
            values,
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in 0..1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Standard normal (Box-Muller).
    fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.unit()).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

/// Made-up values of the kinds that databases meet.
pub(crate) fn values() -> Vec<Series> {
    let mut random = Random(1);
    let (mut cpu, mut walk, mut counter, mut exact) = (50.0f64, 5_000i64, 0i64, 100.0f64);
    let mut make = |name, next: &mut dyn FnMut(&mut Random) -> f64| {
        let values = (0..COUNT).map(|_| next(&mut random)).collect();
        Series::made_up(name, Vec::new(), values)
    };
    vec![
        make("cpu integers", &mut |r| {
            cpu = (cpu + r.normal()).clamp(0.0, 100.0);
            cpu.round()
        }),
        make("walk, 2 decimals", &mut |r| {
            walk += (r.normal() * 40.0) as i64;
            walk as f64 / 100.0
        }),
        make("counter", &mut |r| {
            counter += (r.unit() * 60.0) as i64;
            counter as f64
        }),
        make("full-precision walk", &mut |r| {
            exact += r.normal();
            exact
        }),
        // What a client prints that draws f32 numbers in 0..32 and formats them as short as it can.
        make("f32 in 0..32, printed", &mut |r| {
            let drawn = (r.next() >> 40) as f32 / (1u32 << 24) as f32 * 32.0;
            drawn.to_string().parse().expect("a printed number parses")
        }),
        make("constant", &mut |_| 21.5),
    ]
}

/// Made-up timestamps; values are left to the caller.
pub(crate) fn timestamps() -> Vec<Series> {
    let mut random = Random(2);
    let (mut at, mut dense) = (START_MS, START_MS);
    let mut make = |name, next: &mut dyn FnMut(i64, &mut Random) -> i64| {
        let timestamps = (0..COUNT as i64).map(|i| next(i, &mut random)).collect();
        Series::made_up(name, timestamps, Vec::new())
    };
    vec![
        make("regular 10 s", &mut |i, _| START_MS + i * 10_000),
        make("1 % missing", &mut |_, r| {
            at += if r.unit() < 0.01 { 20_000 } else { 10_000 };
            at
        }),
        // A grid that late samples fill at random: as many samples as places, so 1 - 1/e are taken.
        make("63 % dense random", &mut |_, r| {
            dense += 1_000;
            while r.unit() >= 1.0 - (-1.0f64).exp() {
                dense += 1_000;
            }
            dense
        }),
        make("scrape 15 s +- 2 ms", &mut |i, r| {
            START_MS + i * 15_000 + (r.unit() * 5.0) as i64 - 2
        }),
        make("drift", &mut |_, r| {
            at += 10_000 + i64::from(r.unit() < 0.3) + i64::from(r.unit() < 0.05);
            at
        }),
        make("Poisson 1 s", &mut |_, r| {
            at += 1 + (-1_000.0 * (1.0 - r.unit()).ln()) as i64;
            at
        }),
    ]
}

/// The measured weather of `data/`, one series per station and quantity.
pub(crate) fn weather() -> Result<Vec<Series>, Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/nyc-weather-2013.csv.gz");
    let mut rows = csv::Reader::from_reader(flate2::read::GzDecoder::new(File::open(path)?));
    let quantities: Vec<String> = rows.headers()?.iter().skip(2).map(str::to_owned).collect();
    let mut all: Vec<Series> = Vec::new();
    for row in rows.records() {
        let row = row?;
        for (column, quantity) in quantities.iter().enumerate() {
            let Ok(value) = row[column + 2].parse() else {
                continue;
            };
            let name = format!("{} {quantity}", &row[0]);
            let index = all
                .iter()
                .position(|series| series.name == name)
                .unwrap_or_else(|| {
                    all.push(Series {
                        is_real: true,
                        ..Series::made_up(&name, Vec::new(), Vec::new())
                    });
                    all.len() - 1
                });
            all[index].timestamps.push(row[1].parse::<i64>()? * 1_000);
            all[index].values.push(value);
        }
    }
    Ok(all)
}

/// A CSV file of `unix_ms,value` rows without a header.
pub(crate) fn read(path: &str) -> Result<Series, Box<dyn Error>> {
    let name = Path::new(path)
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or(path);
    let mut series = Series {
        is_real: true,
        ..Series::made_up(name, Vec::new(), Vec::new())
    };
    for row in csv::ReaderBuilder::new()
        .has_headers(false)
        .from_path(path)?
        .records()
    {
        let row = row?;
        series.timestamps.push(row[0].parse()?);
        series.values.push(row[1].parse()?);
    }
    Ok(series)
}
