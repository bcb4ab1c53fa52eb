//! What it takes to compute rows of a recording rule again once samples changed that it had used:
//! which steps ([`steps`]), what the rule gives there ([`given`]), and what of that is not stored
//! yet ([`compare`]).
//!
//! A step is told by the time of its rows, which is that of its query: the time of the evaluation
//! less the offset of the group. Pure; readers, locks and writes are the server's.

pub mod compare;
pub mod given;
pub mod steps;
