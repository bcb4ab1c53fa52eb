//! The read path: views of one series and of many, groups, and lists of labels.

pub(crate) mod group;
pub(crate) mod listing;
pub(crate) mod many;
pub(crate) mod rule_states;
pub(crate) mod select;
mod series;
pub(crate) mod spread;
pub(crate) mod view;
