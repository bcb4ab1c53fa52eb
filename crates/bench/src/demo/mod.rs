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
mod year;

use std::net::TcpListener;

use clap::Args;

use self::fleet::Fleet;
use self::story::{Story, thousands};
use crate::base::address::{Address, free_port};
use crate::base::error::Result;
use crate::measure::progress::during;
use crate::server::Latewood;

/// Devices that play one recording; with 18 recordings 3,600 devices.
const COPIES: u16 = 200;

/// The port of HTTP.
const HTTP_PORT: u16 = 8086;

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

/// Runs the subcommand.
pub(crate) fn run(args: &DemoArgs) -> Result<()> {
    println!("Unpacking the recordings.");
    let fleet = Fleet::new(usize::from(args.copies))?;
    println!(
        "{} real recordings (3 airports of New York, 6 measurements, every hour of 2013; data/README.md)\n\
         are repeated as {} devices: {} samples.",
        fleet.recordings.len(),
        fleet.devices.len(),
        thousands(fleet.total())
    );
    if !cfg!(feature = "jemalloc") {
        println!(
            "These programs are built to compile fast: without optimisation across crates and\n\
             without jemalloc. Their rates are lower than README's, which are those of a release\n\
             (`make build`) under another load (docs/benchmarks.md)."
        );
    }
    let http = match args.port {
        Some(_) => None,
        None => Some(http_address()?),
    };
    let latewood = match &http {
        Some(address) => Latewood::default().with_http(address),
        None => Latewood::default(),
    };
    let start = || latewood.start();
    let ours = match args.port {
        Some(_) => None,
        None => Some(during("   starting Latewood", start)?),
    };
    if let Some(process) = &ours {
        println!(
            "Latewood listens on {}, its data is in {}, its settings are {}.",
            process.address(),
            process.data().display(),
            latewood.settings()
        );
    }
    let theirs = Address::loopback(args.port.unwrap_or_default());
    let address = ours.as_ref().map_or(theirs, |ours| ours.address().clone());
    let served = ours.map(|process| (latewood, process));
    let mut story = Story::begin(&fleet, served, address, args.seed)?;
    story.on_time_and_late()?;
    story.kill_and_resume()?;
    story.check_all()?;
    story.sizes()?;
    story.end(args.keep, http.as_ref())
}

/// The usual address of HTTP, or a free one where another program has it.
fn http_address() -> Result<Address> {
    let is_free = TcpListener::bind(("127.0.0.1", HTTP_PORT)).is_ok();
    let port = if is_free { HTTP_PORT } else { free_port()? };
    Ok(Address::loopback(port))
}
