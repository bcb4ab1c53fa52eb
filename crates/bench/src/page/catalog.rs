//! Every report: the question it answers, and the command that makes it, whole and quick.
//!
//! They are plain command lines, so that anybody can run one of them alone. The quick ones ask
//! the same of less data: they show the same picture in minutes, with a wider spread.

use crate::base::threads::up_to_all_cores;

/// Runs of every cell, where a report does not say another number.
const REPEATS: u64 = 5;
const REPEATS_QUICK: u64 = 2;

/// A report of `docs/benchmarks`: its name, its question, and its commands, whole and quick.
///
/// `{late}`, `{own}`, `{one}` and `{threads}` are filled in, and how often each cell runs:
/// `{repeats}` as others do, `{3}` three times, unless one asks for another number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) name: &'static str,
    pub(crate) question: &'static str,
    full: &'static str,
    quick: &'static str,
}

/// What reports share: late samples at pipeline 50, and over history that memory does not hold.
const LATE: &str = "late --start latewood --start redistimeseries --series 32 --samples 25000 \
                    --warmup 2000 --matrix pipeline=50 connections=8";
const LATE_QUICK: &str = "late --start latewood --start redistimeseries --series 32 --samples 5000 \
                          --warmup 500 --matrix pipeline=50 connections=8";
const OWN: &str = "late --start latewood --memory 64mb --series 8";
const ONE: &str = "--matrix pipeline=50 connections=8 encoding=compressed chunk=4096";

/// All of them, in the order they are made: those that need peers that not every machine can have
/// come last, and Prometheus, which is left alone for over a minute after each load, on its own.
pub(crate) fn reports() -> Vec<Report> {
    let text = include_str!("pages/catalog.txt").trim_end();
    let report = |block: &'static str| {
        let mut lines = block.lines();
        let (name, question) = lines.next()?.split_once(": ")?;
        Some(Report {
            name,
            question,
            full: lines.next()?,
            quick: lines.next()?,
        })
    };
    text.split("\n\n").filter_map(report).collect()
}

impl Report {
    /// The command line without the program and its files, each cell run as often as `asked`, else
    /// as the report needs.
    pub(crate) fn command(&self, quick: bool, asked: Option<u64>) -> String {
        let (words, late, usual) = match quick {
            true => (self.quick, LATE_QUICK, REPEATS_QUICK),
            false => (self.full, LATE, REPEATS),
        };
        let times = |usual: u64| asked.unwrap_or(usual).to_string();
        let words = words
            .replace("{late}", late)
            .replace("{own}", OWN)
            .replace("{one}", ONE)
            .replace("{threads}", &up_to_all_cores())
            .replace("{repeats}", &times(usual));
        (1..REPEATS).fold(words, |words, own| {
            words.replace(&format!("{{{own}}}"), &times(own))
        })
    }
}
