//! How far an evaluation goes before it asks whether the query must end.
//!
//! Loops count the samples that they pass: a window its length, a column its steps, a sort its
//! elements. [`Source::check`](crate::source::Source::check) is asked about once in a million, so
//! that no inner loop pays for it, and a query ends soon after its time is over.
//!
//! Tested by `tests/evaluation/pace.rs`, which counts the checks.

use crate::exec::{Context, Result};

/// Samples between two checks.
const SAMPLES: usize = 1 << 20;

/// What was passed since the last check; each thread keeps its own.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    passed: usize,
}

impl Pace {
    pub(crate) fn pass(&mut self, samples: usize, ctx: &Context<'_>) -> Result<()> {
        self.passed = self.passed.saturating_add(samples);
        if self.passed < SAMPLES {
            Ok(())
        } else {
            self.passed = 0;
            Ok(ctx.source.check()?)
        }
    }
}
