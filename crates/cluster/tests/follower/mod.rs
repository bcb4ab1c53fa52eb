//! Followers: their core against a simulated clock, the whole over a Kafka in memory.

mod clock;
mod core;
mod runs;
mod truth;
mod whole;
