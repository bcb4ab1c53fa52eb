//! The fuzz targets as ordinary tests, without libFuzzer: each target runs over its seeds, over
//! the corpus of earlier fuzzing where there is one, and over random mutations of both.
//!
//! Mutations follow from [`SEED`] and are the same in every run. An input that fails is printed.
//! `fuzz/run.sh` runs the same targets with libFuzzer, as `make soak` does.
#![allow(clippy::unwrap_used, reason = "a test panics where it fails")]

// Targets find the macro below under the name of the library.
extern crate self as libfuzzer_sys;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::path::Path;
use std::thread;

const SEED: u64 = 1;
/// Mutations of all inputs of a target together.
const MUTATIONS: usize = 2_000;
/// The same of targets that open a database or start a server for each input.
const SLOW_MUTATIONS: usize = 200;
const SLOW: [&str; 3] = ["commands", "directory", "http"];
/// Changes that make one mutation.
const CHANGES_MAX: usize = 4;
/// Longer mutations are cut.
const LEN_BYTES_MAX: usize = 64 * 1024;

macro_rules! targets {
    ($($name:ident)*) => {
        mod targets {
            $(mod $name;)*
        }
        const TARGETS: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! {
    acl_rules akumuli block commands csv_lines directory dump envelope exposition filter frame glob http
    import_csv import_influx import_prometheus influx json_lines listing log_group manifest number opentsdb_json opentsdb_telnet
    otlp promql rdb remote_read remote_write resp_command resp_reply rules series_file
    series_name
}

/// What `libfuzzer_sys` calls a target: here, a test. Behind the targets, which import it.
#[macro_export]
macro_rules! fuzz_target {
    (|$text:ident: &str| $body:expr) => {
        $crate::fuzz_target!(|bytes: &[u8]| {
            if let Ok($text) = std::str::from_utf8(bytes) {
                $body
            }
        });
    };
    (|$bytes:ident: &[u8]| $body:expr) => {
        #[test]
        fn replay() {
            $crate::replay(module_path!(), |$bytes| $body);
        }
    };
}

/// Prints the input on the way out of a panic.
struct Running<'a>(&'a [u8]);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("failed with b\"{}\"", self.0.escape_ascii());
        }
    }
}

/// Runs a target over its inputs and over mutations of them.
fn replay(module: &str, target: impl Fn(&[u8])) {
    let name = module.rsplit("::").next().unwrap();
    let run = |input: &[u8]| {
        let _running = Running(input);
        target(input);
    };
    let inputs = inputs(name);
    assert!(!inputs.is_empty(), "fuzz/seeds/{name} is empty");
    inputs.iter().for_each(|input| run(input));
    let mutations = if SLOW.contains(&name) {
        SLOW_MUTATIONS
    } else {
        MUTATIONS
    };
    println!(
        "{} inputs, {mutations} mutations from seed {SEED}",
        inputs.len()
    );
    let mut rng = StdRng::seed_from_u64(SEED);
    for at in 0..mutations {
        run(&mutated(&inputs, at % inputs.len(), &mut rng));
    }
}

/// The files of a target in `seeds` and `corpus`, in the order of their names.
fn inputs(name: &str) -> Vec<Vec<u8>> {
    let mut paths = Vec::new();
    for folder in ["seeds", "corpus"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../fuzz")
            .join(folder);
        if let Ok(entries) = std::fs::read_dir(folder.join(name)) {
            paths.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// Input `at` with a few changes: bytes that are others, gone, doubled, or from another input.
fn mutated(inputs: &[Vec<u8>], at: usize, rng: &mut StdRng) -> Vec<u8> {
    let mut bytes = inputs[at].clone();
    for _ in 0..rng.random_range(1..=CHANGES_MAX) {
        let from = rng.random_range(0..=bytes.len());
        let to = bytes.len().min(from + rng.random_range(1..=16));
        match rng.random_range(0..6) {
            0 => bytes[from..to]
                .iter_mut()
                .take(1)
                .for_each(|byte| *byte = rng.random()),
            1 => bytes[from..to]
                .iter_mut()
                .take(1)
                .for_each(|byte| *byte ^= 1 << rng.random_range(0..8)),
            2 => drop(bytes.drain(from..to)),
            3 => bytes.truncate(from),
            4 => {
                let piece = bytes[from..to].to_vec();
                bytes.splice(from..from, piece);
            }
            _ => {
                let other = &inputs[rng.random_range(0..inputs.len())];
                let start = rng.random_range(0..=other.len());
                let end = other.len().min(start + rng.random_range(1..=64));
                bytes.splice(from..to, other[start..end].iter().copied());
            }
        }
    }
    bytes.truncate(LEN_BYTES_MAX);
    bytes
}

#[test]
fn every_target_is_replayed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/targets");
    let names = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    let targets: Vec<_> = TARGETS.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names, targets);
}
