//! What maintenance must know of a live series to handle its stored samples.

use super::Series;
use crate::format::chunk::Shape;
use latewood_model::Timestamp;

/// How samples of a series are cut, and which of them are still of use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Nobody asks for what is older, neither readers nor rules.
    pub(crate) floor: Timestamp,
    pub(crate) shape: Shape,
}

impl Series {
    /// As they are now. The floor only ever rises.
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            floor: self.held_floor(),
            shape: self.shape(),
        }
    }
}
