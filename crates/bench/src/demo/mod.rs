//! The demo: a year of real weather from thousands of devices, many of them late, through a kill.
//!
//! It starts Latewood in a fresh directory, replays the year in three equal parts (all on time;
//! a quarter of the devices going offline and uploading late; the same with SIGKILL in the
//! middle), and compares every sample with the source after the kill and at the end. It fails if
//! one acknowledged sample is missing, one value differs in one bit, or one sample is there that
//! nobody sent.

mod audit;
mod fleet;
mod plan;
mod story;

use clap::Args;

use self::fleet::Fleet;
use self::story::Story;
use crate::base::address::Address;
use crate::base::error::Result;
use crate::measure::progress::during;
use crate::measure::statistics::thousands;
use crate::server::{Latewood, Process};

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

/// The server of the demo.
enum Host {
    Ours(Process),
    Theirs(Address),
}

/// Runs the subcommand.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    println!("Unpacking the recordings.");
    let fleet = Fleet::new(usize::from(args.copies))?;
    println!(
        "{} real recordings (3 airports of New York, 6 measurements, every hour of 2013; data/README.md)\n\
         are repeated as {} devices: {} samples.",
        fleet.recordings.len(),
        fleet.devices.len(),
        thousands(fleet.total() as f64)
    );
    let host = match args.port {
        Some(port) => Host::Theirs(Address::loopback(port)),
        None => Host::Ours(during("   starting Latewood", || {
            Latewood::default().start()
        })?),
    };
    if let Host::Ours(process) = &host {
        println!(
            "Latewood listens on {}, its data is in {}, its settings are {}.",
            process.address(),
            process.data().display(),
            Latewood::default().settings()
        );
    }
    let mut story = Story::begin(&fleet, host, args.seed)?;
    story.on_time_and_late()?;
    story.kill_and_resume()?;
    story.check_all()?;
    story.sizes()?;
    story.end(args.keep)
}
