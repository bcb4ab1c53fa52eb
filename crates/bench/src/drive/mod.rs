//! The drivers of measurements: servers over the wire, the engine in process.
//!
//! Clocks and counts of processor time run until nothing is left to do, and at the end everything
//! sent must be there: nobody is praised for work that is put off, or for samples that were lost.

pub(crate) mod beside;
pub(crate) mod cell;
pub(crate) mod engine;
pub(crate) mod fleet;
pub(crate) mod many;
pub(crate) mod many_wire;
pub(crate) mod probe;
pub(crate) mod rules;
pub(crate) mod sender;
pub(crate) mod wire;

mod values;
