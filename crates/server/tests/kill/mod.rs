//! The built server under load, killed with SIGKILL and started again.
//!
//! Writers ([`writer`]) send pipelines of commands, lines and messages, each to
//! series of its own, plain or with TLS, and note what was acknowledged
//! ([`model`]). After every kill the restarted server must hold what was
//! acknowledged, and of what was not the first steps of each series, or none.
//! Destinations of rules must hold what follows from their source ([`rule`]). A kill
//! takes nothing the kernel has, so this holds under every durability. Some lives
//! end before the server has answered anybody, or amid a flush, merge or settle.
//!
//! A run is one directory with some lives; its policies, series and load follow from
//! the seed printed (`LATEWOOD_SEED` repeats it), the moments of the kills do not.
//! `LATEWOOD_KILLS=n` lets `soak_kill` go on for n lives.

mod commands;
mod connection;
mod model;
mod rule;
mod samples;
mod world;
mod writer;

use latewood_engine::io::sim::seed;
use world::World;

/// Lives on one directory: as long as it takes for files to be flushed and merged.
const LIVES_MAX: usize = 25;
/// Kills of `soak_kill` where nobody says how many.
const KILLS: usize = 4;

#[test]
fn a_killed_server_keeps_what_it_acknowledged() {
    let mut world = World::new(seed());
    (0..6).for_each(|_| world.live_and_be_killed());
    assert!(world.acknowledged() > 0, "nothing was ever acknowledged");
}

#[test]
fn a_server_asked_to_stop_ends_well_and_keeps_everything() {
    let mut world = World::new(seed());
    for _ in 0..3 {
        world.live_and_stop();
    }
}

#[test]
fn soak_kill() {
    let kills = std::env::var("LATEWOOD_KILLS");
    let kills = kills.map_or(KILLS, |text| text.parse().unwrap());
    let (first, mut done, mut acknowledged) = (seed(), 0, 0);
    for run in 0.. {
        let lives = LIVES_MAX.min(kills - done);
        if lives == 0 {
            break;
        }
        let mut world = World::new(first.wrapping_add(run));
        (0..lives).for_each(|_| world.live_and_be_killed());
        done += lives;
        acknowledged += world.acknowledged();
        println!("{done} kills, {acknowledged} steps acknowledged");
    }
}
