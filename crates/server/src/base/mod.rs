//! The ground floor: values as options and commands spell them, the clock,
//! file descriptors, places of files. Nothing here knows the server.
//!
//! Tested in each file.

pub(crate) mod address;
pub(crate) mod age;
pub(crate) mod clock;
pub(crate) mod descriptors;
pub(crate) mod glob;
pub(crate) mod outside;
pub(crate) mod redis_commands;
pub(crate) mod size;
pub(crate) mod slot;
pub(crate) mod time_limits;
