//! The demo: a year of real weather from thousands of devices, many of them late, through a kill.
//!
//! It starts Latewood in a fresh directory, replays the year in three equal parts (all on time;
//! a quarter of the devices going offline and uploading late; the same with SIGKILL in the
//! middle), and compares every sample with the source after the kill and at the end. It fails if
//! one acknowledged sample is missing, one value differs in one bit, or one sample is there that
//! nobody sent. A recording rule is there from the second part on; it fails, too, if one of its rows
//! is not what the whole year gives.

mod audit;
mod fleet;
mod plan;
mod rule;
mod story;
mod year;

use clap::Args;
use indicatif::HumanCount;

use self::audit::Ledger;
use self::fleet::Fleet;
use self::story::{Server, Story};
use crate::base::address::Address;
use crate::base::error::Result;

/// Devices that play one recording; with 18 recordings 3,600 devices.
const COPIES: u16 = 200;

/// Replay real weather from thousands of devices, many late, and survive a kill.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Devices that play each of the 18 recordings
    #[arg(long, default_value_t = COPIES, value_parser = clap::value_parser!(u16).range(1..=9999))]
    copies: u16,
    /// Leave the server running at the end
    #[arg(long)]
    keep: bool,
    /// Use the server that runs on this port of this machine; it is not killed
    #[arg(long)]
    port: Option<u16>,
    /// Seed of the outages
    #[arg(long, default_value_t = 2013)]
    seed: u64,
}

pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    println!("Unpacking the recordings.");
    let fleet = Fleet::new(usize::from(args.copies))?;
    println!(
        "{} real recordings (3 airports of New York, 6 measurements, every hour of 2013; data/README.md)\n\
         are repeated as {} devices: {} samples.",
        fleet.recordings.len(),
        fleet.devices.len(),
        HumanCount(fleet.total())
    );
    if !cfg!(feature = "jemalloc") {
        println!(
            "These programs are built to compile fast: without optimisation across crates and\n\
             without jemalloc. Their rates are lower than README's, which are those of a release\n\
             (`make build`) under another load (docs/benchmarks.md)."
        );
    }
    let server = match args.port {
        Some(_) => None,
        None => Some(Server::start()?),
    };
    let theirs = Address::loopback(args.port.unwrap_or_default());
    let ours = server.as_ref().map(|ours| ours.process.address().clone());
    let story = Story {
        ledger: Ledger::new(&fleet),
        fleet: &fleet,
        server,
        address: ours.unwrap_or(theirs),
        seed: args.seed,
    };
    story.tell(args.keep)
}
