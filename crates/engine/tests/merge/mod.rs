//! Merging through the database, on a simulated disk without threads.

mod clock;
mod disk;
mod far;
mod faults;
mod histories;
pub(crate) mod hooked;
mod kept;
mod meanwhile;
mod random;
mod threads;
mod world;
