//! The options of `latewood serve`: flags, environment, file and defaults become
//! [`Settings`](crate::state::Settings).

mod plain;
mod resolve;
mod senders;
mod serve;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub(crate) use resolve::resolve;
pub(crate) use serve::ServeOptions;
