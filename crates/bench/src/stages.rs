//! The stages benchmark: where the time of a write goes, and what it costs to look.
//!
//! The engine times one batch in so many, stage by stage. Here it does so under loads that differ
//! in one thing each: new series and known ones; in order and late. In process it is asked for
//! its figures, over the wire they stand in `INFO stages`. What the timing costs is measured by
//! turns with it on and off, each from the same beginning: on one database the samples of the turns
//! before would make every late sample dearer, until the timing drowned in that.

mod cost;
mod figures;
mod process;
mod wire;

use clap::{Args, ValueEnum};
use latewood_model::DuplicatePolicy;
use serde::{Deserialize, Serialize};

pub(crate) use self::cost::SamplingCost;
pub(crate) use self::figures::{StageLine, StagesRun, take as take_stages};
use crate::error::Result;
use crate::machine::Machine;
use crate::output::Rounds;
use crate::report::json::{Measurement, StagesReport};
use crate::target::Durability;

/// Series of the loads that differ in lateness, as in the late benchmark.
const LATE_SERIES: u64 = 32;
/// Samples each of them has before.
const HISTORY: u64 = 20_000;
/// The same where the timing is weighed: turns are short, and each begins with one.
const COST_HISTORY: u64 = 5_000;

/// A load that waits for the disk is so many times as short.
const SYNC_SHARE: u64 = 10;

/// A sort of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Write {
    /// First samples of series, with key and labels.
    New,
    /// To the same series, by key and labels.
    KnownLabels,
    /// To the same series, by key.
    Known,
    /// To the same series, resolved before.
    Reference,
    /// To few series, in order.
    InOrder,
    /// To few series, each sample late.
    Late,
    /// The same where a timestamp that is there already is refused.
    LateBlock,
    /// To few series in order, each with a compaction rule.
    OneRule,
    /// To few series in order, each batch on disk before the next.
    Synced,
}

/// A load on few series.
#[derive(Clone, Copy, Debug)]
struct FewLoad {
    write: Write,
    /// Late samples, from 0 to 1.
    late_share: f64,
    policy: DuplicatePolicy,
    rules: usize,
    durability: Durability,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The engine without sockets
    Process,
    /// A server of its own
    Wire,
    /// What the timing costs
    Cost,
}

/// Measure where the time of a write goes, stage by stage, and what the timing costs.
#[derive(Clone, Debug, Args)]
pub(crate) struct StagesArgs {
    /// New series, which are the known ones afterwards
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(100..=100_000_000))]
    series: u64,
    /// Labels of each
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(0..=10))]
    labels: u64,
    /// Samples of each load that differs in lateness
    #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1_000..=1_000_000_000))]
    samples: u64,
    /// Time one batch in so many
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..))]
    sampling: u32,
    /// Pairs of turns, one with the timing off and one with it on
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(6..=10_000))]
    pairs: u64,
    /// Samples of such a turn
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1_000..=100_000_000))]
    turn: u64,
    /// Only these parts
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Part>,
    #[command(flatten)]
    rounds: Rounds,
}

/// Runs the subcommand; `command` is its command line, for the report.
///
/// # Errors
/// When the engine or a server refuses or has lost a sample, or a file cannot be written.
pub(crate) fn run(args: &StagesArgs, command: &str) -> Result<()> {
    let mut report = StagesReport {
        machine: Machine::look(command),
        series: args.series,
        labels: args.labels as usize,
        sampling: args.sampling,
        runs: Vec::new(),
        costs: Vec::new(),
    };
    for repeat in 0..args.rounds.repeats {
        let mut runs = Vec::new();
        if args.takes(Part::Process) {
            runs.extend(process::run(args, repeat)?);
        }
        if args.takes(Part::Wire) {
            runs.extend(wire::run(args, repeat)?);
        }
        runs.iter().for_each(|run| println!("{}", run.sentence()));
        report.runs.extend(runs);
        let so_far = Measurement::Stages(report.clone());
        args.rounds.output.save(&so_far)?;
    }
    if args.takes(Part::Cost) {
        for cost in [process::cost(args)?, wire::cost(args)?] {
            println!("{}", cost.sentence());
            report.costs.push(cost);
        }
    }
    let output = &args.rounds.output;
    output.finish(&Measurement::Stages(report), "stages")
}

impl StagesArgs {
    fn takes(&self, part: Part) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }
}

impl FewLoad {
    /// One for each sort of writes to few series.
    const ALL: [Self; 5] = [
        Self::of(Write::InOrder),
        Self {
            late_share: 1.0,
            ..Self::of(Write::Late)
        },
        Self {
            late_share: 1.0,
            policy: DuplicatePolicy::Block,
            ..Self::of(Write::LateBlock)
        },
        Self {
            rules: 1,
            ..Self::of(Write::OneRule)
        },
        Self {
            durability: Durability::Sync,
            ..Self::of(Write::Synced)
        },
    ];

    /// In order, as a server comes.
    const fn of(write: Write) -> Self {
        Self {
            write,
            late_share: 0.0,
            policy: DuplicatePolicy::Last,
            rules: 0,
            durability: Durability::Interval,
        }
    }

    /// Samples of it, where loads that wait for no disk have `samples`.
    fn samples(&self, samples: u64) -> u64 {
        match self.durability {
            Durability::Sync => samples.div_ceil(SYNC_SHARE),
            _ => samples,
        }
    }
}

impl Write {
    /// Every sort, in the order of a report.
    pub(crate) const ALL: [Self; 9] = [
        Self::New,
        Self::KnownLabels,
        Self::Known,
        Self::Reference,
        Self::InOrder,
        Self::Late,
        Self::LateBlock,
        Self::OneRule,
        Self::Synced,
    ];

    /// What the report calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Write::New => "new series",
            Write::KnownLabels => "known series, by key and labels",
            Write::Known => "known series, by key",
            Write::Reference => "known series, by reference",
            Write::InOrder => "in order, 32 series",
            Write::Late => "late, 32 series",
            Write::LateBlock => "late under BLOCK, 32 series",
            Write::OneRule => "in order with one rule, 32 series",
            Write::Synced => "in order under `sync`, 32 series",
        }
    }
}
