//! The settling thread. Tested through the database.

use crate::background::IDLE_TURN;
use crate::keyspace::core::Core;
use crate::keyspace::settle::Settler;
use crate::observe::signals::Job;
use latewood_codec::Encoder;

/// Turns a series may get late samples before it is settled all the same.
const TURNS_MAX: u32 = 30;

/// Settles what is worth it at once and everything else once it is left alone.
pub(crate) fn run(core: &Core, settler: &Settler) {
    let mut encoder = Encoder::new();
    let mut turned_ns = core.env.clock.monotonic_ns();
    while core.observe.signals.goes_on(Job::Settle, IDLE_TURN / 4) {
        let lock = settler.lock();
        let now_ns = core.env.clock.monotonic_ns();
        if u128::from(now_ns.saturating_sub(turned_ns)) >= IDLE_TURN.as_nanos() {
            turned_ns = now_ns;
            settler.turn(&lock, TURNS_MAX);
        }
        // A failed settle is counted and its operations wait for the next turn.
        while settler.settle_ready(&lock, &mut encoder).is_err() {}
    }
}
