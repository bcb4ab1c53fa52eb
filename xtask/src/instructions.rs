//! `cargo run -p xtask -- instructions [--record]`: counts the instructions of the hottest paths
//! under callgrind and compares them with those recorded.
//!
//! Instruction counts are stable, times are not. A path above the tolerance has become slower; one
//! below it has a record that would hide the next regression. Both fail, and `--record` writes the
//! new counts. The portable loops are counted, so that counts do not depend on the processor's
//! vectors; code that libraries select by processor (memory copies, searches) is a small part and
//! within the tolerance. Counts are recorded on x86-64 and not compared elsewhere.
//!
//! Callgrind is run directly and not through gungraun (formerly iai-callgrind), which needs a
//! separately installed runner of exactly the same version
//! (<https://gungraun.github.io/gungraun/latest/html/installation/gungraun.html>). Valgrind is a
//! system package.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The recorded counts, committed beside the paths.
const RECORD: &str = "crates/bench/benches/paths/instructions.txt";
/// Largest deviation from the record, in percent.
const TOLERANCE_PERCENT: f64 = 5.0;
/// The function that callgrind measures.
const MEASURED: &str = "paths::measured*";

/// What a task of this program comes to.
pub(crate) type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Instructions of a path.
#[derive(Clone, Debug, PartialEq)]
struct Count {
    name: String,
    /// Samples, commands or series.
    items: u64,
    instructions: u64,
}

/// Counts and compares, or records.
///
/// # Errors
/// When valgrind or the paths cannot be run, or a path deviates from its record.
pub(crate) fn run(record: bool) -> Anything {
    if !cfg!(target_arch = "x86_64") {
        println!("instructions: NOT COMPARED, the record is for x86-64");
        return Ok(());
    }
    let found = Command::new("valgrind").arg("--version").output();
    if !found.is_ok_and(|found| found.status.success()) {
        return Err("valgrind is not installed".into());
    }
    let counted = count(&build()?)?;
    if record {
        std::fs::write(RECORD, table(&counted))?;
        println!("instructions: {} paths recorded", counted.len());
        return Ok(());
    }
    let recorded = read(&std::fs::read_to_string(RECORD)?)?;
    let breaches = compare(&recorded, &counted);
    for breach in &breaches {
        println!("{breach}");
    }
    println!(
        "instructions: {} paths, {} deviate from their record",
        counted.len(),
        breaches.len()
    );
    match breaches.len() {
        0 => Ok(()),
        _ => Err(
            "explain it in the commit and run: cargo run -p xtask -- instructions --record".into(),
        ),
    }
}

/// Builds the paths; returns the program.
fn build() -> Anything<PathBuf> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    // With the options of `make build`, to share its artifacts.
    let words = "bench --locked -p latewood-server -p latewood-bench --bench paths --no-run --message-format=json";
    let output = Command::new(cargo)
        .args(words.split(' '))
        .stderr(std::process::Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("cannot build the paths".into());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let program = text.lines().rev().find_map(executable);
    program.ok_or_else(|| "no program in the output of cargo".into())
}

/// The program of the paths, if a message of cargo contains it.
fn executable(message: &str) -> Option<PathBuf> {
    if !message.contains("\"name\":\"paths\"") {
        return None;
    }
    let (_, rest) = message.split_once("\"executable\":\"")?;
    rest.split_once('"').map(|(path, _)| PathBuf::from(path))
}

/// Runs each path of the program under callgrind.
fn count(program: &Path) -> Anything<Vec<Count>> {
    let listed = Command::new(program).arg("--list").output()?;
    let listed = String::from_utf8(listed.stdout)?;
    let mut counts = Vec::new();
    for line in listed.lines() {
        let (name, items) = line.split_once(' ').ok_or("path without items")?;
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--collect-atstart=no"])
            .arg("--callgrind-out-file=/dev/null")
            .arg(format!("--toggle-collect={MEASURED}"))
            .arg(program)
            .args(["--count", name])
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let counted = collected(&said).filter(|_| output.status.success());
        counts.push(Count {
            name: name.to_owned(),
            items: items.parse()?,
            instructions: counted.ok_or_else(|| format!("{name} was not counted: {said}"))?,
        });
    }
    if counts.is_empty() {
        Err("the program lists no paths".into())
    } else {
        Ok(counts)
    }
}

/// The number of instructions in callgrind's output; `None` if `measured` was not called.
fn collected(said: &str) -> Option<u64> {
    let mut counts = said.lines().filter_map(|line| {
        let (_, count) = line.split_once("Collected :")?;
        count.trim().parse().ok()
    });
    counts.next().filter(|&count| count > 0)
}

fn table(counts: &[Count]) -> String {
    let mut text = String::from(
        "# Instructions of the hottest paths, counted by `cargo run -p xtask -- instructions --record`.\n\
         # path, items, instructions, instructions per item\n",
    );
    for count in counts {
        let each = count.instructions as f64 / count.items as f64;
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{} {} {} {each:.1}",
            count.name, count.items, count.instructions
        );
    }
    text
}

fn read(text: &str) -> Anything<Vec<Count>> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let count = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [name, items, instructions, _] => Ok(Count {
                name: (*name).to_owned(),
                items: items.parse()?,
                instructions: instructions.parse()?,
            }),
            _ => Err(format!("{RECORD}: {line:?}").into()),
        }
    };
    lines.map(count).collect()
}

/// The deviations, one line each.
fn compare(recorded: &[Count], counted: &[Count]) -> Vec<String> {
    let mut breaches = Vec::new();
    for count in counted {
        let same = |record: &&Count| record.name == count.name && record.items == count.items;
        let Some(record) = recorded.iter().find(same) else {
            breaches.push(format!(
                "{}: no record for {} items",
                count.name, count.items
            ));
            continue;
        };
        let [was, is] = [record, count].map(|c| c.instructions as f64 / c.items as f64);
        let percent = (is / was - 1.0) * 100.0;
        println!(
            "{:<24} {is:>9.1} instructions per item, {percent:+.2} %",
            count.name
        );
        if percent.abs() > TOLERANCE_PERCENT {
            breaches.push(format!(
                "{}: {was:.1} recorded, {is:.1} counted",
                count.name
            ));
        }
    }
    let gone = |record: &&Count| counted.iter().all(|count| count.name != record.name);
    let gone = recorded.iter().filter(gone);
    breaches.extend(gone.map(|record| format!("{}: recorded, but no such path", record.name)));
    breaches
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, instructions: u64) -> Count {
        Count {
            name: name.to_owned(),
            items: 100,
            instructions,
        }
    }

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let counts = [one("a", 12_345), one("b", 7)];
        assert_eq!(read(&table(&counts)).unwrap(), counts);
        assert!(read("a 1 2").is_err());
    }

    #[test]
    fn more_and_less_than_the_tolerance_is_a_breach() {
        let recorded = [
            one("a", 1_000),
            one("b", 1_000),
            one("c", 1_000),
            one("e", 1),
        ];
        let counted = [one("a", 1_040), one("b", 1_060), one("c", 940), one("d", 1)];
        let breaches = compare(&recorded, &counted);
        let names: Vec<&str> = breaches.iter().map(|b| &b[..1]).collect();
        assert_eq!(names, ["b", "c", "d", "e"]);
    }

    #[test]
    fn what_tools_write_is_read() {
        let said = "==7== Events    : Ir\n==7== Collected : 36105832\n==7== \n";
        assert_eq!(collected(said), Some(36_105_832));
        assert_eq!(collected("==7== Collected : 0\n"), None);
        let message = r#"{"target":{"name":"paths"},"executable":"/t/paths-1","fresh":true}"#;
        assert_eq!(executable(message), Some(PathBuf::from("/t/paths-1")));
        assert_eq!(executable(r#"{"executable":null}"#), None);
        let other = r#"{"target":{"name":"latewood"},"executable":"/t/latewood"}"#;
        assert_eq!(executable(other), None);
    }
}
