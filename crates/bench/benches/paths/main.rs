//! The hottest paths of Latewood, each alone, on one thread.
//!
//! `cargo bench -p latewood-bench --bench paths [PART OF A NAME]` times them. `--list` names them,
//! and `--count NAME` runs one once after a warm-up, through `measured`, so that callgrind can
//! count its instructions:
//! `cargo run -p xtask -- instructions` does that and compares with `instructions.txt`, since
//! instructions are stable where time is not. Counts are of the portable loops, whatever vectors
//! the processor has.

mod codec;
mod engine;
mod wire;

use std::hint::black_box;
use std::time::Instant;

/// Rounds of a timed path; the median counts.
const ROUNDS: usize = 25;
/// Rounds before a path is counted: buffers have grown, caches are filled.
const WARM_ROUNDS: usize = 3;

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A path.
trait Path {
    /// Puts everything in place for a run; not measured.
    fn prepare(&mut self) -> Anything {
        Ok(())
    }

    /// Goes the path for [`Entry::items`] items; returns what the compiler must not leave out.
    fn run(&mut self) -> Anything<u64>;
}

/// A path under its name.
struct Entry {
    name: &'static str,
    /// Samples, commands or series of a run.
    items: u64,
    open: fn() -> Anything<Box<dyn Path>>,
}

const PATHS: [Entry; 19] = [
    entry("parse_ts_add", wire::ITEMS, wire::parse),
    entry("parse_ts_madd", wire::ITEMS, wire::parse_many),
    entry("parse_lines", wire::ITEMS, wire::lines),
    entry("reply_integer", wire::ITEMS, wire::reply),
    entry("append_by_key", engine::ITEMS, engine::by_key),
    entry("append_by_key_timed", engine::ITEMS, engine::by_key_timed),
    entry("append_one_rule", engine::ITEMS, engine::one_rule),
    entry("append_unwatched", engine::ITEMS, engine::unwatched),
    entry("append_watched", engine::ITEMS, engine::watched),
    entry("append_by_reference", engine::ITEMS, engine::by_reference),
    entry("append_late", engine::ITEMS, engine::late),
    entry("append_late_block", engine::ITEMS, engine::late_block),
    entry("settle_late", engine::ITEMS, engine::settle),
    entry("new_series", engine::ITEMS, engine::new_series),
    entry("index_new_series", engine::ITEMS, engine::index),
    entry("encode_frames", codec::ITEMS, codec::encode),
    entry("decode_frames", codec::ITEMS, codec::decode),
    entry("read_samples", engine::READ_ITEMS, engine::read),
    entry("read_means", engine::READ_ITEMS, engine::means),
];

const fn entry(name: &'static str, items: u64, open: fn() -> Anything<Box<dyn Path>>) -> Entry {
    Entry { name, items, open }
}

fn main() -> Anything {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--list"] => PATHS
            .iter()
            .for_each(|entry| println!("{} {}", entry.name, entry.items)),
        ["--count", name] => {
            let entry = PATHS.iter().find(|entry| entry.name == *name);
            return count(entry.ok_or("no such path")?);
        }
        words => {
            // Cargo adds `--bench`.
            let part = words.iter().find(|word| !word.starts_with('-'));
            for entry in PATHS.iter() {
                if part.is_none_or(|part| entry.name.contains(part)) {
                    time(entry)?;
                }
            }
        }
    }
    Ok(())
}

/// Runs a path once through [`measured`].
fn count(entry: &Entry) -> Anything {
    latewood_codec::portable_only();
    let mut path = (entry.open)()?;
    for _ in 0..WARM_ROUNDS {
        path.prepare()?;
        black_box(path.run()?);
    }
    path.prepare()?;
    black_box(measured(path.as_mut())?);
    Ok(())
}

/// Where callgrind begins to count and ends.
#[inline(never)]
fn measured(path: &mut dyn Path) -> Anything<u64> {
    // Not a tail call: the function must be seen to return.
    black_box(path.run())
}

/// Prints the median time of an item.
fn time(entry: &Entry) -> Anything {
    let mut path = (entry.open)()?;
    let mut nanoseconds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        path.prepare()?;
        let began = Instant::now();
        black_box(path.run()?);
        nanoseconds.push(began.elapsed().as_nanos() as f64 / entry.items as f64);
    }
    nanoseconds.sort_by(f64::total_cmp);
    let [least, median] = [nanoseconds[0], nanoseconds[ROUNDS / 2]];
    println!("{:<24} {median:>8.1} ns, at least {least:.1}", entry.name);
    Ok(())
}
