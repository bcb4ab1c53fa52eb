//! What is sent: series with late samples, sensors, hosts, real recordings; and what is in them.

pub(crate) mod hosts;
pub(crate) mod names;
pub(crate) mod recordings;
pub(crate) mod sensors;
pub(crate) mod series;
pub(crate) mod shape;
