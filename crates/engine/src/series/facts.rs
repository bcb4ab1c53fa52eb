//! What background jobs need to know of a live series to rewrite its stored
//! samples.

use super::Series;
use crate::format::chunk::Shape;
use latewood_model::Timestamp;

/// How samples of a series are divided and encoded, and which of them are still
/// needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Neither readers nor rules need older samples.
    pub(crate) floor: Timestamp,
    pub(crate) shape: Shape,
}

impl Series {
    /// The current facts. The floor only ever rises.
    pub(crate) fn facts(&self) -> Facts {
        Facts {
            floor: self.held_floor(),
            shape: self.shape(),
        }
    }
}
